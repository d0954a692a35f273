"""How a runner is started, as text to copy: in a shell, by systemd, in a container."""

from dataclasses import dataclass

SHELL = """\
export SLIPWAY_CONSOLE={console}
export SLIPWAY_REGISTRATION_TOKEN={token}
slipway-runner start"""

UNIT = """\
cat > /etc/slipway-runner.env <<'EOF'
SLIPWAY_CONSOLE={console}
SLIPWAY_REGISTRATION_TOKEN={token}
SLIPWAY_RUNNER_DATA_DIR=/var/lib/slipway-runner
EOF
chmod 600 /etc/slipway-runner.env
cat > /etc/systemd/system/slipway-runner.service <<'EOF'
[Unit]
Description=Slipway runner
After=network-online.target
Wants=network-online.target

[Service]
EnvironmentFile=/etc/slipway-runner.env
ExecStart=/usr/local/bin/slipway-runner start
StateDirectory=slipway-runner
DynamicUser=yes
Restart=on-failure
KillMode=mixed
TimeoutStopSec=90

[Install]
WantedBy=multi-user.target
EOF
systemctl enable --now slipway-runner"""

CONTAINER = """\
docker run --detach --name slipway-runner --restart on-failure --stop-timeout 90 \\
  --volume slipway-runner:/var/lib/slipway-runner \\
  --env SLIPWAY_RUNNER_DATA_DIR=/var/lib/slipway-runner \\
  --env SLIPWAY_CONSOLE={console} \\
  --env SLIPWAY_REGISTRATION_TOKEN={token} \\
  YOUR-IMAGE slipway-runner start"""

#: What stands where the token would, once it was shown.
HIDDEN = "slt_…"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to start a runner: its name, what to know, and what to copy."""

    name: str
    label: str
    advice: str
    command: str


WAYS = (
    (
        "shell",
        "A shell",
        "Install the runner from a checkout or a wheel of this version, and start it. The token works once.",
        SHELL,
    ),
    (
        "systemd",
        "systemd",
        "As root: write the settings and the unit, then start it. Afterwards the line with the token can go.",
        UNIT,
    ),
    (
        "container",
        "A container",
        "An image of yours with Python, Terraform and the runner in it. The volume keeps its credential.",
        CONTAINER,
    ),
)


def starting_ways(*, console: str, token: str) -> list[Way]:
    """The token and the address are ours and need no quoting: letters, digits, `_` and `-`; a URL."""
    values = {"console": console, "token": token or HIDDEN}
    return [Way(name, label, advice, text.format(**values)) for name, label, advice, text in WAYS]


def check_command(*, console: str) -> str:
    """It tries everything that a runner needs, and says what is wrong."""
    return f"SLIPWAY_CONSOLE={console} slipway-runner check"
