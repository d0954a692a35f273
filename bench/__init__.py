"""How fast the queue is, as ratios against the raw limit and against a peer, measured in one run."""
