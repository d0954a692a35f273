output "cluster_endpoint" {
  description = "Where the pretend cluster would answer."
  value       = terraform_data.cluster.output.endpoint
}

output "database_endpoint" {
  description = "Where the pretend database would answer."
  value       = terraform_data.database.output.endpoint
}

output "database_password" {
  description = "Marked as sensitive, so no page and no log shows it."
  value       = terraform_data.database_password.output
  sensitive   = true
}

output "dashboard_url" {
  value = terraform_data.dashboard.output.url
}

output "subnets" {
  value = { for zone, subnet in terraform_data.subnet : zone => subnet.output.cidr }
}
