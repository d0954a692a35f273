"""Terraform's state: the console's backend with real Terraform, other backends on emulators, the pages."""
