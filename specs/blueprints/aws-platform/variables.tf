# General

variable "name" {
  type        = string
  description = "The name prefix of every resource; unique in the account and region."
  default     = "platform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]*(-[a-z0-9]+)*$", var.name)) && length(var.name) >= 3 && length(var.name) <= 24
    error_message = "The name has 3 to 24 characters of a-z, 0-9 and single hyphens, starts with a letter and does not end with a hyphen."
  }
}

variable "region" {
  type        = string
  description = "The AWS region that the platform is built in."
  default     = "eu-central-1"

  validation {
    condition     = can(regex("^[a-z]{2,3}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "The region is written as AWS writes it, such as eu-central-1 or us-east-1."
  }
}

variable "tags" {
  type        = map(string)
  description = "Tags that every resource carries, such as a cost centre or an owner."
  default     = {}

  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(lower(key), "aws:")])
    error_message = "AWS keeps tag keys that begin with aws: for itself. Choose another key."
  }
}

variable "deletion_protection" {
  type        = bool
  description = "Refuse to destroy the platform. Set it to false and deploy before you destroy."
  default     = true
}

variable "log_retention_days" {
  type        = number
  description = "Days to keep flow logs, control plane logs and database logs in CloudWatch."
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827], var.log_retention_days)
    error_message = "CloudWatch keeps logs for 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096 or 1827 days."
  }
}

# Network

variable "vpc_cidr" {
  type        = string
  description = "The address range of the VPC. Half of it goes to the private subnets, where the pods are."
  default     = "10.40.0.0/16"

  validation {
    condition     = can(cidrhost(var.vpc_cidr, 0)) && can(regex("/(1[6-9]|20)$", var.vpc_cidr))
    error_message = "The VPC's range is an IPv4 CIDR block from /16 to /20, such as 10.40.0.0/16."
  }
}

variable "zone_count" {
  type        = number
  description = "The number of availability zones that the subnets span."
  default     = 3

  validation {
    condition     = contains([2, 3, 4], var.zone_count)
    error_message = "The platform spans 2, 3 or 4 zones: EKS and Multi-AZ databases need two at least."
  }
}

variable "nat_gateway_per_zone" {
  type        = bool
  description = "One NAT gateway in each zone, which survives the loss of a zone, rather than one for all, which is cheaper."
  default     = false
}

variable "flow_logs" {
  type        = bool
  description = "Record the VPC's traffic in CloudWatch."
  default     = true
}

# Cluster

variable "kubernetes_version" {
  type        = string
  description = "The Kubernetes version of the cluster and its nodes. It goes up one minor version at a time and never down."
  default     = "1.35"

  validation {
    condition     = can(regex("^1\\.[0-9]{2}$", var.kubernetes_version))
    error_message = "The Kubernetes version has the form 1.NN, such as 1.35."
  }
}

variable "kubernetes_support" {
  type        = string
  description = "STANDARD upgrades the cluster by itself when its version's support ends; EXTENDED keeps the version and costs more from then on."
  default     = "STANDARD"

  validation {
    condition     = contains(["STANDARD", "EXTENDED"], var.kubernetes_support)
    error_message = "The support is STANDARD or EXTENDED."
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

variable "cluster_admin_arns" {
  type        = list(string)
  description = "IAM roles and users that administer the cluster, by ARN. The identity that creates it does already and must not be listed."
  default     = []

  validation {
    condition     = alltrue([for arn in var.cluster_admin_arns : can(regex("^arn:[a-z-]+:iam::[0-9]{12}:(role|user)/.+$", arn))])
    error_message = "Each entry is the ARN of an IAM role or user, such as arn:aws:iam::123456789012:role/platform-admins."
  }
}

variable "cluster_log_types" {
  type        = list(string)
  description = "The types of control plane logs to keep."
  default     = ["api", "audit", "authenticator"]

  validation {
    condition = alltrue([
      for type in var.cluster_log_types : contains(["api", "audit", "authenticator", "controllerManager", "scheduler"], type)
    ])
    error_message = "EKS has the logs api, audit, authenticator, controllerManager and scheduler."
  }
}

# Nodes

variable "node_architecture" {
  type        = string
  description = "The processor of the nodes; the instance types have to match. arm64 (Graviton) is usually cheaper."
  default     = "x86_64"

  validation {
    condition     = contains(["x86_64", "arm64"], var.node_architecture)
    error_message = "The architecture is x86_64 or arm64."
  }
}

variable "node_instance_types" {
  type        = list(string)
  description = "Instance types of the general node group, in order of preference."
  default     = ["m7i.large"]

  validation {
    condition     = length(var.node_instance_types) > 0
    error_message = "Name at least one instance type, such as m7i.large."
  }
}

variable "node_capacity_type" {
  type        = string
  description = "ON_DEMAND, or SPOT: far cheaper, and taken back at two minutes' notice."
  default     = "ON_DEMAND"

  validation {
    condition     = contains(["ON_DEMAND", "SPOT"], var.node_capacity_type)
    error_message = "The capacity type is ON_DEMAND or SPOT."
  }
}

variable "node_min_size" {
  type        = number
  description = "The minimum number of nodes of the general group."
  default     = 2

  validation {
    condition     = var.node_min_size >= 1 && floor(var.node_min_size) == var.node_min_size
    error_message = "The cluster needs at least one node."
  }
}

variable "node_max_size" {
  type        = number
  description = "The maximum number of nodes of the general group."
  default     = 6

  validation {
    condition     = var.node_max_size >= 1 && var.node_max_size <= 450
    error_message = "A managed node group has 1 to 450 nodes."
  }
}

variable "node_disk_gb" {
  type        = number
  description = "The size of each node's disk in GB."
  default     = 50

  validation {
    condition     = var.node_disk_gb >= 20 && var.node_disk_gb <= 16384
    error_message = "A node's disk has 20 to 16384 GB."
  }
}

variable "extra_node_groups" {
  type = map(object({
    instance_types = list(string)
    architecture   = optional(string, "x86_64")
    capacity_type  = optional(string, "ON_DEMAND")
    min_size       = optional(number, 0)
    max_size       = optional(number, 3)
    disk_gb        = optional(number, 50)
    labels         = optional(map(string), {})
    taints         = optional(map(string), {})
  }))
  description = "More node groups by name. A taint gives a key its value:EFFECT, and the effect is NO_SCHEDULE, PREFER_NO_SCHEDULE or NO_EXECUTE."
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.extra_node_groups) : can(regex("^[a-z][a-z0-9-]{0,19}$", name)) && name != "general"])
    error_message = "A group's name has up to 20 characters of a-z, 0-9 and hyphens, and is not general, which exists already."
  }

  validation {
    condition = alltrue(flatten([
      for group in values(var.extra_node_groups) : [
        for taint in values(group.taints) : can(regex(":(NO_SCHEDULE|PREFER_NO_SCHEDULE|NO_EXECUTE)$", taint))
      ]
    ]))
    error_message = "A taint gives a key its value:EFFECT, and the effect is NO_SCHEDULE, PREFER_NO_SCHEDULE or NO_EXECUTE."
  }
}

# Database

variable "database_version" {
  type        = string
  description = "The major version of PostgreSQL. RDS applies minor versions in the maintenance window."
  default     = "17"

  validation {
    condition     = contains(["15", "16", "17", "18"], var.database_version)
    error_message = "The PostgreSQL version is 15, 16, 17 or 18."
  }
}

variable "database_instance_class" {
  type        = string
  description = "The size of the database instance."
  default     = "db.t4g.medium"

  validation {
    condition     = can(regex("^db\\.[a-z0-9]+\\.[a-z0-9]+$", var.database_instance_class))
    error_message = "The instance class has the form db.FAMILY.SIZE, such as db.t4g.medium."
  }
}

variable "database_storage_gb" {
  type        = number
  description = "The database's storage in GB to begin with."
  default     = 50

  validation {
    condition     = var.database_storage_gb >= 20 && var.database_storage_gb <= 65536
    error_message = "The storage has 20 to 65536 GB."
  }
}

variable "database_max_storage_gb" {
  type        = number
  description = "The maximum storage in GB for autoscaling. The same value as the storage disables autoscaling."
  default     = 200

  validation {
    condition     = var.database_max_storage_gb >= 20 && var.database_max_storage_gb <= 65536
    error_message = "The storage has 20 to 65536 GB."
  }
}

variable "database_multi_az" {
  type        = bool
  description = "Keep a standby in another zone, which takes over by itself. Doubles the cost of the database."
  default     = true
}

variable "database_name" {
  type        = string
  description = "The name of the first database."
  default     = "app"

  validation {
    condition     = can(regex("^[a-z][a-z0-9_]{0,62}$", var.database_name))
    error_message = "The database's name starts with a letter and has up to 63 characters of a-z, 0-9 and underscores."
  }
}

variable "database_username" {
  type        = string
  description = "The name of the master user. RDS makes its password and keeps it in Secrets Manager."
  default     = "platform"

  validation {
    condition     = can(regex("^[a-z][a-z0-9_]{0,62}$", var.database_username)) && !contains(["admin", "rdsadmin", "postgres"], var.database_username)
    error_message = "The user's name starts with a letter, has up to 63 characters of a-z, 0-9 and underscores, and is not admin, rdsadmin or postgres."
  }
}

variable "database_backup_days" {
  type        = number
  description = "Days of point-in-time recovery."
  default     = 14

  validation {
    condition     = var.database_backup_days >= 1 && var.database_backup_days <= 35
    error_message = "RDS keeps automatic backups for 1 to 35 days."
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
  description = "The Route 53 zone of the parent domain, in this account, which then delegates to the new zone. Empty: you delegate by hand."
  default     = ""

  validation {
    condition     = var.parent_zone_id == "" || can(regex("^Z[A-Z0-9]{4,31}$", var.parent_zone_id))
    error_message = "A zone id begins with Z and has capital letters and digits."
  }
}

# Argo CD

variable "install_argocd" {
  type        = bool
  description = "Install Argo CD in the cluster as the last step. The runner needs the aws command and has to reach the cluster's API."
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
  description = "From which networks Argo CD may be reached. Empty: from the VPC only, and then the exposure must be internal."
  default     = []

  validation {
    condition     = alltrue([for cidr in var.argocd_allowed_cidrs : can(cidrhost(cidr, 0))])
    error_message = "Each entry is a CIDR block, such as 198.51.100.0/24."
  }
}

variable "argocd_certificate_arn" {
  type        = string
  description = "An ACM certificate for argocd.DOMAIN, in this region. Empty: Argo CD signs its own, which browsers warn about."
  default     = ""

  validation {
    condition     = var.argocd_certificate_arn == "" || can(regex("^arn:[a-z-]+:acm:[a-z0-9-]+:[0-9]{12}:certificate/.+$", var.argocd_certificate_arn))
    error_message = "The certificate is given by its ARN, such as arn:aws:acm:eu-central-1:123456789012:certificate/…"
  }
}

variable "argocd_high_availability" {
  type        = bool
  description = "Two of each Argo CD component and a Redis of three. Needs three nodes."
  default     = false
}
