# The vault that holds the database's password, for workloads and people with the role to read it.

resource "azurerm_key_vault" "main" {
  # 24 characters at most, and no two hyphens in a row.
  name                       = "${substr(replace(var.name, "-", ""), 0, 18)}${random_id.unique.hex}"
  resource_group_name        = azurerm_resource_group.main.name
  location                   = azurerm_resource_group.main.location
  tenant_id                  = data.azurerm_client_config.current.tenant_id
  sku_name                   = "standard"
  rbac_authorization_enabled = true
  purge_protection_enabled   = true
  soft_delete_retention_days = 30
  tags                       = local.tags

  network_acls {
    bypass                     = "AzureServices"
    default_action             = length(var.key_vault_cidrs) > 0 ? "Deny" : "Allow"
    ip_rules                   = var.key_vault_cidrs
    virtual_network_subnet_ids = [azurerm_subnet.nodes.id]
  }
}

resource "azurerm_role_assignment" "deployer_secrets" {
  scope                = azurerm_key_vault.main.id
  role_definition_name = "Key Vault Secrets Officer"
  principal_id         = data.azurerm_client_config.current.object_id
}

# A new role takes effect after a minute or two; the vault answers "forbidden" until then.
resource "time_sleep" "role_takes_effect" {
  create_duration = "120s"

  triggers = {
    assignment = azurerm_role_assignment.deployer_secrets.id
  }
}

resource "azurerm_key_vault_secret" "database" {
  name         = "database"
  key_vault_id = azurerm_key_vault.main.id
  content_type = "application/json"
  tags         = local.tags

  value = jsonencode({
    host     = azurerm_postgresql_flexible_server.main.fqdn
    port     = 5432
    dbname   = azurerm_postgresql_flexible_server_database.main.name
    username = azurerm_postgresql_flexible_server.main.administrator_login
    password = random_password.database.result
  })

  depends_on = [time_sleep.role_takes_effect]
}

resource "azurerm_management_lock" "vault" {
  count = var.deletion_protection ? 1 : 0

  name       = "deletion-protection"
  scope      = azurerm_key_vault.main.id
  lock_level = "CanNotDelete"
  notes      = "Set deletion_protection of the platform ${var.name} to false to take it off."

  depends_on = [azurerm_key_vault_secret.database]
}
