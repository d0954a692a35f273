from django.apps import AppConfig


class PlansConfig(AppConfig):
    name = "console.plans"

    def ready(self) -> None:
        from console.plans.joins import join

        join()
