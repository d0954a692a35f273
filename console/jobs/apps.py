from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "console.jobs"

    def ready(self) -> None:
        from console.jobs import hooks, identity_jobs
        from console.jobs.finalization import keep_outputs, mark_destroyed
        from console.jobs.identity_claims import identity_access, identity_field
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
        hooks.snapshot_fields.append(identity_field)
        hooks.claim_fields.append(identity_access)
        hooks.on_success[JobType.CONNECTION_TEST].append(identity_jobs.keep_passed_test)
        hooks.on_failure[JobType.CONNECTION_TEST].append(identity_jobs.keep_failed_test)
        hooks.on_success[JobType.FETCH_RESOURCES].append(identity_jobs.keep_fetch)
        hooks.on_failure[JobType.FETCH_RESOURCES].append(identity_jobs.keep_failed_fetch)
