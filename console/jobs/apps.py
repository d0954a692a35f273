from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "console.jobs"

    def ready(self) -> None:
        from console.jobs import hooks
        from console.jobs.finalization import keep_outputs, mark_destroyed
        from console.jobs.models import ErroredState
        from console.jobs.source_access import source_access
        from console.vault import SEALED_FIELDS, SealedField
        from runner.protocol import JobType

        hooks.on_success[JobType.DEPLOY].append(keep_outputs)
        hooks.on_success[JobType.DESTROY].append(mark_destroyed)
        hooks.claim_fields.append(source_access)
        SEALED_FIELDS.append(
            SealedField(ErroredState, "sealed_body", lambda one: f"errored-state:{one.attempt_id}")
        )
