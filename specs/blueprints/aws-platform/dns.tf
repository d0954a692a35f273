# The platform's own DNS zone, if it has a domain, and its delegation from the parent zone.

locals {
  # null without a domain: nothing of DNS is made then.
  dns_zone_id = one(aws_route53_zone.main[*].zone_id)
}

resource "aws_route53_zone" "main" {
  count = var.domain == "" ? 0 : 1

  name    = var.domain
  comment = "Zone of ${var.name}"

  # Records that others made in the zone stop a destroy, rather than vanish with it.
  force_destroy = false
}

resource "aws_route53_record" "delegation" {
  count = var.domain != "" && var.parent_zone_id != "" ? 1 : 0

  zone_id = var.parent_zone_id
  name    = var.domain
  type    = "NS"
  ttl     = 300
  records = aws_route53_zone.main[0].name_servers
}
