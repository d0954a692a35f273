from django.apps import AppConfig


class JanitorConfig(AppConfig):
    name = "console.janitor"
