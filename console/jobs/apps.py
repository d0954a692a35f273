from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "console.jobs"

    def ready(self) -> None:
        from console.jobs.joins import join

        join()
