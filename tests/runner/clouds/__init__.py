"""Cloud identities end to end: the console's tokens, the real SDKs, clouds on loopback that check them."""
