# The EKS control plane: its role, its key for secrets, its logs, who may administer it.

data "aws_partition" "current" {}

locals {
  policy_prefix = "arn:${data.aws_partition.current.partition}:iam::aws:policy"
}

data "aws_iam_policy_document" "cluster_trust" {
  statement {
    actions = ["sts:AssumeRole", "sts:TagSession"]

    principals {
      type        = "Service"
      identifiers = ["eks.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "cluster" {
  name_prefix        = "${var.name}-cluster-"
  assume_role_policy = data.aws_iam_policy_document.cluster_trust.json
}

resource "aws_iam_role_policy_attachment" "cluster" {
  role       = aws_iam_role.cluster.name
  policy_arn = "${local.policy_prefix}/AmazonEKSClusterPolicy"
}

# Kubernetes secrets are encrypted in etcd with this key. Without it they cannot be read, so it waits 30 days.
resource "aws_kms_key" "cluster" {
  description             = "Kubernetes secrets of ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
}

resource "aws_kms_alias" "cluster" {
  name          = "alias/${var.name}-cluster"
  target_key_id = aws_kms_key.cluster.key_id
}

data "aws_iam_policy_document" "cluster_key" {
  statement {
    actions   = ["kms:Encrypt", "kms:Decrypt", "kms:ListGrants", "kms:DescribeKey"]
    resources = [aws_kms_key.cluster.arn]
  }
}

resource "aws_iam_role_policy" "cluster_key" {
  name   = "use-secrets-key"
  role   = aws_iam_role.cluster.id
  policy = data.aws_iam_policy_document.cluster_key.json
}

# EKS would make this group by itself, and keep its logs for ever.
resource "aws_cloudwatch_log_group" "cluster" {
  name              = "/aws/eks/${var.name}/cluster"
  retention_in_days = var.log_retention_days
}

resource "aws_eks_cluster" "main" {
  name                      = var.name
  version                   = var.kubernetes_version
  role_arn                  = aws_iam_role.cluster.arn
  enabled_cluster_log_types = var.cluster_log_types
  deletion_protection       = var.deletion_protection

  # The add-ons are resources of their own here, so EKS must not install unmanaged ones first.
  bootstrap_self_managed_addons = false

  vpc_config {
    subnet_ids              = [for subnet in aws_subnet.private : subnet.id]
    endpoint_private_access = true
    endpoint_public_access  = var.cluster_endpoint_public
    public_access_cidrs     = var.cluster_endpoint_public ? var.cluster_endpoint_cidrs : null
  }

  # Whoever creates the cluster administers it: the runner's identity, which installs Argo CD next.
  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = true
  }

  encryption_config {
    resources = ["secrets"]

    provider {
      key_arn = aws_kms_key.cluster.arn
    }
  }

  upgrade_policy {
    support_type = var.kubernetes_support
  }

  depends_on = [
    aws_cloudwatch_log_group.cluster,
    aws_iam_role_policy.cluster_key,
    aws_iam_role_policy_attachment.cluster,
  ]
}

resource "aws_eks_access_entry" "admin" {
  for_each = toset(var.cluster_admin_arns)

  cluster_name  = aws_eks_cluster.main.name
  principal_arn = each.value
}

resource "aws_eks_access_policy_association" "admin" {
  for_each = aws_eks_access_entry.admin

  cluster_name  = aws_eks_cluster.main.name
  principal_arn = each.value.principal_arn
  policy_arn    = "arn:${data.aws_partition.current.partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"

  access_scope {
    type = "cluster"
  }
}

# IAM trusts the cluster's own tokens, so a service account can have a role (IRSA).
resource "aws_iam_openid_connect_provider" "cluster" {
  url            = aws_eks_cluster.main.identity[0].oidc[0].issuer
  client_id_list = ["sts.amazonaws.com"]
}
