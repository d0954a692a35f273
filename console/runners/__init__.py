"""Runners, their pools, their registration and their credentials."""
