"""Bearer tokens: how they are made, and the hash by which they are kept."""

import hashlib
import re
import secrets

#: 32 random bytes: a plain SHA-256 is enough, since nobody can guess what to hash.
TOKEN_BYTES = 32


#: Every token of ours, wherever it turns up: `slr_` runner, `slt_` registration, `slu_` person, `sls_` state,
#: `sli_` invitation.
#: With no word boundary in front: in stored JSON the last letter of an escape may stand there (`\t`, `[31m`).
ANY_TOKEN = re.compile(r"sl[irstu]_[A-Za-z0-9_-]{32,}")


def new_token(prefix: str) -> str:
    """A fresh token. The prefix says what leaked, should it leak: `slr_` a runner's, `slu_` a person's."""
    return f"{prefix}_{secrets.token_urlsafe(TOKEN_BYTES)}"


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
