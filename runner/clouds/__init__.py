"""The clouds that a runner can act in: one folder each, and one line in `registry`."""
