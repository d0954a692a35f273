# Managed node groups: the general one, and those of extra_node_groups.

locals {
  ami_types = {
    x86_64 = "AL2023_x86_64_STANDARD"
    arm64  = "AL2023_ARM_64_STANDARD"
  }

  node_groups = merge(var.extra_node_groups, {
    general = {
      instance_types = var.node_instance_types
      architecture   = var.node_architecture
      capacity_type  = var.node_capacity_type
      min_size       = var.node_min_size
      max_size       = var.node_max_size
      disk_gb        = var.node_disk_gb
      labels         = {}
      taints         = {}
    }
  })
}

data "aws_iam_policy_document" "nodes_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

# The network add-on has a role of its own, so pods on a node gain nothing from the node's.
resource "aws_iam_role" "nodes" {
  name_prefix        = "${var.name}-nodes-"
  assume_role_policy = data.aws_iam_policy_document.nodes_trust.json
}

resource "aws_iam_role_policy_attachment" "nodes" {
  for_each = toset([
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
  ])

  role       = aws_iam_role.nodes.name
  policy_arn = "${local.policy_prefix}/${each.value}"
}

resource "aws_launch_template" "nodes" {
  for_each = local.node_groups

  name_prefix            = "${var.name}-${each.key}-"
  description            = "Nodes of ${var.name}, group ${each.key}"
  update_default_version = true

  block_device_mappings {
    device_name = "/dev/xvda"

    ebs {
      volume_size           = each.value.disk_gb
      volume_type           = "gp3"
      encrypted             = true
      delete_on_termination = true
    }
  }

  # One hop: the instance's own credentials cannot be fetched from within a pod.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  # The provider's default tags do not reach what the template launches.
  dynamic "tag_specifications" {
    for_each = toset(["instance", "volume", "network-interface"])

    content {
      resource_type = tag_specifications.value
      tags          = merge(local.tags, { Name = "${var.name}-${each.key}" })
    }
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_eks_node_group" "main" {
  for_each = local.node_groups

  cluster_name           = aws_eks_cluster.main.name
  node_group_name_prefix = "${each.key}-"
  node_role_arn          = aws_iam_role.nodes.arn
  subnet_ids             = [for subnet in aws_subnet.private : subnet.id]
  version                = aws_eks_cluster.main.version
  ami_type               = lookup(local.ami_types, each.value.architecture, "unknown architecture")
  capacity_type          = each.value.capacity_type
  instance_types         = each.value.instance_types
  labels                 = merge(each.value.labels, { "platform/node-group" = each.key })

  launch_template {
    id      = aws_launch_template.nodes[each.key].id
    version = aws_launch_template.nodes[each.key].latest_version
  }

  scaling_config {
    min_size     = each.value.min_size
    max_size     = each.value.max_size
    desired_size = each.value.min_size
  }

  update_config {
    max_unavailable_percentage = 33
  }

  node_repair_config {
    enabled = true
  }

  dynamic "taint" {
    for_each = each.value.taints

    content {
      key    = taint.key
      value  = split(":", taint.value)[0]
      effect = split(":", taint.value)[1]
    }
  }

  lifecycle {
    create_before_destroy = true

    # An autoscaler in the cluster moves it between the minimum and the maximum.
    ignore_changes = [scaling_config[0].desired_size]

    precondition {
      condition     = each.value.min_size <= each.value.max_size
      error_message = "Node group ${each.key}: the smallest size is larger than the largest. Raise the maximum or lower the minimum."
    }

    precondition {
      condition     = contains(keys(local.ami_types), each.value.architecture)
      error_message = "Node group ${each.key}: the architecture is x86_64 or arm64."
    }
  }

  # Nodes that cannot pull images, or have no network add-on, never become ready.
  depends_on = [
    aws_eks_addon.before_nodes,
    aws_iam_role_policy_attachment.nodes,
    aws_route.private_nat,
    aws_route_table_association.private,
  ]
}
