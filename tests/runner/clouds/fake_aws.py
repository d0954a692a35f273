"""A process in front of ministack that does what AWS does and ministack does not.

It verifies web identity tokens through their issuer's live keys, holds sessions to their policies and
lengths, lets them die, turns regions off, throttles, and answers for an account with very many subnets, page
by page.
"""

from __future__ import annotations

import re
import sys
import time
import uuid
from datetime import UTC, datetime
from typing import ClassVar
from urllib.parse import parse_qs, urlencode
from xml.sax.saxutils import escape

import boto3

from tests.runner.clouds.fake_server import Answer, Handler, forward, serve
from tests.runner.clouds.verification import Rejected, verify

#: AWS's own codes for what it does not like about a token.
_CODES = {"expired": "ExpiredTokenException"}
_NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"
_SCOPE = re.compile(r"Credential=[^/]+/\d+/([a-z0-9-]+)/([a-z0-9]+)/aws4_request")
_EXPIRED = "The provided token has expired."
_EC2 = 'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"'


class FakeAws(Handler):
    emulator_port: int
    #: When each session began, by access key: ministack never ends them.
    began: ClassVar[dict[str, float]] = {}

    def handle_request(self, body: bytes) -> Answer:
        form = {name: values[0] for name, values in parse_qs(body.decode("latin-1")).items()}
        region, service = self._scope()
        action = form.get("Action", "")
        if self._is_over():
            self.behaviour.record(action=action or f"{service} {self.command}", over=self._access_key())
            return _s3_error() if service == "s3" else _sts_error(403, "ExpiredToken", _EXPIRED)
        if action == "AssumeRoleWithWebIdentity":
            return self._web_identity(form)
        if action == "AssumeRole":
            return self._assume_role(form, body)
        if service in ("ec2", "eks", "ecs", "acm") and region in self.behaviour.settings.get("off", ()):
            return _ec2_error(
                401, "AuthFailure", "AWS was not able to validate the provided access credentials"
            )
        if self.behaviour.take("throttle", action):
            self.behaviour.record(action=action, throttled=True)
            return _ec2_error(503, "RequestLimitExceeded", "Request limit exceeded.")
        if action == "DescribeSubnets" and region in self.behaviour.settings.get("subnets", {}):
            return self._subnets(form, int(self.behaviour.settings["subnets"][region]))
        if service == "s3":
            self.behaviour.record(action=f"s3 {self.command}", key=self._access_key())
        return forward(self, self.emulator_port, body)

    def _scope(self) -> tuple[str, str]:
        match = _SCOPE.search(self.headers.get("Authorization", ""))
        return (match[1], match[2]) if match else ("", "")

    def _access_key(self) -> str:
        match = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization", ""))
        return match[1] if match else ""

    def _is_over(self) -> bool:
        began = self.began.get(self._access_key())
        return began is not None and began < self.behaviour.settings.get("over_before", 0)

    def _web_identity(self, form: dict[str, str]) -> Answer:
        settings = self.behaviour.settings
        try:
            claims = verify(
                form.get("WebIdentityToken", ""),
                issuers=settings.get("issuers", {}),
                settings=settings,
            )
        except Rejected as error:
            self.behaviour.record(action="AssumeRoleWithWebIdentity", rejected=error.reason)
            return _sts_error(400, _CODES.get(error.reason, "InvalidIdentityToken"), str(error))
        if refusal := self._refuse_long_session(form):
            return refusal
        answer = self._shorten_session(forward(self, self.emulator_port, urlencode(form).encode()))
        if answer[0] == 200 and any(name.startswith("Policy") for name in form):
            answer = self._assume_with_policies(form)
        self.behaviour.record(
            action="AssumeRoleWithWebIdentity", status=answer[0], role=form.get("RoleArn"), jti=claims["jti"],
            subject=claims["sub"], key=self._remember_session(answer),
            duration=form.get("DurationSeconds"),
            narrowed=[form[name] for name in form if name.startswith("Policy")],
        )  # fmt: skip
        return answer

    def _assume_role(self, form: dict[str, str], body: bytes) -> Answer:
        """Forward the request as it is, since the caller has signed it."""
        if refusal := self._refuse_long_session(form):
            return refusal
        answer = self._shorten_session(forward(self, self.emulator_port, body))
        self.behaviour.record(
            action="AssumeRole", status=answer[0], role=form.get("RoleArn"),
            external_id=form.get("ExternalId"),
            key=self._remember_session(answer), caller=self._access_key(),
            narrowed=[form[name] for name in form if name.startswith("Policy")],
        )  # fmt: skip
        return answer

    def _remember_session(self, answer: Answer) -> str:
        """Return the access key of the session in an answer, and remember its beginning."""
        key = _between(answer[2], "AccessKeyId")
        if key:
            self.began[key] = time.time()
        return key

    def _refuse_long_session(self, form: dict[str, str]) -> Answer | None:
        longest = self.behaviour.settings.get("max_session_seconds")
        if longest and int(form.get("DurationSeconds") or 3600) > longest:
            return _sts_error(
                400,
                "ValidationError",
                "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.",
            )
        return None

    def _shorten_session(self, answer: Answer) -> Answer:
        """Shorten the session for tests of renewal; `over_before` ends it."""
        seconds = self.behaviour.settings.get("session_seconds")
        if not seconds or answer[0] != 200:
            return answer
        ends = datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
        content = re.sub(rb"<Expiration>[^<]*<", b"<Expiration>" + ends + b"<", answer[2])
        return answer[0], answer[1], content

    def _assume_with_policies(self, form: dict[str, str]) -> Answer:
        """Assume the role by AssumeRole, the only call whose session policies ministack enforces."""
        sts = boto3.client(
            "sts", endpoint_url=f"http://127.0.0.1:{self.emulator_port}", region_name="eu-west-1",
            aws_access_key_id="test", aws_secret_access_key="test",
        )  # fmt: skip
        arns = [{"arn": form[name]} for name in form if name.startswith("PolicyArns.")]
        answer = sts.assume_role(
            RoleArn=form["RoleArn"],
            RoleSessionName=form["RoleSessionName"],
            DurationSeconds=int(form.get("DurationSeconds") or 3600),
            **({"Policy": form["Policy"]} if "Policy" in form else {}),
            **({"PolicyArns": arns} if arns else {}),
        )
        keys = answer["Credentials"]
        return _sts(
            f"<Credentials><AccessKeyId>{keys['AccessKeyId']}</AccessKeyId>"
            f"<SecretAccessKey>{escape(keys['SecretAccessKey'])}</SecretAccessKey>"
            f"<SessionToken>{escape(keys['SessionToken'])}</SessionToken>"
            f"<Expiration>{keys['Expiration'].strftime('%Y-%m-%dT%H:%M:%SZ')}</Expiration></Credentials>"
            f"<AssumedRoleUser><Arn>{answer['AssumedRoleUser']['Arn']}</Arn>"
            f"<AssumedRoleId>{answer['AssumedRoleUser']['AssumedRoleId']}</AssumedRoleId></AssumedRoleUser>"
        )

    def _subnets(self, form: dict[str, str], count: int) -> Answer:
        """Answer in pages like EC2: at most 1,000, and a token for the rest."""
        start = int(form.get("NextToken") or 0)
        end = min(count, start + min(1000, int(form.get("MaxResults") or 1000)))
        self.behaviour.record(action="DescribeSubnets", start=start)
        items = "".join(
            f"<item><subnetId>subnet-{number:08x}</subnetId><vpcId>vpc-1</vpcId><state>available</state>"
            f"<cidrBlock>10.{number // 250}.{number % 250}.0/28</cidrBlock>"
            f"<availabilityZone>eu-central-1a</availabilityZone></item>"
            for number in range(start, end)
        )
        token = f"<nextToken>{end}</nextToken>" if end < count else ""
        text = (
            f"<DescribeSubnetsResponse {_EC2}><subnetSet>{items}</subnetSet>{token}</DescribeSubnetsResponse>"
        )
        return 200, {"Content-Type": "text/xml"}, text.encode()


def _between(content: bytes, tag: str) -> str:
    match = re.search(rf"<{tag}>([^<]*)<", content.decode("utf-8", "replace"))
    return match[1] if match else ""


def _sts(inside: str) -> Answer:
    name = "AssumeRoleWithWebIdentity"
    text = f'<{name}Response xmlns="{_NAMESPACE}"><{name}Result>{inside}</{name}Result></{name}Response>'
    return 200, {"Content-Type": "text/xml"}, text.encode()


def _sts_error(status: int, code: str, message: str) -> Answer:
    text = (
        f'<ErrorResponse xmlns="{_NAMESPACE}"><Error><Type>Sender</Type><Code>{code}</Code>'
        f"<Message>{escape(message)}</Message></Error><RequestId>{uuid.uuid4()}</RequestId></ErrorResponse>"
    )
    return status, {"Content-Type": "text/xml"}, text.encode()


def _s3_error() -> Answer:
    text = f"<Error><Code>ExpiredToken</Code><Message>{_EXPIRED}</Message></Error>"
    return 400, {"Content-Type": "application/xml"}, text.encode()


def _ec2_error(status: int, code: str, message: str) -> Answer:
    text = (
        f"<Response><Errors><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error></Errors>"
        f"<RequestID>{uuid.uuid4()}</RequestID></Response>"
    )
    return status, {"Content-Type": "text/xml"}, text.encode()


if __name__ == "__main__":
    FakeAws.emulator_port = int(sys.argv[1])
    serve(FakeAws)
