# Credentials come from the runner's environment, never from a file or a variable.
provider "aws" {
  region = var.region

  default_tags {
    tags = local.tags
  }
}

# The token is fetched by a command each time it is needed. One from a data source would be read while
# planning and saved in the plan, and be out of date by the time that a reviewed plan is applied.
locals {
  cluster_token = {
    api_version = "client.authentication.k8s.io/v1beta1"
    command     = "aws"
    args        = ["eks", "get-token", "--region", var.region, "--cluster-name", aws_eks_cluster.main.name, "--output", "json"]
  }
}

provider "helm" {
  kubernetes = {
    host                   = aws_eks_cluster.main.endpoint
    cluster_ca_certificate = base64decode(aws_eks_cluster.main.certificate_authority[0].data)
    exec                   = local.cluster_token
  }
}

provider "kubernetes" {
  host                   = aws_eks_cluster.main.endpoint
  cluster_ca_certificate = base64decode(aws_eks_cluster.main.certificate_authority[0].data)

  exec {
    api_version = local.cluster_token.api_version
    command     = local.cluster_token.command
    args        = local.cluster_token.args
  }
}
