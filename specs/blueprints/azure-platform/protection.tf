# A destroy begins here, because this depends on all the rest. While the platform is protected it also
# ends here, before anything is gone. The locks alone would not: Terraform made them and would remove them.
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
    azurerm_dns_a_record.argocd,
    azurerm_dns_ns_record.delegation,
    azurerm_kubernetes_cluster_node_pool.main,
    azurerm_management_lock.database,
    azurerm_management_lock.vault,
    azurerm_monitor_diagnostic_setting.cluster,
    helm_release.argocd,
  ]
}
