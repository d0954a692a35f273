"""Everything that is pushed: publishing on commit, the LISTEN bridge, the sockets' base."""
