# Cloud SQL for PostgreSQL, with a private address only.

# The name of a deleted instance is taken for a week, so each gets one of its own.
resource "random_id" "database" {
  byte_length = 3
}

resource "google_sql_database_instance" "main" {
  name                = "${var.name}-${random_id.database.hex}"
  region              = var.region
  database_version    = "POSTGRES_${var.database_version}"
  deletion_protection = var.deletion_protection

  settings {
    tier = var.database_tier
    # Named because newer versions default to ENTERPRISE_PLUS, which has no db-custom tiers.
    edition                     = "ENTERPRISE"
    availability_type           = var.database_high_availability ? "REGIONAL" : "ZONAL"
    deletion_protection_enabled = var.deletion_protection
    retain_backups_on_delete    = true
    user_labels                 = local.labels

    disk_type             = "PD_SSD"
    disk_size             = var.database_storage_gb
    disk_autoresize       = true
    disk_autoresize_limit = var.database_max_storage_gb

    ip_configuration {
      ipv4_enabled       = false
      private_network    = google_compute_network.main.id
      allocated_ip_range = google_compute_global_address.database.name
      ssl_mode           = "ENCRYPTED_ONLY"
    }

    backup_configuration {
      enabled                        = true
      start_time                     = "02:00"
      point_in_time_recovery_enabled = true
      # The ENTERPRISE edition keeps seven days at most.
      transaction_log_retention_days = min(7, var.database_backup_days)

      backup_retention_settings {
        retained_backups = var.database_backup_days
        retention_unit   = "COUNT"
      }
    }

    maintenance_window {
      day          = 7
      hour         = 3
      update_track = "stable"
    }

    insights_config {
      query_insights_enabled  = true
      record_application_tags = true
      record_client_address   = false
    }

    database_flags {
      name  = "cloudsql.iam_authentication"
      value = "on"
    }

    database_flags {
      name  = "log_min_duration_statement"
      value = "1000"
    }
  }

  lifecycle {
    # It grows by itself; Terraform would want to shrink it back, which means a new database.
    ignore_changes = [settings[0].disk_size]

    precondition {
      condition     = var.database_max_storage_gb >= var.database_storage_gb
      error_message = "database_max_storage_gb is smaller than database_storage_gb. Raise the maximum or lower the storage."
    }
  }

  depends_on = [google_service_networking_connection.database]
}

resource "google_sql_database" "main" {
  name     = var.database_name
  instance = google_sql_database_instance.main.name

  # It goes with its instance. Dropping it before would fail while anything is connected.
  deletion_policy = "ABANDON"
}

resource "random_password" "database" {
  length  = 32
  special = false
}

resource "google_sql_user" "main" {
  name     = var.database_username
  instance = google_sql_database_instance.main.name
  password = random_password.database.result

  # A user who owns tables cannot be dropped.
  deletion_policy = "ABANDON"
}

resource "google_secret_manager_secret" "database" {
  secret_id = "${var.name}-database-${random_id.database.hex}"

  # In one region, as the rest of the platform.
  replication {
    user_managed {
      replicas {
        location = var.region
      }
    }
  }

  depends_on = [google_project_service.required]
}

resource "google_secret_manager_secret_version" "database" {
  secret = google_secret_manager_secret.database.id
  secret_data = jsonencode({
    host     = google_sql_database_instance.main.private_ip_address
    port     = 5432
    dbname   = google_sql_database.main.name
    username = google_sql_user.main.name
    password = random_password.database.result
  })
}
