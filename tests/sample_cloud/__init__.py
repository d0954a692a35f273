"""The suite's own cloud: servers that take time, fail and drift, and the Terraform provider for them."""
