output "cluster_name" {
  description = "The name of the EKS cluster."
  value       = aws_eks_cluster.main.name
}

output "cluster_endpoint" {
  description = "Where the cluster's API answers."
  value       = aws_eks_cluster.main.endpoint
}

output "cluster_ca_certificate" {
  description = "The certificate authority of the cluster's API: PEM in base64, as a kubeconfig holds it."
  value       = aws_eks_cluster.main.certificate_authority[0].data
  sensitive   = true
}

output "cluster_oidc_provider_arn" {
  description = "The IAM OIDC provider that roles for service accounts trust."
  value       = aws_iam_openid_connect_provider.cluster.arn
}

output "kubeconfig_command" {
  description = "Adds the cluster to your kubeconfig."
  value       = "aws eks update-kubeconfig --region ${var.region} --name ${aws_eks_cluster.main.name}"
}

output "argocd_url" {
  description = "Where Argo CD answers: by its name in the zone, or by its load balancer where there is no zone."
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
  description = "Where the database answers, from within the cluster: host and port."
  value       = aws_db_instance.main.endpoint
}

output "database_name" {
  description = "The name of the first database."
  value       = aws_db_instance.main.db_name
}

output "database_secret" {
  description = "The Secrets Manager secret that holds the master user's name and password, by ARN."
  value       = aws_db_instance.main.master_user_secret[0].secret_arn
}

output "dns_zone_name" {
  description = "The platform's DNS zone."
  value       = one(aws_route53_zone.main[*].name)
}

output "dns_name_servers" {
  description = "The zone's name servers, to which the parent domain delegates."
  value       = try(aws_route53_zone.main[0].name_servers, [])
}

output "network_id" {
  description = "The VPC."
  value       = aws_vpc.main.id
}

output "private_subnet_ids" {
  description = "The subnets of the nodes and pods."
  value       = [for subnet in aws_subnet.private : subnet.id]
}
