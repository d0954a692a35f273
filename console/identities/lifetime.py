"""How long what an identity obtains is good for."""

from console.identities.models import CloudIdentity, Provider

#: What Google and Entra give when nobody asks for more.
USUAL_SECONDS = 3_600
#: A test measures what is left of a session, some moments after it began.
ON_THE_WAY_SECONDS = 60


def session_seconds_of(identity: CloudIdentity) -> int:
    """What is asked for, or what the cloud usually gives; less, when the last test has got less."""
    asked = int(identity.settings["session_seconds"]) if identity.provider == Provider.AWS else USUAL_SECONDS
    seen = identity.last_test.get("session_seconds")
    if isinstance(seen, int) and 0 < seen < asked - ON_THE_WAY_SECONDS:
        return seen
    return asked
