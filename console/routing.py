"""The URLs of the sockets."""

from django.urls import path

from console.accounts.consumers import OrganizationConsumer
from console.jobs.log.consumers import JobConsumer

websocket_urlpatterns = [
    path("ws/jobs/<uuid:job_id>", JobConsumer.as_asgi()),
    path("ws/organizations/<slug:slug>", OrganizationConsumer.as_asgi()),
]
