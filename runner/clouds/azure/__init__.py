"""Azure."""

from runner.clouds.azure.ambient import SOURCES, AmbientAzure
from runner.clouds.azure.checks import probe_azurerm
from runner.clouds.azure.credentials import AzureApplication
from runner.clouds.azure.inventory import AzureInventory
from runner.clouds.contract import Cloud

CLOUD = Cloud(
    name="azure",
    connect=AzureApplication,
    connect_ambient=AmbientAzure,
    ambient=SOURCES,
    # azurerm takes the region from the configuration only; `az` has a variable for it.
    region_variables=("AZURE_DEFAULTS_LOCATION",),
    inventory=AzureInventory,
    probes={"azurerm": probe_azurerm},
    loggers=("azure", "msal"),
)
