"""The runner: a standalone program that pulls jobs and drives Terraform. It imports no Django."""

__version__ = "0.1.0"
