"""The runner against a console that the suite plays over HTTP, and real Terraform."""
