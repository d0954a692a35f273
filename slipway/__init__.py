"""The user's command line: `slipway`."""
