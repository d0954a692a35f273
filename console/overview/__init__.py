"""What is read across rooms: the dashboard, the list of Specs, search, and the first-run guide."""
