# Argo CD, the last step: after the nodes, and the first to go.

locals {
  argocd_host     = var.domain == "" ? null : "argocd.${var.domain}"
  argocd_internal = var.argocd_exposure == "internal"
  argocd_address  = one(google_compute_address.argocd[*].address)
  argocd_replicas = var.argocd_high_availability ? 2 : 1

  argocd_annotations = local.argocd_internal ? { "networking.gke.io/load-balancer-type" = "Internal" } : {}
}

# Reserved, so that the address is known before the load balancer is made and stays when it is made anew.
resource "google_compute_address" "argocd" {
  count = var.install_argocd ? 1 : 0

  name         = "${var.name}-argocd-${var.argocd_exposure}"
  region       = var.region
  address_type = local.argocd_internal ? "INTERNAL" : "EXTERNAL"
  subnetwork   = local.argocd_internal ? google_compute_subnetwork.nodes.id : null

  lifecycle {
    create_before_destroy = true
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
    global         = { domain = coalesce(local.argocd_host, "argocd.${var.name}.internal") }
    redis-ha       = { enabled = var.argocd_high_availability }
    repoServer     = { replicas = local.argocd_replicas }
    applicationSet = { replicas = local.argocd_replicas }
    server = {
      replicas = local.argocd_replicas
      service = {
        type                     = "LoadBalancer"
        annotations              = local.argocd_annotations
        loadBalancerIP           = local.argocd_address
        loadBalancerSourceRanges = length(var.argocd_allowed_cidrs) > 0 ? var.argocd_allowed_cidrs : [var.nodes_cidr, var.pods_cidr]
      }
    }
  })]

  lifecycle {
    precondition {
      condition     = local.argocd_internal || length(var.argocd_allowed_cidrs) > 0
      error_message = "Argo CD would be public with nobody allowed in. Name the networks in argocd_allowed_cidrs, or set argocd_exposure to internal."
    }
  }

  # Uninstalling removes the load balancer, for which the cluster and its nodes still have to work.
  depends_on = [google_container_node_pool.main]
}

resource "google_dns_record_set" "argocd" {
  count = var.install_argocd && var.domain != "" ? 1 : 0

  managed_zone = google_dns_managed_zone.main[0].name
  name         = "${local.argocd_host}."
  type         = "A"
  ttl          = 60
  rrdatas      = [local.argocd_address]
}
