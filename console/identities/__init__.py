"""Cloud identities, what was found in their accounts, and the issuer of the tokens that jobs show."""
