# Node pools for workloads: the general one, and those of extra_node_pools.

locals {
  node_pools = merge(var.extra_node_pools, {
    general = {
      size      = var.node_size
      spot      = var.node_spot
      min_count = var.node_min_count
      max_count = var.node_max_count
      disk_gb   = var.node_disk_gb
      labels    = {}
      taints    = []
    }
  })

  # AKS puts these on Spot machines itself; without them here Terraform would want to take them off.
  spot_label = { "kubernetes.azure.com/scalesetpriority" = "spot" }
  spot_taint = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"
}

resource "azurerm_kubernetes_cluster_node_pool" "main" {
  for_each = local.node_pools

  name                        = each.key
  kubernetes_cluster_id       = azurerm_kubernetes_cluster.main.id
  mode                        = "User"
  vm_size                     = each.value.size
  vnet_subnet_id              = azurerm_subnet.nodes.id
  zones                       = var.zones
  auto_scaling_enabled        = true
  min_count                   = each.value.min_count
  max_count                   = each.value.max_count
  os_disk_size_gb             = each.value.disk_gb
  os_sku                      = "Ubuntu"
  priority                    = each.value.spot ? "Spot" : "Regular"
  eviction_policy             = each.value.spot ? "Delete" : null
  node_labels                 = merge(each.value.labels, { "node-group" = each.key }, each.value.spot ? local.spot_label : {})
  node_taints                 = each.value.spot ? concat(each.value.taints, [local.spot_taint]) : each.value.taints
  temporary_name_for_rotation = "${each.key}tmp"
  tags                        = local.tags

  # Spot machines are replaced as they are evicted, so Azure refuses surge for them.
  dynamic "upgrade_settings" {
    for_each = each.value.spot ? [] : [1]

    content {
      max_surge                     = "33%"
      drain_timeout_in_minutes      = 30
      node_soak_duration_in_minutes = 0
    }
  }

  lifecycle {
    # The autoscaler's, and moved by the upgrade channel.
    ignore_changes = [node_count, orchestrator_version]

    precondition {
      condition     = each.value.min_count <= each.value.max_count
      error_message = "Node pool ${each.key}: the smallest size is larger than the largest. Raise the maximum or lower the minimum."
    }
  }
}
