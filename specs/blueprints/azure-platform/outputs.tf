output "cluster_name" {
  description = "The name of the AKS cluster."
  value       = azurerm_kubernetes_cluster.main.name
}

output "cluster_endpoint" {
  description = "Where the cluster's API answers."
  value       = "https://${var.cluster_endpoint_public ? azurerm_kubernetes_cluster.main.fqdn : azurerm_kubernetes_cluster.main.private_fqdn}:443"
}

output "cluster_ca_certificate" {
  description = "The certificate authority of the cluster's API: PEM in base64, as a kubeconfig holds it."
  value       = azurerm_kubernetes_cluster.main.kube_config[0].cluster_ca_certificate
  sensitive   = true
}

output "cluster_oidc_issuer_url" {
  description = "The issuer that federated credentials of workload identities trust."
  value       = azurerm_kubernetes_cluster.main.oidc_issuer_url
}

output "kubeconfig_command" {
  description = "Adds the cluster to your kubeconfig, with sign-in by Entra."
  value       = "az aks get-credentials --resource-group ${azurerm_resource_group.main.name} --name ${azurerm_kubernetes_cluster.main.name} && kubelogin convert-kubeconfig --login azurecli"
}

output "argocd_url" {
  description = "Where Argo CD answers: by its name in the zone, or by its address where there is no zone."
  value       = var.install_argocd ? "https://${coalesce(local.argocd_host, local.argocd_address)}" : null
}

output "argocd_address" {
  description = "Argo CD's load balancer, which answers before the zone is delegated."
  value       = var.install_argocd ? local.argocd_address : null
}

output "argocd_initial_password_command" {
  description = "Prints the first password of the user admin. Change it, then delete the secret."
  value       = var.install_argocd ? "kubectl --namespace argocd get secret argocd-initial-admin-secret --output jsonpath='{.data.password}' | base64 --decode" : null
}

output "database_endpoint" {
  description = "Where the database answers, from within the cluster: host and port."
  value       = "${azurerm_postgresql_flexible_server.main.fqdn}:5432"
}

output "database_name" {
  description = "The name of the first database."
  value       = azurerm_postgresql_flexible_server_database.main.name
}

output "database_secret" {
  description = "The Key Vault secret that holds host, user and password, by its address."
  value       = azurerm_key_vault_secret.database.versionless_id
}

output "dns_zone_name" {
  description = "The platform's DNS zone."
  value       = one(azurerm_dns_zone.main[*].name)
}

output "dns_name_servers" {
  description = "The zone's name servers, to which the parent domain delegates."
  value       = try(azurerm_dns_zone.main[0].name_servers, [])
}

output "network_id" {
  description = "The virtual network."
  value       = azurerm_virtual_network.main.id
}

output "private_subnet_ids" {
  description = "The subnets of the nodes. In Azure one subnet spans the region's zones."
  value       = [azurerm_subnet.nodes.id]
}
