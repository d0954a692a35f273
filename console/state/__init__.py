"""Terraform's state: the HTTP backend, its versions and its locks."""
