"""The console: Slipway's Django project, one package per area."""
