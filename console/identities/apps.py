from django.apps import AppConfig


class IdentitiesConfig(AppConfig):
    name = "console.identities"

    def ready(self) -> None:
        from console.identities.joins import join
        from console.identities.keys import key_context
        from console.identities.models import SigningKey
        from console.vault import SEALED_FIELDS, SealedField

        SEALED_FIELDS.append(SealedField(SigningKey, "sealed_private_key", lambda key: key_context(key.kid)))
        join()
