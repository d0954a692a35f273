# General

variable "name" {
  type        = string
  description = "The name prefix of every resource, including the resource group."
  default     = "platform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]*(-[a-z0-9]+)*$", var.name)) && length(var.name) >= 3 && length(var.name) <= 24
    error_message = "The name has 3 to 24 characters of a-z, 0-9 and single hyphens, starts with a letter and does not end with a hyphen."
  }
}

variable "subscription_id" {
  type        = string
  description = "The subscription that the platform is built in. Empty: the one that the runner's environment names (ARM_SUBSCRIPTION_ID)."
  default     = ""

  validation {
    condition     = var.subscription_id == "" || can(regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", var.subscription_id))
    error_message = "The subscription is given by its id in lower case, such as 00000000-0000-0000-0000-000000000000."
  }
}

variable "region" {
  type        = string
  description = "The Azure region that the platform is built in. It needs availability zones."
  default     = "northeurope"

  validation {
    condition     = can(regex("^[a-z]+[0-9]?$", var.region))
    error_message = "The region is written as Azure's commands write it, such as northeurope or eastus2."
  }
}

variable "tags" {
  type        = map(string)
  description = "Tags that every resource carries, such as a cost centre or an owner."
  default     = {}

  validation {
    condition     = length(var.tags) <= 40 && alltrue([for key in keys(var.tags) : !can(regex("[<>%&\\\\?/]", key))])
    error_message = "Give 40 tags at most, with none of < > % & \\ ? / in their names."
  }
}

variable "deletion_protection" {
  type        = bool
  description = "Refuse to destroy the platform, and lock the database and the vault. Set it to false and deploy before you destroy."
  default     = true
}

variable "log_retention_days" {
  type        = number
  description = "Days to keep the control plane's logs in Log Analytics."
  default     = 30

  validation {
    condition     = var.log_retention_days >= 30 && var.log_retention_days <= 730
    error_message = "Log Analytics keeps logs for 30 to 730 days."
  }
}

# Network

variable "vnet_cidr" {
  type        = string
  description = "The address range of the virtual network. Pods have a range of their own, pods_cidr."
  default     = "10.60.0.0/16"

  validation {
    condition     = can(cidrhost(var.vnet_cidr, 0)) && can(regex("/(1[6-9]|20)$", var.vnet_cidr))
    error_message = "The network's range is an IPv4 CIDR block from /16 to /20, such as 10.60.0.0/16."
  }
}

variable "pods_cidr" {
  type        = string
  description = "The overlay range of the pods, unseen outside the cluster. Each node takes a /24 of it."
  default     = "10.244.0.0/16"

  validation {
    condition     = can(cidrhost(var.pods_cidr, 0)) && can(regex("/(1[0-9]|20)$", var.pods_cidr))
    error_message = "The pods' range is an IPv4 CIDR block from /10 to /20, such as 10.244.0.0/16."
  }
}

variable "services_cidr" {
  type        = string
  description = "The range of the Kubernetes services, unseen outside the cluster."
  default     = "10.245.0.0/20"

  validation {
    condition     = can(cidrhost(var.services_cidr, 0)) && can(regex("/(1[2-9]|2[0-4])$", var.services_cidr))
    error_message = "The services' range is an IPv4 CIDR block from /12 to /24, such as 10.245.0.0/20."
  }
}

# Cluster

variable "kubernetes_version" {
  type        = string
  description = "The Kubernetes version, such as 1.34. Empty: what AKS recommends when the cluster is made. Patches are applied by themselves."
  default     = ""

  validation {
    condition     = var.kubernetes_version == "" || can(regex("^1\\.[0-9]{2}(\\.[0-9]+)?$", var.kubernetes_version))
    error_message = "The Kubernetes version has the form 1.NN or 1.NN.N, such as 1.34."
  }
}

variable "cluster_tier" {
  type        = string
  description = "Free has no guarantee of uptime, Standard has, Premium adds long-term support of versions."
  default     = "Standard"

  validation {
    condition     = contains(["Free", "Standard", "Premium"], var.cluster_tier)
    error_message = "The tier is Free, Standard or Premium."
  }
}

variable "cluster_endpoint_public" {
  type        = bool
  description = "Make the cluster's API reachable from the internet. If false, the runner must be in the network to install Argo CD. Cannot be changed later."
  default     = true
}

variable "cluster_endpoint_cidrs" {
  type        = list(string)
  description = "CIDR blocks that may reach the public API endpoint. Narrow them to your offices and runners; the nodes' own way out is added."
  default     = ["0.0.0.0/0"]

  validation {
    condition     = length(var.cluster_endpoint_cidrs) > 0 && alltrue([for cidr in var.cluster_endpoint_cidrs : can(cidrhost(cidr, 0))])
    error_message = "Give at least one CIDR block, such as 198.51.100.0/24. To close the endpoint, set cluster_endpoint_public to false."
  }
}

variable "cluster_admin_group_ids" {
  type        = list(string)
  description = "Entra groups that administer the cluster, by object id. The identity that deploys does already."
  default     = []

  validation {
    condition     = alltrue([for id in var.cluster_admin_group_ids : can(regex("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", id))])
    error_message = "Each group is given by its object id in lower case, such as 00000000-0000-0000-0000-000000000000."
  }
}

# Nodes

variable "zones" {
  type        = list(string)
  description = "The availability zones of the nodes and the load balancer."
  default     = ["1", "2", "3"]

  validation {
    condition     = length(var.zones) > 0 && alltrue([for zone in var.zones : contains(["1", "2", "3"], zone)])
    error_message = "Zones are 1, 2 and 3; name at least one."
  }
}

variable "system_node_size" {
  type        = string
  description = "The size of the machines that run the cluster's own pods."
  default     = "Standard_D2ds_v5"

  validation {
    condition     = can(regex("^Standard_[A-Za-z0-9_-]+$", var.system_node_size))
    error_message = "The size is written as Azure writes it, such as Standard_D2ds_v5."
  }
}

variable "system_node_max" {
  type        = number
  description = "The maximum number of machines of the system pool; it begins with two."
  default     = 3

  validation {
    condition     = var.system_node_max >= 2 && var.system_node_max <= 100
    error_message = "The system pool has at most 2 to 100 machines."
  }
}

variable "node_size" {
  type        = string
  description = "The size of the machines of the general pool, where your workloads run."
  default     = "Standard_D4ds_v5"

  validation {
    condition     = can(regex("^Standard_[A-Za-z0-9_-]+$", var.node_size))
    error_message = "The size is written as Azure writes it, such as Standard_D4ds_v5."
  }
}

variable "node_spot" {
  type        = bool
  description = "Use Spot machines for the general pool: far cheaper, taken back at 30 seconds' notice, and tainted so that only pods that accept it run there."
  default     = false
}

variable "node_min_count" {
  type        = number
  description = "The minimum number of machines of the general pool."
  default     = 2

  validation {
    condition     = var.node_min_count >= 1 && floor(var.node_min_count) == var.node_min_count
    error_message = "The general pool needs at least one machine."
  }
}

variable "node_max_count" {
  type        = number
  description = "The maximum number of machines of the general pool; AKS adds and removes them by need."
  default     = 6

  validation {
    condition     = var.node_max_count >= 1 && var.node_max_count <= 1000
    error_message = "A pool has at most 1 to 1000 machines."
  }
}

variable "node_disk_gb" {
  type        = number
  description = "The size of each machine's disk in GB."
  default     = 64

  validation {
    condition     = var.node_disk_gb >= 30 && var.node_disk_gb <= 2048
    error_message = "A machine's disk has 30 to 2048 GB."
  }
}

variable "extra_node_pools" {
  type = map(object({
    size      = string
    spot      = optional(bool, false)
    min_count = optional(number, 0)
    max_count = optional(number, 3)
    disk_gb   = optional(number, 64)
    labels    = optional(map(string), {})
    taints    = optional(list(string), [])
  }))
  description = "More node pools by name. A taint is written key=value:Effect, with the effect NoSchedule, PreferNoSchedule or NoExecute."
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.extra_node_pools) : can(regex("^[a-z][a-z0-9]{0,8}$", name)) && !contains(["general", "system"], name)])
    error_message = "A pool's name has up to 9 characters of a-z and 0-9, and is neither general nor system, which exist already."
  }

  validation {
    condition = alltrue(flatten([
      for pool in values(var.extra_node_pools) : [
        for taint in pool.taints : can(regex("^[^=:]+=[^=:]*:(NoSchedule|PreferNoSchedule|NoExecute)$", taint))
      ]
    ]))
    error_message = "A taint is written key=value:Effect, with the effect NoSchedule, PreferNoSchedule or NoExecute."
  }
}

# Database

variable "database_version" {
  type        = string
  description = "The major version of PostgreSQL."
  default     = "17"

  validation {
    condition     = contains(["14", "15", "16", "17"], var.database_version)
    error_message = "The PostgreSQL version is 14, 15, 16 or 17."
  }
}

variable "database_sku" {
  type        = string
  description = "The size of the database: B_ burstable, GP_ general purpose, MO_ memory optimized."
  default     = "GP_Standard_D2ds_v5"

  validation {
    condition     = can(regex("^(B|GP|MO)_Standard_[A-Za-z0-9_]+$", var.database_sku))
    error_message = "The size begins with B_, GP_ or MO_, such as GP_Standard_D2ds_v5."
  }
}

variable "database_high_availability" {
  type        = string
  description = "A standby that takes over by itself: ZoneRedundant, in another zone; SameZone; or Disabled, at half the cost."
  default     = "ZoneRedundant"

  validation {
    condition     = contains(["ZoneRedundant", "SameZone", "Disabled"], var.database_high_availability)
    error_message = "The high availability is ZoneRedundant, SameZone or Disabled."
  }
}

variable "database_storage_gb" {
  type        = number
  description = "The database's storage in GB to begin with; it grows by itself and never shrinks."
  default     = 64

  validation {
    condition     = contains([32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384], var.database_storage_gb)
    error_message = "Azure offers 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192 and 16384 GB."
  }
}

variable "database_name" {
  type        = string
  description = "The name of the first database."
  default     = "app"

  validation {
    condition     = can(regex("^[a-z][a-z0-9_]{0,62}$", var.database_name)) && !contains(["postgres", "azure_maintenance", "azure_sys"], var.database_name)
    error_message = "The database's name starts with a letter, has up to 63 characters of a-z, 0-9 and underscores, and is none of those that exist already: postgres, azure_maintenance, azure_sys."
  }
}

variable "database_username" {
  type        = string
  description = "The name of the administrator. Its password is made here and kept in Key Vault."
  default     = "platform"

  validation {
    condition = (
      can(regex("^[a-z][a-z0-9_]{0,62}$", var.database_username)) && !startswith(var.database_username, "pg_")
      && !contains(["azure_superuser", "azure_pg_admin", "admin", "administrator", "root", "guest", "public"], var.database_username)
    )
    error_message = "The user's name starts with a letter, has up to 63 characters of a-z, 0-9 and underscores, and is none that Azure reserves, such as admin, root or pg_…"
  }
}

variable "database_backup_days" {
  type        = number
  description = "Days of point-in-time recovery."
  default     = 14

  validation {
    condition     = var.database_backup_days >= 7 && var.database_backup_days <= 35
    error_message = "Azure keeps backups for 7 to 35 days."
  }
}

variable "database_geo_backup" {
  type        = bool
  description = "Also keep backups in the paired region. Cannot be changed later, and costs as much again."
  default     = false
}

variable "key_vault_cidrs" {
  type        = list(string)
  description = "From where, besides the cluster, the vault may be reached: public addresses of your offices and runners. Empty: from anywhere, with the right role."
  default     = []

  validation {
    condition     = alltrue([for cidr in var.key_vault_cidrs : can(cidrhost(cidr, 0))])
    error_message = "Each entry is a public CIDR block, such as 198.51.100.0/24."
  }
}

# DNS

variable "domain" {
  type        = string
  description = "The domain of the platform's own DNS zone, such as platform.your-company.com. Empty: no zone."
  default     = ""

  validation {
    condition     = var.domain == "" || can(regex("^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,}$", var.domain))
    error_message = "The domain is written in lower case and without a dot at its end, such as platform.your-company.com."
  }
}

variable "parent_zone_id" {
  type        = string
  description = "The Azure DNS zone of the parent domain, in this subscription, which then delegates to the new zone. Empty: you delegate by hand."
  default     = ""

  validation {
    condition     = var.parent_zone_id == "" || can(regex("(?i)^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft.Network/dnsZones/[^/]+$", var.parent_zone_id))
    error_message = "The zone is given by its resource id: /subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.Network/dnsZones/DOMAIN."
  }
}

# Argo CD

variable "install_argocd" {
  type        = bool
  description = "Install Argo CD in the cluster as the last step. The runner needs kubelogin and has to reach the cluster's API."
  default     = true
}

variable "kubelogin_method" {
  type        = string
  description = "The sign-in method of kubelogin: the method by which the runner's identity signs in to Azure."
  default     = "workloadidentity"

  validation {
    condition     = contains(["workloadidentity", "azurecli", "msi", "spn"], var.kubelogin_method)
    error_message = "The method is workloadidentity, azurecli, msi or spn."
  }
}

variable "argocd_chart_version" {
  type        = string
  description = "The version of the argo-cd Helm chart."
  default     = "9.5.4"

  validation {
    condition     = can(regex("^[0-9]+\\.[0-9]+\\.[0-9]+$", var.argocd_chart_version))
    error_message = "The chart's version has the form N.N.N, such as 9.5.4."
  }
}

variable "argocd_exposure" {
  type        = string
  description = "The audience of Argo CD's load balancer: internal, the virtual network and networks connected to it; public, the networks in argocd_allowed_cidrs."
  default     = "internal"

  validation {
    condition     = contains(["internal", "public"], var.argocd_exposure)
    error_message = "The exposure is internal or public."
  }
}

variable "argocd_allowed_cidrs" {
  type        = list(string)
  description = "From which networks Argo CD may be reached. Empty: from the virtual network only, and then the exposure must be internal."
  default     = []

  validation {
    condition     = alltrue([for cidr in var.argocd_allowed_cidrs : can(cidrhost(cidr, 0))])
    error_message = "Each entry is a CIDR block, such as 198.51.100.0/24."
  }
}

variable "argocd_high_availability" {
  type        = bool
  description = "Two of each Argo CD component and a Redis of three. Needs three machines in the general pool."
  default     = false
}
