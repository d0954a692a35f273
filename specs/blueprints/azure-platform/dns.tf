# The platform's own DNS zone, if it has a domain, and its delegation from the parent zone.

locals {
  # /subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.Network/dnsZones/DOMAIN
  parent_zone_parts = split("/", var.parent_zone_id)
  parent_zone = var.parent_zone_id == "" ? null : {
    resource_group = local.parent_zone_parts[4]
    domain         = local.parent_zone_parts[8]
  }
}

resource "azurerm_dns_zone" "main" {
  count = var.domain == "" ? 0 : 1

  name                = var.domain
  resource_group_name = azurerm_resource_group.main.name
  tags                = local.tags
}

resource "azurerm_dns_ns_record" "delegation" {
  count = var.domain != "" && var.parent_zone_id != "" ? 1 : 0

  name                = trimsuffix(var.domain, ".${local.parent_zone.domain}")
  zone_name           = local.parent_zone.domain
  resource_group_name = local.parent_zone.resource_group
  ttl                 = 300
  records             = azurerm_dns_zone.main[0].name_servers
  tags                = local.tags

  lifecycle {
    precondition {
      condition     = endswith(var.domain, ".${local.parent_zone.domain}")
      error_message = "The domain ${var.domain} does not lie under the parent zone ${local.parent_zone.domain}. Choose the zone of its parent domain."
    }
  }
}
