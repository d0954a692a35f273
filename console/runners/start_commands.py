"""The commands that start a runner, to copy: in a shell, by systemd, in a container, on Kubernetes.

The token is in no program's arguments: every user of a machine can read those.
"""

from dataclasses import dataclass

SHELL = """\
python3 -m venv slipway-runner
slipway-runner/bin/pip install '.[aws,gcp,azure]'
export SLIPWAY_CONSOLE={console}
export SLIPWAY_REGISTRATION_TOKEN={token}
slipway-runner/bin/slipway-runner start"""

UNIT = """\
python3 -m venv /opt/slipway-runner
/opt/slipway-runner/bin/pip install '.[aws,gcp,azure]'
install --mode=600 /dev/stdin /etc/slipway-runner.env <<'EOF'
SLIPWAY_CONSOLE={console}
SLIPWAY_REGISTRATION_TOKEN={token}
SLIPWAY_RUNNER_DATA_DIR=/var/lib/slipway-runner
EOF
cat > /etc/systemd/system/slipway-runner.service <<'EOF'
[Unit]
Description=Slipway runner
After=network-online.target
Wants=network-online.target

[Service]
EnvironmentFile=/etc/slipway-runner.env
ExecStart=/opt/slipway-runner/bin/slipway-runner start
StateDirectory=slipway-runner
StateDirectoryMode=0700
DynamicUser=yes
Restart=on-failure
# The runner ends its Terraform itself, also when it is killed: its guard lets that save the state first.
KillMode=process
# A job that runs out of memory fails; the runner and its other jobs go on.
OOMPolicy=continue
TimeoutStopSec=90

[Install]
WantedBy=multi-user.target
EOF
systemctl enable --now slipway-runner"""

CONTAINER = """\
docker build --file deploy/runner.Dockerfile --tag slipway-runner .
export SLIPWAY_REGISTRATION_TOKEN={token}
docker run --detach --name slipway-runner --restart on-failure --stop-timeout 90 \\
  --volume slipway-runner:/var/lib/slipway-runner \\
  --env SLIPWAY_CONSOLE={console} \\
  --env SLIPWAY_REGISTRATION_TOKEN \\
  slipway-runner"""

KUBERNETES = """\
printf %s {token} | kubectl create secret generic slipway-runner --from-file=token=/dev/stdin
kubectl apply --filename - <<'EOF'
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: slipway-runner
spec:
  serviceName: slipway-runner
  replicas: 1
  selector:
    matchLabels: {{app: slipway-runner}}
  template:
    metadata:
      labels: {{app: slipway-runner}}
    spec:
      terminationGracePeriodSeconds: 90
      automountServiceAccountToken: false
      securityContext: {{runAsNonRoot: true, fsGroup: 10001}}
      containers:
        - name: runner
          image: YOUR-REGISTRY/slipway-runner
          env:
            - {{name: SLIPWAY_CONSOLE, value: "{console}"}}
            - name: SLIPWAY_REGISTRATION_TOKEN
              valueFrom:
                secretKeyRef: {{name: slipway-runner, key: token, optional: true}}
          volumeMounts:
            - {{name: data, mountPath: /var/lib/slipway-runner}}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        resources:
          requests: {{storage: 5Gi}}
EOF"""

#: The placeholder for a token that was shown already.
HIDDEN = "slt_…"


@dataclass(frozen=True, slots=True)
class StartCommand:
    """One way to start a runner: its name, what to know, and what to copy."""

    name: str
    label: str
    advice: str
    command: str


ADVICE = {
    "shell": "In a checkout of this version: install the runner into a folder of its own, and start it.",
    "systemd": "As root, in a checkout of this version: install the runner, write its settings and its unit, "
    "and start it. Once it is online, the line with the token can go.",
    "container": "In a checkout of this version: build the image with the runner and Terraform in it, and "
    "start it. The volume keeps its credential.",
    "kubernetes": "Build the image of deploy/runner.Dockerfile as for a container, push it to a registry of "
    "yours, and put that where YOUR-REGISTRY stands. The volume keeps its credential, also when the pod "
    "moves: once it is online, the secret can go. A second runner takes a token and names of its own.",
}

#: By name: what people call it, and what to copy.
WAYS = {
    "shell": ("A shell", SHELL),
    "systemd": ("systemd", UNIT),
    "container": ("A container", CONTAINER),
    "kubernetes": ("Kubernetes", KUBERNETES),
}


def start_commands(*, console: str, token: str) -> list[StartCommand]:
    """Fill in the commands. Token and address need no quoting: letters, digits, `_` and `-`; a URL."""
    values = {"console": console, "token": token or HIDDEN}
    return [
        StartCommand(name, label, ADVICE[name], text.format(**values)) for name, (label, text) in WAYS.items()
    ]


def check_command(*, console: str) -> str:
    """Return the command that tries everything a runner needs, and reports what is wrong."""
    return f"SLIPWAY_CONSOLE={console} slipway-runner/bin/slipway-runner check"
