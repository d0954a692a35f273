# Only terraform_data, which is built into Terraform: no provider, no cloud, no cost.
# The provisioners do nothing but wait, so that progress can be watched.

locals {
  replicas = merge([
    for service, count in var.services : {
      for index in range(count) : "${service}-${index}" => service
    }
  ]...)
}

resource "terraform_data" "network" {
  input = { name = "${var.name}-network", cidr = "10.20.0.0/16" }

  provisioner "local-exec" {
    command = "echo making the network; sleep ${var.delay}"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "sleep 0.3"
  }
}

resource "terraform_data" "subnet" {
  for_each = { for index, zone in var.zones : zone => index }

  input = {
    network = terraform_data.network.output.name
    zone    = each.key
    cidr    = cidrsubnet(terraform_data.network.output.cidr, 8, each.value)
  }

  provisioner "local-exec" {
    command = "sleep ${var.delay * 0.7}"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "sleep 0.3"
  }
}

resource "terraform_data" "gateway" {
  for_each = terraform_data.subnet

  input = { subnet = each.value.id, name = "${var.name}-gateway-${each.key}" }

  provisioner "local-exec" {
    command = "sleep ${var.delay * 0.5}"
  }
}

resource "terraform_data" "cluster" {
  input = {
    name     = "${var.name}-cluster"
    version  = "1.34"
    subnets  = [for subnet in terraform_data.subnet : subnet.id]
    endpoint = "https://${var.name}.cluster.example"
  }

  provisioner "local-exec" {
    command = "for step in control-plane etcd api; do echo \"cluster: $step\"; sleep ${var.delay}; done"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo draining the cluster; sleep 1"
  }
}

resource "terraform_data" "node" {
  count = 4

  input = { cluster = terraform_data.cluster.id, name = "${var.name}-node-${count.index}" }

  provisioner "local-exec" {
    command = "sleep ${var.delay * (1 + count.index * 0.4)}"
  }
}

resource "terraform_data" "database" {
  input = {
    name     = "${var.name}-database"
    subnets  = [for subnet in terraform_data.subnet : subnet.id]
    endpoint = "${var.name}.database.example:5432"
  }

  provisioner "local-exec" {
    command = "sleep ${var.delay * 4}"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "sleep 0.6"
  }
}

# Stands for a secret that a real module would generate: it is marked, so it is never shown.
resource "terraform_data" "database_password" {
  input = sensitive(sha256("${var.name}-${terraform_data.database.id}"))
}

resource "terraform_data" "service" {
  for_each = var.services

  input = { name = each.key, replicas = each.value, cluster = terraform_data.cluster.id }

  depends_on = [terraform_data.node, terraform_data.database]

  provisioner "local-exec" {
    command = "echo deploying ${each.key}; sleep ${var.delay * 0.5}"
  }
}

resource "terraform_data" "replica" {
  for_each = local.replicas

  input = { service = terraform_data.service[each.value].id, name = each.key }

  provisioner "local-exec" {
    command = "sleep ${var.delay * 0.8}"
  }
}

resource "terraform_data" "dns_record" {
  for_each = toset(concat(keys(var.services), ["www", "api"]))

  input = { name = "${each.key}.${var.name}.example", cluster = terraform_data.cluster.id }

  provisioner "local-exec" {
    command = "sleep ${var.delay * 0.3}"
  }
}

resource "terraform_data" "dashboard" {
  input = { url = "https://dashboard.${var.name}.example", services = sort(keys(var.services)) }

  depends_on = [terraform_data.replica, terraform_data.dns_record]

  provisioner "local-exec" {
    command = "sleep ${var.delay}"
  }
}
