"""Benchmarks of the queue: ratios against the raw limit and against a peer, measured in one run."""
