# The platform's own DNS zone, if it has a domain, and its delegation from the parent zone.

resource "google_dns_managed_zone" "main" {
  count = var.domain == "" ? 0 : 1

  name        = "${var.name}-zone"
  dns_name    = "${var.domain}."
  description = "Zone of ${var.name}"

  # Records that others made in the zone stop a destroy, rather than vanish with it.
  force_destroy = false

  depends_on = [google_project_service.required]
}

resource "google_dns_record_set" "delegation" {
  count = var.domain != "" && var.parent_zone_name != "" ? 1 : 0

  managed_zone = var.parent_zone_name
  name         = "${var.domain}."
  type         = "NS"
  ttl          = 300
  rrdatas      = google_dns_managed_zone.main[0].name_servers
}
