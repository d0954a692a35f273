from django.apps import AppConfig


class StateConfig(AppConfig):
    name = "console.state"

    def ready(self) -> None:
        from console.state.joins import join

        join()
