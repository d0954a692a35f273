"""Google Cloud: a service account that jobs impersonate through workload identity federation."""

from console.identities.clouds.checks import (
    ascii_pattern,
    checked_regions,
    matching,
    required_text,
    wrong_value,
)
from console.identities.clouds.cloud import REGIONS, Cloud, Setting, Settings, Trust
from console.identities.clouds.snippet import Snippet, aligned, hcl, script

PROVIDER = ascii_pattern(
    r"projects/\d{1,19}/locations/global/workloadIdentityPools/(?!gcp-)[a-z0-9-]{4,32}"
    r"/providers/(?!gcp-)[a-z0-9-]{4,32}"
)
PROJECT = ascii_pattern(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
SERVICE_ACCOUNT = ascii_pattern(
    r"[a-z][a-z0-9-]{4,28}[a-z0-9]@[a-z][a-z0-9.-]{4,60}[a-z0-9]\.iam\.gserviceaccount\.com"
)
REGION = ascii_pattern(r"[a-z]+-[a-z]+\d{1,2}")

FORM = (
    Setting(
        name="provider",
        label="Workload identity provider",
        placeholder="projects/123456789/locations/global/workloadIdentityPools/slipway/providers/slipway",
        hint="Its full name, with the project’s number. It need not exist yet.",
        required=True,
    ),
    Setting(
        name="service_account",
        label="Service account",
        placeholder="slipway@my-project.iam.gserviceaccount.com",
        required=True,
    ),
    Setting(name="project", label="Project", placeholder="my-project", required=True),
    REGIONS,
)

#: Our subject is longer than the 127 bytes that `google.subject` takes, so its parts are mapped one by one.
MAPPING = {
    "google.subject": 'assertion.identity_id + ":" + assertion.spec_id + ":" + assertion.action',
    "attribute.organization_id": "assertion.organization_id",
    "attribute.identity_id": "assertion.identity_id",
    "attribute.spec_id": "assertion.spec_id",
    "attribute.environment": "assertion.environment",
    "attribute.action": "assertion.action",
}


class Gcp(Cloud):
    key = "gcp"
    label = "Google Cloud"
    summary = "A service account that jobs impersonate through workload identity federation."
    form = FORM
    region_pattern = REGION
    region_example = "europe-west1"

    def checked(self, settings: Settings) -> Settings:
        example = "projects/1234/locations/global/workloadIdentityPools/a/providers/b"
        provider = required_text(settings, "provider", example)
        provider = provider.removeprefix("https:").removeprefix("//iam.googleapis.com/")
        if not PROVIDER.fullmatch(provider):
            raise wrong_value(
                "provider",
                provider,
                "the provider's full name: "
                "projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/NAME",
            )
        example = "slipway@my-project.iam.gserviceaccount.com"
        account = required_text(settings, "service_account", example)
        if not SERVICE_ACCOUNT.fullmatch(account):
            raise wrong_value("service_account", account, f"an address such as {example}")
        project = required_text(settings, "project", "my-project")
        if not PROJECT.fullmatch(project):
            expected = "a project's id, such as my-project; not its number, not its title"
            raise wrong_value("project", project, expected)
        check = matching("regions", REGION, "a region such as europe-west1")
        return {
            "provider": provider,
            "service_account": account,
            "project": project,
            "regions": checked_regions(settings, check),
        }

    def account(self, settings: Settings) -> str:
        return str(settings["project"])

    def audience(self, settings: Settings) -> str:
        return f"https://iam.googleapis.com/{settings['provider']}"

    def setup(self, settings: Settings, trust: Trust) -> list[Snippet]:
        hint = "Creates the pool, the provider and the service account, and lets our jobs use it."
        return [
            Snippet("cli", "gcloud", hint, "sh", _commands(settings, trust)),
            Snippet(
                "terraform",
                "Terraform",
                "The same as a configuration.",
                "hcl",
                _configuration(settings, trust),
            ),
        ]


def _commands(settings: Settings, trust: Trust) -> str:
    number, pool, provider = _provider_parts(settings)
    account, project = settings["service_account"], settings["project"]
    mapping = ",".join(f"{key}={value}" for key, value in MAPPING.items())
    place = [f"--project={number}", "--location=global"]
    return script(
        [
            ["gcloud", "iam", "workload-identity-pools", "create", pool, *place],
            ["gcloud", "iam", "workload-identity-pools", "providers", "create-oidc", provider, *place,
             f"--workload-identity-pool={pool}", f"--issuer-uri={trust.issuer}",
             f"--attribute-mapping={mapping}", f"--attribute-condition={_condition(trust)}"],
            ["gcloud", "iam", "service-accounts", "create", account.partition("@")[0],
             f"--project={_project_of(account)}"],
            ["gcloud", "iam", "service-accounts", "add-iam-policy-binding", account,
             "--role=roles/iam.workloadIdentityUser", f"--member={_member(settings, trust)}"],
            ["gcloud", "projects", "add-iam-policy-binding", project, "--role=roles/viewer",
             f"--member=serviceAccount:{account}"],
        ],
        last="# Then grant the service account what your Specs build with.",
    )  # fmt: skip


def _configuration(settings: Settings, trust: Trust) -> str:
    number, pool, provider = _provider_parts(settings)
    account, project = settings["service_account"], settings["project"]
    mapping = aligned(MAPPING)
    return f"""resource "google_iam_workload_identity_pool" "slipway" {{
  project                   = {hcl(number)}
  workload_identity_pool_id = {hcl(pool)}
}}

resource "google_iam_workload_identity_pool_provider" "slipway" {{
  project                            = {hcl(number)}
  workload_identity_pool_id          = google_iam_workload_identity_pool.slipway.workload_identity_pool_id
  workload_identity_pool_provider_id = {hcl(provider)}
  attribute_condition                = {hcl(_condition(trust))}
  attribute_mapping = {{
{mapping}
  }}
  oidc {{
    issuer_uri = {hcl(trust.issuer)}
  }}
}}

resource "google_service_account" "slipway" {{
  project    = {hcl(_project_of(account))}
  account_id = {hcl(account.partition("@")[0])}
}}

resource "google_service_account_iam_member" "slipway" {{
  service_account_id = google_service_account.slipway.name
  role               = "roles/iam.workloadIdentityUser"
  member             = {hcl(_member(settings, trust))}
}}

resource "google_project_iam_member" "slipway_read" {{
  project = {hcl(project)}
  role    = "roles/viewer"
  member  = google_service_account.slipway.member
}}
"""


def _provider_parts(settings: Settings) -> tuple[str, str, str]:
    parts = str(settings["provider"]).split("/")
    return parts[1], parts[5], parts[7]


def _member(settings: Settings, trust: Trust) -> str:
    number, pool, _ = _provider_parts(settings)
    place = f"projects/{number}/locations/global/workloadIdentityPools/{pool}"
    return f"principalSet://iam.googleapis.com/{place}/attribute.identity_id/{trust.identity_id}"


def _condition(trust: Trust) -> str:
    return f'assertion.organization_id == "{trust.organization_id}"'


def _project_of(account: str) -> str:
    return account.partition("@")[2].removesuffix(".iam.gserviceaccount.com")
