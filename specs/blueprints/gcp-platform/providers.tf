# Credentials come from the runner's environment, never from a file or a variable.
provider "google" {
  project        = var.project_id == "" ? null : var.project_id
  region         = var.region
  default_labels = local.labels
}

# The project in use, also when it comes from the environment.
data "google_project" "current" {}

locals {
  project = data.google_project.current.project_id

  # The provider puts them on what has labels; where Google calls them otherwise they are set by hand.
  labels = merge(var.labels, {
    platform  = var.name
    blueprint = "gcp-platform"
    managed   = "terraform"
  })
}

# The token is fetched by a command each time it is needed. One from a data source would be read while
# planning and saved in the plan, and be out of date by the time that a reviewed plan is applied.
provider "helm" {
  kubernetes = {
    host                   = "https://${google_container_cluster.main.endpoint}"
    cluster_ca_certificate = base64decode(google_container_cluster.main.master_auth[0].cluster_ca_certificate)
    exec = {
      api_version = "client.authentication.k8s.io/v1beta1"
      command     = "gke-gcloud-auth-plugin"
      args        = ["--use_application_default_credentials"]
    }
  }
}
