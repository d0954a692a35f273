# The AKS cluster: its identity, its system pool, sign-in by Entra, and its logs.

resource "azurerm_user_assigned_identity" "cluster" {
  name                = "${var.name}-cluster"
  resource_group_name = azurerm_resource_group.main.name
  location            = azurerm_resource_group.main.location
  tags                = local.tags
}

# To join nodes to the subnet and to put internal load balancers in it.
resource "azurerm_role_assignment" "cluster_network" {
  scope                            = azurerm_subnet.nodes.id
  role_definition_name             = "Network Contributor"
  principal_id                     = azurerm_user_assigned_identity.cluster.principal_id
  principal_type                   = "ServicePrincipal"
  skip_service_principal_aad_check = true
}

resource "azurerm_kubernetes_cluster" "main" {
  name                = var.name
  resource_group_name = azurerm_resource_group.main.name
  location            = azurerm_resource_group.main.location
  node_resource_group = "${var.name}-nodes"
  dns_prefix          = var.name
  kubernetes_version  = var.kubernetes_version == "" ? null : var.kubernetes_version
  sku_tier            = var.cluster_tier
  support_plan        = var.cluster_tier == "Premium" ? "AKSLongTermSupport" : "KubernetesOfficial"
  tags                = local.tags

  private_cluster_enabled = !var.cluster_endpoint_public

  # Entra is the only way in; there is no cluster-wide certificate to leak.
  local_account_disabled            = true
  role_based_access_control_enabled = true

  azure_active_directory_role_based_access_control {
    azure_rbac_enabled     = true
    tenant_id              = data.azurerm_client_config.current.tenant_id
    admin_group_object_ids = var.cluster_admin_group_ids
  }

  oidc_issuer_enabled       = true
  workload_identity_enabled = true
  azure_policy_enabled      = true

  automatic_upgrade_channel = "patch"
  node_os_upgrade_channel   = "NodeImage"

  identity {
    type         = "UserAssigned"
    identity_ids = [azurerm_user_assigned_identity.cluster.id]
  }

  # Without a profile the endpoint answers to everyone, which is what 0.0.0.0/0 asks for.
  dynamic "api_server_access_profile" {
    for_each = var.cluster_endpoint_public && !contains(var.cluster_endpoint_cidrs, "0.0.0.0/0") ? [1] : []

    content {
      authorized_ip_ranges = distinct(concat(var.cluster_endpoint_cidrs, ["${azurerm_public_ip.nat.ip_address}/32"]))
    }
  }

  default_node_pool {
    name                         = "system"
    vm_size                      = var.system_node_size
    vnet_subnet_id               = azurerm_subnet.nodes.id
    zones                        = var.zones
    auto_scaling_enabled         = true
    min_count                    = 2
    max_count                    = var.system_node_max
    os_disk_size_gb              = var.node_disk_gb
    os_sku                       = "Ubuntu"
    only_critical_addons_enabled = true
    temporary_name_for_rotation  = "systemtmp"
    tags                         = local.tags

    upgrade_settings {
      max_surge                     = "33%"
      drain_timeout_in_minutes      = 30
      node_soak_duration_in_minutes = 0
    }
  }

  network_profile {
    network_plugin      = "azure"
    network_plugin_mode = "overlay"
    network_data_plane  = "cilium"
    network_policy      = "cilium"
    outbound_type       = "userAssignedNATGateway"
    load_balancer_sku   = "standard"
    pod_cidr            = var.pods_cidr
    service_cidr        = var.services_cidr
    dns_service_ip      = cidrhost(var.services_cidr, 10)
  }

  # Secrets of the vault can be mounted into pods.
  key_vault_secrets_provider {
    secret_rotation_enabled  = true
    secret_rotation_interval = "2m"
  }

  maintenance_window_auto_upgrade {
    frequency   = "Weekly"
    interval    = 1
    day_of_week = "Sunday"
    start_time  = "02:00"
    duration    = 6
    utc_offset  = "+00:00"
  }

  maintenance_window_node_os {
    frequency   = "Weekly"
    interval    = 1
    day_of_week = "Saturday"
    start_time  = "02:00"
    duration    = 6
    utc_offset  = "+00:00"
  }

  lifecycle {
    ignore_changes = [
      # The autoscaler's.
      default_node_pool[0].node_count,
      # Moved by the upgrade channel between the versions that are asked for.
      default_node_pool[0].orchestrator_version,
    ]
  }

  depends_on = [
    azurerm_nat_gateway_public_ip_association.main,
    azurerm_role_assignment.cluster_network,
    azurerm_subnet_nat_gateway_association.nodes,
  ]
}

# Whoever deploys administers the cluster, to install Argo CD next.
resource "azurerm_role_assignment" "deployer" {
  scope                = azurerm_kubernetes_cluster.main.id
  role_definition_name = "Azure Kubernetes Service RBAC Cluster Admin"
  principal_id         = data.azurerm_client_config.current.object_id
}

# Control plane logs. The full audit log is large; kube-audit-admin leaves out what only reads.

resource "azurerm_log_analytics_workspace" "logs" {
  name                = var.name
  resource_group_name = azurerm_resource_group.main.name
  location            = azurerm_resource_group.main.location
  sku                 = "PerGB2018"
  retention_in_days   = var.log_retention_days
  tags                = local.tags
}

resource "azurerm_monitor_diagnostic_setting" "cluster" {
  name                           = "control-plane"
  target_resource_id             = azurerm_kubernetes_cluster.main.id
  log_analytics_workspace_id     = azurerm_log_analytics_workspace.logs.id
  log_analytics_destination_type = "Dedicated"

  dynamic "enabled_log" {
    for_each = toset(["kube-apiserver", "kube-audit-admin", "guard", "cluster-autoscaler"])

    content {
      category = enabled_log.value
    }
  }
}
