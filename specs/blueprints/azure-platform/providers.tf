# Credentials come from the runner's environment, never from a file or a variable.
provider "azurerm" {
  subscription_id = var.subscription_id == "" ? null : var.subscription_id

  features {
    # A deleted vault keeps its name and its secrets for some weeks, and comes back with them.
    key_vault {
      purge_soft_delete_on_destroy    = false
      recover_soft_deleted_key_vaults = true
    }

    # What others put in the resource group stops a destroy, rather than vanish with it.
    resource_group {
      prevent_deletion_if_contains_resources = true
    }
  }
}

# Who is deploying: it administers the cluster and writes the database's password to the vault.
data "azurerm_client_config" "current" {}

# The token is fetched by a command each time it is needed. One from a data source would be read while
# planning and saved in the plan, and be out of date by the time that a reviewed plan is applied.
provider "helm" {
  kubernetes = {
    host                   = azurerm_kubernetes_cluster.main.kube_config[0].host
    cluster_ca_certificate = base64decode(azurerm_kubernetes_cluster.main.kube_config[0].cluster_ca_certificate)
    exec = {
      api_version = "client.authentication.k8s.io/v1beta1"
      command     = "kubelogin"
      # The server id is that of AKS itself, the same in every tenant.
      args = [
        "get-token",
        "--login", var.kubelogin_method,
        "--server-id", "6dae42f8-4368-4678-94ff-3960e28e3630",
        "--tenant-id", data.azurerm_client_config.current.tenant_id,
      ]
    }
  }
}
