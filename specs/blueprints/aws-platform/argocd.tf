# Argo CD, the last step: after the nodes and the add-ons, and the first to go.

locals {
  argocd_host = var.domain == "" ? null : "argocd.${var.domain}"

  # The service keeps TLS up to the pod. With a certificate the load balancer ends the browser's TLS and
  # begins its own to Argo CD; without one it passes the bytes on.
  argocd_certificate_annotations = var.argocd_certificate_arn == "" ? {} : {
    "service.beta.kubernetes.io/aws-load-balancer-ssl-cert"               = var.argocd_certificate_arn
    "service.beta.kubernetes.io/aws-load-balancer-ssl-ports"              = "443"
    "service.beta.kubernetes.io/aws-load-balancer-ssl-negotiation-policy" = "ELBSecurityPolicy-TLS13-1-2-2021-06"
    "service.beta.kubernetes.io/aws-load-balancer-backend-protocol"       = "ssl"
  }

  # A comma or an equals sign would end the tag in the annotation.
  argocd_tags = join(",", [for key, value in local.tags : "${key}=${value}" if !can(regex("[,=]", "${key}${value}"))])

  argocd_annotations = merge(local.argocd_certificate_annotations, {
    "service.beta.kubernetes.io/aws-load-balancer-type"                     = "nlb"
    "service.beta.kubernetes.io/aws-load-balancer-internal"                 = var.argocd_exposure == "internal" ? "true" : "false"
    "service.beta.kubernetes.io/aws-load-balancer-additional-resource-tags" = local.argocd_tags
  })

  argocd_replicas = var.argocd_high_availability ? 2 : 1
}

resource "helm_release" "argocd" {
  count = var.install_argocd ? 1 : 0

  name             = "argocd"
  namespace        = "argocd"
  create_namespace = true
  repository       = "https://argoproj.github.io/argo-helm"
  chart            = "argo-cd"
  version          = var.argocd_chart_version

  # Waits until the pods are ready and the load balancer has an address; a failed install is taken back.
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
        loadBalancerSourceRanges = length(var.argocd_allowed_cidrs) > 0 ? var.argocd_allowed_cidrs : [var.vpc_cidr]
      }
    }
  })]

  lifecycle {
    precondition {
      condition     = var.argocd_exposure == "internal" || length(var.argocd_allowed_cidrs) > 0
      error_message = "Argo CD would be public with nobody allowed in. Name the networks in argocd_allowed_cidrs, or set argocd_exposure to internal."
    }

    precondition {
      condition     = var.argocd_certificate_arn == "" || var.domain != ""
      error_message = "The certificate is for argocd.DOMAIN, and there is no domain. Set domain, or leave argocd_certificate_arn empty."
    }
  }

  # Uninstalling removes the load balancer, for which the cluster, its nodes and its routes still have to work.
  depends_on = [
    aws_eks_access_policy_association.admin,
    aws_eks_addon.after_nodes,
    aws_eks_addon.ebs_csi,
    aws_eks_node_group.main,
    aws_route_table_association.public,
  ]
}

# The address is chosen by AWS when the service is made.
data "kubernetes_service_v1" "argocd" {
  count = var.install_argocd ? 1 : 0

  metadata {
    name      = "argocd-server"
    namespace = "argocd"
  }

  depends_on = [helm_release.argocd]
}

locals {
  argocd_address = one([
    for service in data.kubernetes_service_v1.argocd : service.status[0].load_balancer[0].ingress[0].hostname
  ])
}

resource "aws_route53_record" "argocd" {
  count = var.install_argocd && var.domain != "" ? 1 : 0

  zone_id = local.dns_zone_id
  name    = local.argocd_host
  type    = "CNAME"
  ttl     = 60
  records = [local.argocd_address]
}
