"""A real console, a real runner, real Terraform and a cloud with a journal, while things go wrong."""
