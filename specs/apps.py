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
                    SealedValue, "sealed", lambda row: value_context(row.organization_id, row.digest)
                ),
                SealedField(DigestKey, "sealed", lambda row: digest_key_context(row.organization_id)),
                SealedField(Output, "sealed_value", lambda row: output_context(row.spec_id, row.name)),
            ]
        )
