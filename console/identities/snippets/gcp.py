"""What to run in Google Cloud: the workload identity pool, its provider, and the service account."""

from console.identities.issuer import issuer
from console.identities.models import CloudIdentity
from console.identities.snippets.snippet import Snippet, aligned, hcl, script

#: Our subject is longer than the 127 bytes that `google.subject` takes, so its parts are mapped one by one.
GCP_MAPPING = {
    "google.subject": 'assertion.identity_id + ":" + assertion.spec_id + ":" + assertion.action',
    "attribute.organization_id": "assertion.organization_id",
    "attribute.identity_id": "assertion.identity_id",
    "attribute.spec_id": "assertion.spec_id",
    "attribute.environment": "assertion.environment",
    "attribute.action": "assertion.action",
}


def gcp_snippets(identity: CloudIdentity) -> list[Snippet]:
    return [
        Snippet(
            "cli", "gcloud", "Makes the pool, the provider and the service account, and lets our jobs be it.",
            "sh", _gcloud(identity),
        ),
        Snippet("terraform", "Terraform", "The same as a configuration.", "hcl", _gcp_terraform(identity)),
    ]  # fmt: skip


def _gcloud(identity: CloudIdentity) -> str:
    number, pool, provider = _gcp_names(identity)
    account, project = identity.settings["service_account"], identity.settings["project"]
    mapping = ",".join(f"{key}={value}" for key, value in GCP_MAPPING.items())
    place = [f"--project={number}", "--location=global"]
    return script(
        [
            ["gcloud", "iam", "workload-identity-pools", "create", pool, *place],
            ["gcloud", "iam", "workload-identity-pools", "providers", "create-oidc", provider, *place,
             f"--workload-identity-pool={pool}", f"--issuer-uri={issuer()}", f"--attribute-mapping={mapping}",
             f"--attribute-condition={_gcp_condition(identity)}"],
            ["gcloud", "iam", "service-accounts", "create", account.partition("@")[0],
             f"--project={_project_of(account)}"],
            ["gcloud", "iam", "service-accounts", "add-iam-policy-binding", account,
             "--role=roles/iam.workloadIdentityUser", f"--member={_gcp_member(identity)}"],
            ["gcloud", "projects", "add-iam-policy-binding", project, "--role=roles/viewer",
             f"--member=serviceAccount:{account}"],
        ],
        last="# Then grant the service account what your Specs build with.",
    )  # fmt: skip


def _gcp_terraform(identity: CloudIdentity) -> str:
    number, pool, provider = _gcp_names(identity)
    account, project = identity.settings["service_account"], identity.settings["project"]
    mapping = aligned(GCP_MAPPING)
    return f"""resource "google_iam_workload_identity_pool" "slipway" {{
  project                   = {hcl(number)}
  workload_identity_pool_id = {hcl(pool)}
}}

resource "google_iam_workload_identity_pool_provider" "slipway" {{
  project                            = {hcl(number)}
  workload_identity_pool_id          = google_iam_workload_identity_pool.slipway.workload_identity_pool_id
  workload_identity_pool_provider_id = {hcl(provider)}
  attribute_condition                = {hcl(_gcp_condition(identity))}
  attribute_mapping = {{
{mapping}
  }}
  oidc {{
    issuer_uri = {hcl(issuer())}
  }}
}}

resource "google_service_account" "slipway" {{
  project    = {hcl(_project_of(account))}
  account_id = {hcl(account.partition("@")[0])}
}}

resource "google_service_account_iam_member" "slipway" {{
  service_account_id = google_service_account.slipway.name
  role               = "roles/iam.workloadIdentityUser"
  member             = {hcl(_gcp_member(identity))}
}}

resource "google_project_iam_member" "slipway_read" {{
  project = {hcl(project)}
  role    = "roles/viewer"
  member  = google_service_account.slipway.member
}}
"""


def _gcp_names(identity: CloudIdentity) -> tuple[str, str, str]:
    parts = str(identity.settings["provider"]).split("/")
    return parts[1], parts[5], parts[7]


def _gcp_member(identity: CloudIdentity) -> str:
    number, pool, _ = _gcp_names(identity)
    place = f"projects/{number}/locations/global/workloadIdentityPools/{pool}"
    return f"principalSet://iam.googleapis.com/{place}/attribute.identity_id/{identity.pk}"


def _gcp_condition(identity: CloudIdentity) -> str:
    return f'assertion.organization_id == "{identity.organization_id}"'


def _project_of(account: str) -> str:
    return account.partition("@")[2].removesuffix(".iam.gserviceaccount.com")
