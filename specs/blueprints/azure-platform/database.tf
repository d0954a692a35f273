# PostgreSQL Flexible Server in a subnet of its own, found by a private DNS zone.

resource "azurerm_private_dns_zone" "database" {
  name                = "${var.name}.private.postgres.database.azure.com"
  resource_group_name = azurerm_resource_group.main.name
  tags                = local.tags
}

resource "azurerm_private_dns_zone_virtual_network_link" "database" {
  name                  = var.name
  resource_group_name   = azurerm_resource_group.main.name
  private_dns_zone_name = azurerm_private_dns_zone.database.name
  virtual_network_id    = azurerm_virtual_network.main.id
  tags                  = local.tags
}

resource "random_password" "database" {
  length           = 32
  min_lower        = 1
  min_upper        = 1
  min_numeric      = 1
  override_special = "-_.~"
}

resource "azurerm_postgresql_flexible_server" "main" {
  name                = "${var.name}-${random_id.unique.hex}"
  resource_group_name = azurerm_resource_group.main.name
  location            = azurerm_resource_group.main.location
  version             = var.database_version
  sku_name            = var.database_sku
  storage_mb          = var.database_storage_gb * 1024
  auto_grow_enabled   = true
  tags                = local.tags

  delegated_subnet_id           = azurerm_subnet.database.id
  private_dns_zone_id           = azurerm_private_dns_zone.database.id
  public_network_access_enabled = false

  administrator_login    = var.database_username
  administrator_password = random_password.database.result

  authentication {
    password_auth_enabled         = true
    active_directory_auth_enabled = true
    tenant_id                     = data.azurerm_client_config.current.tenant_id
  }

  backup_retention_days        = var.database_backup_days
  geo_redundant_backup_enabled = var.database_geo_backup

  dynamic "high_availability" {
    for_each = var.database_high_availability == "Disabled" ? [] : [var.database_high_availability]

    content {
      mode = high_availability.value
    }
  }

  maintenance_window {
    day_of_week  = 0
    start_hour   = 3
    start_minute = 0
  }

  lifecycle {
    ignore_changes = [
      # Azure picks the zones, and swaps them in a failover.
      zone,
      high_availability[0].standby_availability_zone,
      # Grows by itself.
      storage_mb,
    ]

    precondition {
      condition     = var.database_high_availability == "Disabled" || !startswith(var.database_sku, "B_")
      error_message = "A burstable database (B_) has no standby. Choose a GP_ or MO_ size, or set database_high_availability to Disabled."
    }
  }

  depends_on = [
    azurerm_private_dns_zone_virtual_network_link.database,
    azurerm_subnet_network_security_group_association.database,
  ]
}

resource "azurerm_postgresql_flexible_server_configuration" "slow_statements" {
  name      = "log_min_duration_statement"
  server_id = azurerm_postgresql_flexible_server.main.id
  value     = "1000"
}

resource "azurerm_postgresql_flexible_server_database" "main" {
  name      = var.database_name
  server_id = azurerm_postgresql_flexible_server.main.id
  charset   = "UTF8"
  collation = "en_US.utf8"
}

# Nobody deletes the server by hand, in the portal or otherwise, while the lock is on.
resource "azurerm_management_lock" "database" {
  count = var.deletion_protection ? 1 : 0

  name       = "deletion-protection"
  scope      = azurerm_postgresql_flexible_server.main.id
  lock_level = "CanNotDelete"
  notes      = "Set deletion_protection of the platform ${var.name} to false to take it off."

  # Settings are made first: a lock also gets in their way.
  depends_on = [
    azurerm_postgresql_flexible_server_configuration.slow_statements,
    azurerm_postgresql_flexible_server_database.main,
  ]
}
