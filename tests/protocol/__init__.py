"""The golden messages of the runner protocol, and both sides against them."""
