# The GKE cluster, regional and with private nodes. Its node pools are in nodes.tf.

resource "google_container_cluster" "main" {
  name                = var.name
  location            = var.region
  node_locations      = length(var.cluster_zones) > 0 ? var.cluster_zones : null
  deletion_protection = var.deletion_protection
  resource_labels     = local.labels

  network         = google_compute_network.main.id
  subnetwork      = google_compute_subnetwork.nodes.id
  networking_mode = "VPC_NATIVE"

  # Dataplane V2 brings network policy along.
  datapath_provider = "ADVANCED_DATAPATH"

  # The pool that GKE insists on creating is removed at once; until then it must not use the project's
  # default service account, which is often disabled.
  remove_default_node_pool = true
  initial_node_count       = 1

  node_config {
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }

  ip_allocation_policy {
    cluster_secondary_range_name  = "pods"
    services_secondary_range_name = "services"
  }

  private_cluster_config {
    enable_private_nodes    = true
    enable_private_endpoint = !var.cluster_endpoint_public
  }

  # Without a block only the VPC gets in.
  master_authorized_networks_config {
    dynamic "cidr_blocks" {
      for_each = var.cluster_endpoint_public ? toset(var.cluster_endpoint_cidrs) : toset([])

      content {
        cidr_block   = cidr_blocks.value
        display_name = "from ${cidr_blocks.value}"
      }
    }
  }

  release_channel {
    channel = var.release_channel
  }

  # Saturdays and Sundays: GKE asks for at least 48 hours of maintenance in 32 days.
  maintenance_policy {
    recurring_window {
      start_time = "2026-01-03T01:00:00Z"
      end_time   = "2026-01-03T09:00:00Z"
      recurrence = "FREQ=WEEKLY;BYDAY=SA,SU"
    }
  }

  workload_identity_config {
    workload_pool = "${local.project}.svc.id.goog"
  }

  enable_shielded_nodes = true

  database_encryption {
    state    = var.cluster_secrets_key == "" ? "DECRYPTED" : "ENCRYPTED"
    key_name = var.cluster_secrets_key == "" ? null : var.cluster_secrets_key
  }

  # No client certificate: it could not be revoked.
  master_auth {
    client_certificate_config {
      issue_client_certificate = false
    }
  }

  security_posture_config {
    mode               = "BASIC"
    vulnerability_mode = "VULNERABILITY_DISABLED"
  }

  logging_config {
    enable_components = ["SYSTEM_COMPONENTS", "WORKLOADS"]
  }

  monitoring_config {
    enable_components = ["SYSTEM_COMPONENTS"]

    managed_prometheus {
      enabled = true
    }
  }

  gateway_api_config {
    channel = "CHANNEL_STANDARD"
  }

  addons_config {
    http_load_balancing {
      disabled = false
    }

    gce_persistent_disk_csi_driver_config {
      enabled = true
    }

    dns_cache_config {
      enabled = true
    }
  }

  # What the short-lived default pool looked like is of no interest afterwards.
  lifecycle {
    ignore_changes = [node_config, initial_node_count]
  }

  depends_on = [
    google_compute_router_nat.main,
    google_project_iam_member.nodes,
    google_project_service.required,
  ]
}
