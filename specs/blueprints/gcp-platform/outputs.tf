output "cluster_name" {
  description = "The name of the GKE cluster."
  value       = google_container_cluster.main.name
}

output "cluster_endpoint" {
  description = "Where the cluster's API answers."
  value       = "https://${google_container_cluster.main.endpoint}"
}

output "cluster_ca_certificate" {
  description = "The certificate authority of the cluster's API: PEM in base64, as a kubeconfig holds it."
  value       = google_container_cluster.main.master_auth[0].cluster_ca_certificate
  sensitive   = true
}

output "workload_identity_pool" {
  description = "The pool in which service accounts of the cluster are principals for IAM."
  value       = google_container_cluster.main.workload_identity_config[0].workload_pool
}

output "kubeconfig_command" {
  description = "Adds the cluster to your kubeconfig."
  value       = "gcloud container clusters get-credentials ${google_container_cluster.main.name} --region ${var.region} --project ${local.project}"
}

output "argocd_url" {
  description = "Where Argo CD answers: by its name in the zone, or by its address where there is no zone."
  value       = var.install_argocd ? "https://${coalesce(local.argocd_host, local.argocd_address)}" : null
}

output "argocd_address" {
  description = "Argo CD's load balancer, which answers before the zone is delegated."
  value       = local.argocd_address
}

output "argocd_initial_password_command" {
  description = "Prints the first password of the user admin. Change it, then delete the secret."
  value       = var.install_argocd ? "kubectl --namespace argocd get secret argocd-initial-admin-secret --output jsonpath='{.data.password}' | base64 --decode" : null
}

output "database_endpoint" {
  description = "Where the database answers, from within the VPC: host and port."
  value       = "${google_sql_database_instance.main.private_ip_address}:5432"
}

output "database_connection_name" {
  description = "The name by which the Cloud SQL Auth Proxy finds the database."
  value       = google_sql_database_instance.main.connection_name
}

output "database_name" {
  description = "The name of the first database."
  value       = google_sql_database.main.name
}

output "database_secret" {
  description = "The Secret Manager secret that holds host, user and password, by its full name."
  value       = google_secret_manager_secret.database.id
}

output "dns_zone_name" {
  description = "The platform's DNS zone."
  value       = var.domain == "" ? null : trimsuffix(google_dns_managed_zone.main[0].dns_name, ".")
}

output "dns_name_servers" {
  description = "The zone's name servers, to which the parent domain delegates."
  value       = try(google_dns_managed_zone.main[0].name_servers, [])
}

output "network_id" {
  description = "The VPC network."
  value       = google_compute_network.main.id
}

output "private_subnet_ids" {
  description = "The subnets of the nodes and pods. In Google Cloud one subnet spans the region's zones."
  value       = [google_compute_subnetwork.nodes.id]
}
