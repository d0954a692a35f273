from django.apps import AppConfig


class SpecsConfig(AppConfig):
    name = "specs"

    def ready(self) -> None:
        from console.vault import SEALED_FIELDS, SealedField
        from specs.models import DigestKey, Output, SealedValue
        from specs.outputs import output_context
        from specs.variables import digest_key_context, value_context

        SEALED_FIELDS.extend(
            [
                SealedField(
                    SealedValue, "sealed", lambda one: value_context(one.organization_id, one.digest)
                ),
                SealedField(DigestKey, "sealed", lambda one: digest_key_context(one.organization_id)),
                SealedField(Output, "sealed_value", lambda one: output_context(one.spec_id, one.name)),
            ]
        )
