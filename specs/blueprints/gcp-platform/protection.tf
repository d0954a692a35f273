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
    google_container_node_pool.main,
    google_dns_record_set.argocd,
    google_dns_record_set.delegation,
    google_secret_manager_secret_version.database,
    helm_release.argocd,
  ]
}
