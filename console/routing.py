"""The sockets' addresses."""

from django.urls import path

from console.jobs.consumers import JobConsumer
from console.live.consumers import OrganizationConsumer

websocket_urlpatterns = [
    path("ws/jobs/<uuid:job_id>", JobConsumer.as_asgi()),
    path("ws/organizations/<slug:slug>", OrganizationConsumer.as_asgi()),
]
