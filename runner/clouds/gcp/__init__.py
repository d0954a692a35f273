"""Google Cloud."""

from runner.clouds.contract import Cloud
from runner.clouds.gcp.ambient import SOURCES, AmbientGcp
from runner.clouds.gcp.checks import probe_gcs
from runner.clouds.gcp.credentials import GcpWorkloadIdentity
from runner.clouds.gcp.inventory import GcpInventory

CLOUD = Cloud(
    name="gcp",
    connect=GcpWorkloadIdentity,
    connect_ambient=AmbientGcp,
    ambient=SOURCES,
    region_variables=("GOOGLE_REGION", "CLOUDSDK_COMPUTE_REGION"),
    inventory=GcpInventory,
    probes={"gcs": probe_gcs},
    loggers=("google",),
)
