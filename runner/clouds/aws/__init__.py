"""AWS."""

from runner.clouds.aws.ambient import SOURCES, connect_ambient
from runner.clouds.aws.checks import check_external_id, probe_s3, shorten
from runner.clouds.aws.credentials import AwsRole
from runner.clouds.aws.inventory import AwsInventory
from runner.clouds.contract import Cloud

CLOUD = Cloud(
    name="aws",
    connect=AwsRole,
    connect_ambient=connect_ambient,
    ambient=SOURCES,
    region_variables=("AWS_REGION", "AWS_DEFAULT_REGION"),
    inventory=AwsInventory,
    probes={"s3": probe_s3},
    loggers=("botocore", "boto3"),
    checks=check_external_id,
    shorten=shorten,
)
