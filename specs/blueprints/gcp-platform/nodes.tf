# Node pools: the general one, and those of extra_node_pools.

locals {
  node_pools = merge(var.extra_node_pools, {
    general = {
      machine_type = var.node_machine_type
      spot         = var.node_spot
      min_per_zone = var.node_min_per_zone
      max_per_zone = var.node_max_per_zone
      disk_gb      = var.node_disk_gb
      labels       = {}
      taints       = {}
    }
  })
}

# The nodes' own account writes logs and metrics and pulls images, no more. Workloads have theirs.
resource "google_service_account" "nodes" {
  account_id   = "${var.name}-nodes"
  display_name = "Nodes of ${var.name}"

  depends_on = [google_project_service.required]
}

resource "google_project_iam_member" "nodes" {
  for_each = toset([
    "roles/artifactregistry.reader",
    "roles/container.defaultNodeServiceAccount",
  ])

  project = local.project
  role    = each.value
  member  = "serviceAccount:${google_service_account.nodes.email}"
}

resource "google_container_node_pool" "main" {
  for_each = local.node_pools

  name_prefix        = "${each.key}-"
  cluster            = google_container_cluster.main.id
  initial_node_count = each.value.min_per_zone

  autoscaling {
    min_node_count  = each.value.min_per_zone
    max_node_count  = each.value.max_per_zone
    location_policy = each.value.spot ? "ANY" : "BALANCED"
  }

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  upgrade_settings {
    strategy        = "SURGE"
    max_surge       = 1
    max_unavailable = 0
  }

  node_config {
    machine_type    = each.value.machine_type
    spot            = each.value.spot
    disk_size_gb    = each.value.disk_gb
    disk_type       = "pd-balanced"
    image_type      = "COS_CONTAINERD"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    labels          = merge(each.value.labels, { "node-group" = each.key })
    resource_labels = local.labels
    metadata        = { disable-legacy-endpoints = "true" }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    workload_metadata_config {
      mode = "GKE_METADATA"
    }

    dynamic "taint" {
      for_each = each.value.taints

      content {
        key    = taint.key
        value  = split(":", taint.value)[0]
        effect = split(":", taint.value)[1]
      }
    }
  }

  lifecycle {
    create_before_destroy = true

    # Only counts when the pool is made; afterwards it would replace the pool.
    ignore_changes = [initial_node_count]

    precondition {
      condition     = each.value.min_per_zone <= each.value.max_per_zone
      error_message = "Node pool ${each.key}: the smallest size is larger than the largest. Raise the maximum or lower the minimum."
    }
  }
}
