# General

variable "name" {
  type        = string
  description = "The name prefix of every resource; unique in the project."
  default     = "platform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]*(-[a-z0-9]+)*$", var.name)) && length(var.name) >= 3 && length(var.name) <= 20
    error_message = "The name has 3 to 20 characters of a-z, 0-9 and single hyphens, starts with a letter and does not end with a hyphen."
  }
}

variable "project_id" {
  type        = string
  description = "The project that the platform is built in. Empty: the one that the runner's environment names (GOOGLE_PROJECT)."
  default     = ""

  validation {
    condition     = var.project_id == "" || can(regex("^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "The project is given by its id, such as my-company-platform: 6 to 30 characters of a-z, 0-9 and hyphens. Its number or its title will not do."
  }
}

variable "region" {
  type        = string
  description = "The Google Cloud region that the platform is built in."
  default     = "europe-west3"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "The region is written as Google writes it, such as europe-west3 or us-central1, without a zone's letter."
  }
}

variable "labels" {
  type        = map(string)
  description = "Labels that every resource carries, such as a cost centre or an owner."
  default     = {}

  validation {
    condition = alltrue([
      for key, value in var.labels : can(regex("^[a-z][a-z0-9_-]{0,62}$", key)) && can(regex("^[a-z0-9_-]{0,63}$", value))
    ])
    error_message = "Keys and values of labels have up to 63 characters of a-z, 0-9, underscores and hyphens, and keys start with a letter."
  }
}

variable "deletion_protection" {
  type        = bool
  description = "Refuse to destroy the platform. Set it to false and deploy before you destroy."
  default     = true
}

# Network

variable "nodes_cidr" {
  type        = string
  description = "The address range of the subnet: nodes and internal load balancers."
  default     = "10.50.0.0/20"

  validation {
    condition     = can(cidrhost(var.nodes_cidr, 0)) && can(regex("/(1[6-9]|2[0-6])$", var.nodes_cidr))
    error_message = "The nodes' range is an IPv4 CIDR block from /16 to /26, such as 10.50.0.0/20."
  }
}

variable "pods_cidr" {
  type        = string
  description = "The secondary range of the pods. Each node takes a /24 of it, so a /16 is room for 256 nodes."
  default     = "10.52.0.0/16"

  validation {
    condition     = can(cidrhost(var.pods_cidr, 0)) && can(regex("/(9|1[0-9]|2[01])$", var.pods_cidr))
    error_message = "The pods' range is an IPv4 CIDR block from /9 to /21, such as 10.52.0.0/16."
  }
}

variable "services_cidr" {
  type        = string
  description = "The secondary range of the Kubernetes services."
  default     = "10.54.0.0/20"

  validation {
    condition     = can(cidrhost(var.services_cidr, 0)) && can(regex("/(1[6-9]|2[0-7])$", var.services_cidr))
    error_message = "The services' range is an IPv4 CIDR block from /16 to /27, such as 10.54.0.0/20."
  }
}

variable "database_cidr" {
  type        = string
  description = "The range that Google places the database in, through private service access."
  default     = "10.56.0.0/20"

  validation {
    condition     = can(cidrhost(var.database_cidr, 0)) && can(regex("/(1[6-9]|2[0-4])$", var.database_cidr))
    error_message = "The database's range is an IPv4 CIDR block from /16 to /24, such as 10.56.0.0/20."
  }
}

variable "flow_logs" {
  type        = bool
  description = "Record a sample of the subnet's traffic, and the errors of Cloud NAT, in Cloud Logging."
  default     = true
}

# Cluster

variable "release_channel" {
  type        = string
  description = "The release channel, which decides how soon the cluster and its nodes upgrade automatically."
  default     = "REGULAR"

  validation {
    condition     = contains(["RAPID", "REGULAR", "STABLE", "EXTENDED"], var.release_channel)
    error_message = "The release channel is RAPID, REGULAR, STABLE or EXTENDED."
  }
}

variable "cluster_zones" {
  type        = list(string)
  description = "The zones of the nodes, such as europe-west3-a. Empty: Google picks three of the region. Fewer zones are cheaper."
  default     = []

  validation {
    condition     = alltrue([for zone in var.cluster_zones : can(regex("^[a-z]+-[a-z]+[0-9]+-[a-z]$", zone))])
    error_message = "Each zone is written as Google writes it, such as europe-west3-a."
  }
}

variable "cluster_endpoint_public" {
  type        = bool
  description = "Make the cluster's API reachable from the internet, not only from the VPC. If false, the runner must be in the VPC to install Argo CD."
  default     = true
}

variable "cluster_endpoint_cidrs" {
  type        = list(string)
  description = "CIDR blocks that may reach the public API endpoint. Narrow them to your offices and runners."
  default     = ["0.0.0.0/0"]

  validation {
    condition     = length(var.cluster_endpoint_cidrs) > 0 && alltrue([for cidr in var.cluster_endpoint_cidrs : can(cidrhost(cidr, 0))])
    error_message = "Give at least one CIDR block, such as 198.51.100.0/24. To close the endpoint, set cluster_endpoint_public to false."
  }
}

variable "cluster_secrets_key" {
  type        = string
  description = "A Cloud KMS key in the region, by its full name, with which GKE also encrypts Kubernetes secrets. Empty: Google's own encryption at rest only."
  default     = ""

  validation {
    condition     = var.cluster_secrets_key == "" || can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.cluster_secrets_key))
    error_message = "The key has the form projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY."
  }
}

# Nodes

variable "node_machine_type" {
  type        = string
  description = "The machine type of the general node pool."
  default     = "e2-standard-4"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]*-[a-z0-9-]+$", var.node_machine_type))
    error_message = "The machine type is written as Google writes it, such as e2-standard-4."
  }
}

variable "node_spot" {
  type        = bool
  description = "Use Spot machines for the general pool: far cheaper, and taken back at 30 seconds' notice."
  default     = false
}

variable "node_min_per_zone" {
  type        = number
  description = "The minimum number of nodes of the general pool in each zone."
  default     = 1

  validation {
    condition     = var.node_min_per_zone >= 1 && floor(var.node_min_per_zone) == var.node_min_per_zone
    error_message = "The cluster needs at least one node in each zone."
  }
}

variable "node_max_per_zone" {
  type        = number
  description = "The maximum number of nodes of the general pool in each zone; GKE adds and removes them by need."
  default     = 3

  validation {
    condition     = var.node_max_per_zone >= 1 && var.node_max_per_zone <= 1000
    error_message = "A pool has 1 to 1000 nodes in each zone."
  }
}

variable "node_disk_gb" {
  type        = number
  description = "The size of each node's disk in GB."
  default     = 50

  validation {
    condition     = var.node_disk_gb >= 20 && var.node_disk_gb <= 65536
    error_message = "A node's disk has 20 to 65536 GB."
  }
}

variable "extra_node_pools" {
  type = map(object({
    machine_type = string
    spot         = optional(bool, false)
    min_per_zone = optional(number, 0)
    max_per_zone = optional(number, 3)
    disk_gb      = optional(number, 50)
    labels       = optional(map(string), {})
    taints       = optional(map(string), {})
  }))
  description = "More node pools by name. A taint gives a key its value:EFFECT, and the effect is NO_SCHEDULE, PREFER_NO_SCHEDULE or NO_EXECUTE."
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.extra_node_pools) : can(regex("^[a-z][a-z0-9-]{0,11}$", name)) && name != "general"])
    error_message = "A pool's name has up to 12 characters of a-z, 0-9 and hyphens, and is not general, which exists already."
  }

  validation {
    condition = alltrue(flatten([
      for pool in values(var.extra_node_pools) : [
        for taint in values(pool.taints) : can(regex(":(NO_SCHEDULE|PREFER_NO_SCHEDULE|NO_EXECUTE)$", taint))
      ]
    ]))
    error_message = "A taint gives a key its value:EFFECT, and the effect is NO_SCHEDULE, PREFER_NO_SCHEDULE or NO_EXECUTE."
  }
}

# Database

variable "database_version" {
  type        = string
  description = "The major version of PostgreSQL."
  default     = "17"

  validation {
    condition     = contains(["15", "16", "17", "18"], var.database_version)
    error_message = "The PostgreSQL version is 15, 16, 17 or 18."
  }
}

variable "database_tier" {
  type        = string
  description = "The size of the database: db-custom-CPUS-MEGABYTES, or a shared-core tier for trying things out."
  default     = "db-custom-2-7680"

  validation {
    condition     = can(regex("^db-[a-z0-9-]+$", var.database_tier))
    error_message = "The tier begins with db-, such as db-custom-2-7680 for 2 CPUs and 7.5 GB."
  }
}

variable "database_high_availability" {
  type        = bool
  description = "Keep a standby in another zone, which takes over by itself. Doubles the cost of the database."
  default     = true
}

variable "database_storage_gb" {
  type        = number
  description = "The database's storage in GB to begin with."
  default     = 50

  validation {
    condition     = var.database_storage_gb >= 10 && var.database_storage_gb <= 65536
    error_message = "The storage has 10 to 65536 GB."
  }
}

variable "database_max_storage_gb" {
  type        = number
  description = "The maximum storage in GB for autoscaling."
  default     = 200

  validation {
    condition     = var.database_max_storage_gb >= 10 && var.database_max_storage_gb <= 65536
    error_message = "The storage has 10 to 65536 GB."
  }
}

variable "database_name" {
  type        = string
  description = "The name of the first database."
  default     = "app"

  validation {
    condition     = can(regex("^[a-z][a-z0-9_]{0,62}$", var.database_name)) && var.database_name != "postgres"
    error_message = "The database's name starts with a letter, has up to 63 characters of a-z, 0-9 and underscores, and is not postgres, which exists already."
  }
}

variable "database_username" {
  type        = string
  description = "The name of the database's user. Its password is made here and kept in Secret Manager."
  default     = "platform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9_]{0,62}$", var.database_username)) && var.database_username != "postgres"
    error_message = "The user's name starts with a letter, has up to 63 characters of a-z, 0-9 and underscores, and is not postgres, which exists already."
  }
}

variable "database_backup_days" {
  type        = number
  description = "The number of daily backups to keep."
  default     = 14

  validation {
    condition     = var.database_backup_days >= 1 && var.database_backup_days <= 365
    error_message = "Cloud SQL keeps 1 to 365 daily backups."
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

variable "parent_zone_name" {
  type        = string
  description = "The Cloud DNS zone of the parent domain, in this project, which then delegates to the new zone. Empty: you delegate by hand."
  default     = ""

  validation {
    condition     = var.parent_zone_name == "" || can(regex("^[a-z][a-z0-9-]{0,62}$", var.parent_zone_name))
    error_message = "The zone is given by its name in Cloud DNS, such as your-company-com, not by its domain."
  }
}

# Argo CD

variable "install_argocd" {
  type        = bool
  description = "Install Argo CD in the cluster as the last step. The runner needs gke-gcloud-auth-plugin and has to reach the cluster's API."
  default     = true
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
  description = "The audience of Argo CD's load balancer: internal, the VPC and networks connected to it; public, the networks in argocd_allowed_cidrs."
  default     = "internal"

  validation {
    condition     = contains(["internal", "public"], var.argocd_exposure)
    error_message = "The exposure is internal or public."
  }
}

variable "argocd_allowed_cidrs" {
  type        = list(string)
  description = "From which networks Argo CD may be reached. Empty: from the platform's own ranges only, and then the exposure must be internal."
  default     = []

  validation {
    condition     = alltrue([for cidr in var.argocd_allowed_cidrs : can(cidrhost(cidr, 0))])
    error_message = "Each entry is a CIDR block, such as 198.51.100.0/24."
  }
}

variable "argocd_high_availability" {
  type        = bool
  description = "Two of each Argo CD component and a Redis of three. Needs three nodes."
  default     = false
}
