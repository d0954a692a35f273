from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "console.accounts"

    def ready(self) -> None:
        from console.accounts import openapi  # noqa: F401  registers itself
