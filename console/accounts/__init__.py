"""People, sign-in, organizations, memberships and API tokens."""
