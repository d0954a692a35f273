"""`python -m slipway`: the same command line, for an environment whose commands are not on the PATH."""

from slipway.main import main

raise SystemExit(main())
