# Argo CD, the last step: after the nodes, and the first to go.

locals {
  argocd_host     = var.domain == "" ? null : "argocd.${var.domain}"
  argocd_public   = var.install_argocd && var.argocd_exposure == "public"
  argocd_replicas = var.argocd_high_availability ? 2 : 1

  # Internal: near the end of the subnet, where nodes, which are numbered from its beginning, do not come.
  argocd_internal_address = cidrhost(local.nodes_cidr, -10)
  argocd_address          = local.argocd_public ? azurerm_public_ip.argocd[0].ip_address : local.argocd_internal_address

  argocd_annotations = {
    "service.beta.kubernetes.io/azure-load-balancer-internal"       = local.argocd_public ? "false" : "true"
    "service.beta.kubernetes.io/azure-load-balancer-ipv4"           = local.argocd_address
    "service.beta.kubernetes.io/azure-load-balancer-resource-group" = azurerm_resource_group.main.name
  }
}

resource "azurerm_public_ip" "argocd" {
  count = local.argocd_public ? 1 : 0

  name                = "${var.name}-argocd"
  resource_group_name = azurerm_resource_group.main.name
  location            = azurerm_resource_group.main.location
  allocation_method   = "Static"
  sku                 = "Standard"
  zones               = var.zones
  tags                = local.tags
}

# For the cluster to attach the address to its load balancer.
resource "azurerm_role_assignment" "cluster_argocd_address" {
  count = local.argocd_public ? 1 : 0

  scope                            = azurerm_public_ip.argocd[0].id
  role_definition_name             = "Network Contributor"
  principal_id                     = azurerm_user_assigned_identity.cluster.principal_id
  principal_type                   = "ServicePrincipal"
  skip_service_principal_aad_check = true
}

# Like the vault's, the role in the cluster takes effect after a minute or two.
resource "time_sleep" "cluster_role_takes_effect" {
  create_duration = "120s"

  triggers = {
    assignment = azurerm_role_assignment.deployer.id
  }
}

resource "helm_release" "argocd" {
  count = var.install_argocd ? 1 : 0

  name             = "argocd"
  namespace        = "argocd"
  create_namespace = true
  repository       = "https://argoproj.github.io/argo-helm"
  chart            = "argo-cd"
  version          = var.argocd_chart_version

  # Waits until the pods are ready and the load balancer has its address; a failed install is taken back.
  wait    = true
  atomic  = true
  timeout = 900

  values = [yamlencode({
    global = {
      domain = coalesce(local.argocd_host, "argocd.${var.name}.internal")
      # On Spot machines only what accepts the taint runs, and there may be no others.
      tolerations = var.node_spot ? [{ key = "kubernetes.azure.com/scalesetpriority", operator = "Equal", value = "spot", effect = "NoSchedule" }] : []
    }
    redis-ha       = { enabled = var.argocd_high_availability }
    repoServer     = { replicas = local.argocd_replicas }
    applicationSet = { replicas = local.argocd_replicas }
    server = {
      replicas = local.argocd_replicas
      service = {
        type                     = "LoadBalancer"
        annotations              = local.argocd_annotations
        loadBalancerSourceRanges = length(var.argocd_allowed_cidrs) > 0 ? var.argocd_allowed_cidrs : [var.vnet_cidr]
      }
    }
  })]

  lifecycle {
    precondition {
      condition     = var.argocd_exposure == "internal" || length(var.argocd_allowed_cidrs) > 0
      error_message = "Argo CD would be public with nobody allowed in. Name the networks in argocd_allowed_cidrs, or set argocd_exposure to internal."
    }
  }

  # Uninstalling removes the load balancer, for which the cluster and its nodes still have to work.
  depends_on = [
    azurerm_kubernetes_cluster_node_pool.main,
    azurerm_role_assignment.cluster_argocd_address,
    time_sleep.cluster_role_takes_effect,
  ]
}

resource "azurerm_dns_a_record" "argocd" {
  count = var.install_argocd && var.domain != "" ? 1 : 0

  name                = "argocd"
  zone_name           = azurerm_dns_zone.main[0].name
  resource_group_name = azurerm_resource_group.main.name
  ttl                 = 60
  records             = [local.argocd_address]
  tags                = local.tags
}
