"""Cloud identities, the issuer, and what jobs leave on them."""
