# The virtual network: one subnet for the nodes, one that only the database may use, and a NAT gateway.

locals {
  tags = merge(var.tags, {
    platform  = var.name
    blueprint = "azure-platform"
    managed   = "terraform"
  })

  # Of a /16: a /18 for nodes and internal load balancers, and a /24 for the database.
  nodes_cidr    = cidrsubnet(var.vnet_cidr, 2, 0)
  database_cidr = cidrsubnet(var.vnet_cidr, 8, 64)
}

# Vaults and databases have names that are unique in the whole of Azure.
resource "random_id" "unique" {
  byte_length = 3
}

resource "azurerm_resource_group" "main" {
  name     = var.name
  location = var.region
  tags     = local.tags
}

resource "azurerm_virtual_network" "main" {
  name                = var.name
  resource_group_name = azurerm_resource_group.main.name
  location            = azurerm_resource_group.main.location
  address_space       = [var.vnet_cidr]
  tags                = local.tags
}

resource "azurerm_subnet" "nodes" {
  name                            = "nodes"
  resource_group_name             = azurerm_resource_group.main.name
  virtual_network_name            = azurerm_virtual_network.main.name
  address_prefixes                = [local.nodes_cidr]
  service_endpoints               = ["Microsoft.KeyVault"]
  default_outbound_access_enabled = false
}

resource "azurerm_subnet" "database" {
  name                 = "database"
  resource_group_name  = azurerm_resource_group.main.name
  virtual_network_name = azurerm_virtual_network.main.name
  address_prefixes     = [local.database_cidr]

  # The database archives its log to storage, and adds this endpoint if it is not there.
  service_endpoints = ["Microsoft.Storage"]

  delegation {
    name = "postgres"

    service_delegation {
      name    = "Microsoft.DBforPostgreSQL/flexibleServers"
      actions = ["Microsoft.Network/virtualNetworks/subnets/join/action"]
    }
  }
}

# What leaves the nodes leaves from this one address.
resource "azurerm_public_ip" "nat" {
  name                = "${var.name}-nat"
  resource_group_name = azurerm_resource_group.main.name
  location            = azurerm_resource_group.main.location
  allocation_method   = "Static"
  sku                 = "Standard"
  tags                = local.tags
}

resource "azurerm_nat_gateway" "main" {
  name                    = var.name
  resource_group_name     = azurerm_resource_group.main.name
  location                = azurerm_resource_group.main.location
  sku_name                = "Standard"
  idle_timeout_in_minutes = 10
  tags                    = local.tags
}

resource "azurerm_nat_gateway_public_ip_association" "main" {
  nat_gateway_id       = azurerm_nat_gateway.main.id
  public_ip_address_id = azurerm_public_ip.nat.id
}

resource "azurerm_subnet_nat_gateway_association" "nodes" {
  subnet_id      = azurerm_subnet.nodes.id
  nat_gateway_id = azurerm_nat_gateway.main.id
}

# Only the nodes' subnet reaches the database, on its port; the rest of the network does not.
resource "azurerm_network_security_group" "database" {
  name                = "${var.name}-database"
  resource_group_name = azurerm_resource_group.main.name
  location            = azurerm_resource_group.main.location
  tags                = local.tags

  security_rule {
    name                       = "postgres-from-nodes"
    description                = "PostgreSQL and its connection pooler, from the cluster"
    priority                   = 100
    direction                  = "Inbound"
    access                     = "Allow"
    protocol                   = "Tcp"
    source_address_prefix      = local.nodes_cidr
    source_port_range          = "*"
    destination_address_prefix = local.database_cidr
    destination_port_ranges    = ["5432", "6432"]
  }

  # The standby follows the primary within the subnet.
  security_rule {
    name                       = "replication"
    description                = "Between the primary and its standby"
    priority                   = 110
    direction                  = "Inbound"
    access                     = "Allow"
    protocol                   = "Tcp"
    source_address_prefix      = local.database_cidr
    source_port_range          = "*"
    destination_address_prefix = local.database_cidr
    destination_port_ranges    = ["5432", "6432"]
  }

  security_rule {
    name                       = "nothing-else"
    description                = "Nothing else from the network"
    priority                   = 4000
    direction                  = "Inbound"
    access                     = "Deny"
    protocol                   = "*"
    source_address_prefix      = "VirtualNetwork"
    source_port_range          = "*"
    destination_address_prefix = "*"
    destination_port_range     = "*"
  }
}

resource "azurerm_subnet_network_security_group_association" "database" {
  subnet_id                 = azurerm_subnet.database.id
  network_security_group_id = azurerm_network_security_group.database.id
}
