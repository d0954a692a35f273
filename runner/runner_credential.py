"""The runner's own credential, as a file that only its owner can read."""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from pathlib import Path

from runner.client import ConsoleClient, ConsoleError
from runner.config import Settings, SettingsError, is_credential
from runner.protocol import RunnerFacts

logger = logging.getLogger(__name__)

#: The longest that a credential that leaked unnoticed is of use.
ROTATE_AFTER_SECONDS = 30 * 24 * 3600.0


class RunnerCredential:
    """The source of the credential, and its replacement."""

    def __init__(self, settings: Settings, client: ConsoleClient) -> None:
        self._file = settings.credential_file
        self._client = client
        self._rotating = threading.Lock()
        #: From the environment, or from a mounted file: the runner cannot replace it.
        self.is_configured = settings.credential is not None or not _is_writable(self._file)

    def read_again(self) -> str | None:
        """Read the file again: a mounted secret may have changed, or `rotate` was run meanwhile."""
        try:
            return read_credential(self._file)
        except SettingsError as error:
            logger.error("%s", error)
            return None

    def rotate_when_old(self, facts: RunnerFacts) -> None:
        """Replace an old credential. Every slot calls this between two jobs; one of them does it."""
        if self.is_configured or not self._is_old() or not self._rotating.acquire(blocking=False):
            return
        try:
            self.rotate(facts)
            logger.info("The credential was replaced by a new one.")
        except (ConsoleError, OSError) as error:
            logger.warning("The credential is due for replacement, and could not be replaced: %s", error)
        finally:
            self._rotating.release()

    def _is_old(self) -> bool:
        try:
            return time.time() - self._file.stat().st_mtime > ROTATE_AFTER_SECONDS
        except OSError:
            return False

    def rotate(self, facts: RunnerFacts) -> str:
        """Get a new credential, store it, then confirm it to the console: only now the old one ends."""
        fresh = self._client.rotate().credential
        if not self.is_configured:
            write_credential(self._file, fresh)
            self._client.use_credential(fresh)
            self._client.hello(facts, give_up=lambda: True)
        return fresh


def read_credential(path: Path) -> str | None:
    """Return the credential; None where there is no file yet."""
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The credential file {path} cannot be read: {error}.") from error
    if not is_credential(text):
        raise SettingsError(
            f"The credential file {path} does not hold a credential: remove it, and register again."
        )
    return text


def require_space_for_credential(path: Path) -> None:
    """Refuse to spend a token where its credential could not be stored, and both would be lost."""
    try:
        beside = path.with_name(f".{path.name}.space")
        write_credential(beside, "-" * 64)
        beside.unlink()
    except OSError as error:
        raise SettingsError(
            f"The credential cannot be stored in {path}: {error.strerror}. Free some space there, or give "
            "another file with --credential-file; the registration token was not used."
        ) from error


def write_credential(path: Path, credential: str) -> None:
    """Write atomically: a crash leaves either no file or a whole one, never one that others can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(
        draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, stat.S_IRUSR | stat.S_IWUSR
    )
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(credential + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _is_writable(file: Path) -> bool:
    return file.exists() and os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
