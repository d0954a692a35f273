# The runner with Terraform. Build it from the top of a checkout:
#   docker build --file deploy/runner.Dockerfile --tag slipway-runner .
# For another version of Terraform:  --build-arg TERRAFORM=1.12.2
ARG TERRAFORM=1.11.4
FROM hashicorp/terraform:${TERRAFORM} AS terraform

FROM python:3.13-slim
# Terraform fetches modules from Git with the git program. tini reaps processes that jobs leave behind.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git openssh-client tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=terraform /bin/terraform /usr/local/bin/terraform
# The runner needs no part of the console, so the image contains none.
COPY pyproject.toml README.md LICENSE /build/
COPY runner /build/runner
RUN pip install --no-cache-dir "/build[aws,gcp,azure]" && rm -rf /build
# A new volume takes over the owner of the folder on which it is mounted. On Kubernetes, fsGroup sets the group.
RUN useradd --uid 10001 --create-home slipway \
    && install --directory --owner slipway --group slipway --mode 0700 /var/lib/slipway-runner
USER 10001
ENV SLIPWAY_RUNNER_DATA_DIR=/var/lib/slipway-runner
VOLUME /var/lib/slipway-runner
# An interrupted Terraform finishes its current operations: give it longer than the ten seconds of `docker stop`.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "slipway-runner"]
CMD ["start"]
