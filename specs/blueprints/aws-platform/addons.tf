# EKS add-ons, at the version that EKS recommends for the cluster's own, and their IAM roles.

data "aws_eks_addon_version" "recommended" {
  for_each = toset(["vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns", "aws-ebs-csi-driver", "metrics-server"])

  addon_name         = each.value
  kubernetes_version = var.kubernetes_version
}

locals {
  addon_versions = { for name, addon in data.aws_eks_addon_version.recommended : name => addon.version }
  oidc_issuer    = trimprefix(aws_eks_cluster.main.identity[0].oidc[0].issuer, "https://")
}

# The network add-on has to work before pod identity does, so its role comes through the OIDC provider.
data "aws_iam_policy_document" "vpc_cni_trust" {
  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]

    principals {
      type        = "Federated"
      identifiers = [aws_iam_openid_connect_provider.cluster.arn]
    }

    condition {
      test     = "StringEquals"
      variable = "${local.oidc_issuer}:sub"
      values   = ["system:serviceaccount:kube-system:aws-node"]
    }

    condition {
      test     = "StringEquals"
      variable = "${local.oidc_issuer}:aud"
      values   = ["sts.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "vpc_cni" {
  name_prefix        = "${var.name}-vpc-cni-"
  assume_role_policy = data.aws_iam_policy_document.vpc_cni_trust.json
}

resource "aws_iam_role_policy_attachment" "vpc_cni" {
  role       = aws_iam_role.vpc_cni.name
  policy_arn = "${local.policy_prefix}/AmazonEKS_CNI_Policy"
}

# Everything else gets its role by pod identity.
data "aws_iam_policy_document" "pod_identity_trust" {
  statement {
    actions = ["sts:AssumeRole", "sts:TagSession"]

    principals {
      type        = "Service"
      identifiers = ["pods.eks.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "ebs_csi" {
  name_prefix        = "${var.name}-ebs-csi-"
  assume_role_policy = data.aws_iam_policy_document.pod_identity_trust.json
}

resource "aws_iam_role_policy_attachment" "ebs_csi" {
  role       = aws_iam_role.ebs_csi.name
  policy_arn = "${local.policy_prefix}/service-role/AmazonEBSCSIDriverPolicy"
}

# These run on every node from its first minute.
resource "aws_eks_addon" "before_nodes" {
  for_each = {
    vpc-cni                = jsonencode({ enableNetworkPolicy = "true" })
    kube-proxy             = null
    eks-pod-identity-agent = null
  }

  cluster_name                = aws_eks_cluster.main.name
  addon_name                  = each.key
  addon_version               = local.addon_versions[each.key]
  configuration_values        = each.value
  service_account_role_arn    = each.key == "vpc-cni" ? aws_iam_role.vpc_cni.arn : null
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "OVERWRITE"

  depends_on = [aws_iam_role_policy_attachment.vpc_cni]
}

# These are pods like any other and count as installed only when they run, so there must be nodes.
resource "aws_eks_addon" "after_nodes" {
  for_each = toset(["coredns", "metrics-server"])

  cluster_name                = aws_eks_cluster.main.name
  addon_name                  = each.value
  addon_version               = local.addon_versions[each.value]
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "PRESERVE"

  depends_on = [aws_eks_node_group.main]
}

resource "aws_eks_addon" "ebs_csi" {
  cluster_name                = aws_eks_cluster.main.name
  addon_name                  = "aws-ebs-csi-driver"
  addon_version               = local.addon_versions["aws-ebs-csi-driver"]
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "PRESERVE"

  # The default storage class, encrypted gp3, is the driver's own.
  configuration_values = jsonencode({ defaultStorageClass = { enabled = true } })

  pod_identity_association {
    role_arn        = aws_iam_role.ebs_csi.arn
    service_account = "ebs-csi-controller-sa"
  }

  depends_on = [
    aws_eks_node_group.main,
    aws_iam_role_policy_attachment.ebs_csi,
  ]
}
