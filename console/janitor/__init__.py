"""The leader-elected loop that takes back what was lost."""
