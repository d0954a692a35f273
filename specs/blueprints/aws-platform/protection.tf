# A destroy begins here, because this depends on all the rest. While the platform is protected it also
# ends here, before anything is gone; the protection of the database alone would stop it half-way.
resource "terraform_data" "protection" {
  input = {
    name      = var.name
    protected = var.deletion_protection
  }

  provisioner "local-exec" {
    when    = destroy
    command = self.input.protected ? "echo 'Platform ${self.input.name} is protected and nothing was destroyed. Set deletion_protection to false, deploy, then destroy.' >&2; exit 1" : "true"
  }

  depends_on = [
    aws_db_instance.main,
    aws_default_security_group.closed,
    aws_eks_access_policy_association.admin,
    aws_flow_log.main,
    aws_kms_alias.cluster,
    aws_kms_alias.database,
    aws_route53_record.argocd,
    aws_route53_record.delegation,
    aws_route_table_association.database,
    aws_vpc_endpoint.s3,
    aws_vpc_security_group_ingress_rule.database,
    helm_release.argocd,
  ]
}
