"""Terraform: its commands and output, its processes, its files and environment."""
