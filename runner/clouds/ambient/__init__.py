"""Ambient credentials: what the runner's machine has, in whichever cloud it is."""
