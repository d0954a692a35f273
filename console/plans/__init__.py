"""Reviewable plans: what a PLAN job found, and applying exactly that."""
