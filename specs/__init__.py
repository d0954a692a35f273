"""Specs: what people edit, the revisions it becomes and the blueprints it can be built from."""
