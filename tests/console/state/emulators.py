"""Clouds on loopback, each a process that the suite starts itself: S3 and DynamoDB, GCS, Azure Blob Storage.

`deploy/environment emulators` installs them into an environment of their own, since ministack pins botocore.
They show that our files and variables are what Terraform's backends expect, not that a real cloud takes them.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import http.client
import ipaddress
import json
import os
import re
import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import boto3
import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.console.state.served import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
EMULATORS = ROOT / ".venv" / "emulators"
START_SECONDS = 60

BUCKET = "states"
REGION = "eu-west-1"
TABLE = "locks"
ACCOUNT = "slipwaytests"
MICROSOFT_NAMES = ("*.blob.core.windows.net", "login.microsoftonline.com", "management.azure.com")
ACCOUNT_KEY = base64.b64encode(b"a key of the suite's own, made of 48 bytes......").decode()


@dataclass(frozen=True)
class Cloud:
    """What Terraform needs to keep its state there."""

    kind: str
    settings: dict[str, Any]
    #: What opens it: sealed in the console, given to Terraform by environment.
    environment: dict[str, str]
    #: What the machine must have, as an operator's runner would: a proxy, a certificate authority.
    machine: dict[str, str] = field(default_factory=dict)


def program(name: str) -> str:
    names = [
        path for path in (EMULATORS / "bin" / name, EMULATORS / "node_modules/.bin" / name) if path.exists()
    ]
    assert names, f"{name} is not installed. Run `make test`, or: deploy/environment emulators"
    return str(names[0])


@contextmanager
def running(command: list[str], log: Path, port: int, **environ: str) -> Iterator[None]:
    """The process, from the moment it listens."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env={"PATH": os.environ["PATH"], "HOME": str(log.parent), **environ}, cwd=log.parent,
            stdout=output, stderr=output,
        )  # fmt: skip
    try:
        wait_until(
            lambda: _listens(process, port, log), seconds=START_SECONDS, what=f"{command[0]} listening"
        )
        yield
    finally:
        process.terminate()
        process.wait(20)


def _listens(process: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


# --- Amazon ----------------------------------------------------------------------------------------


@contextmanager
def amazon(folder: Path) -> Iterator[dict[str, str]]:
    """ministack with a bucket and a table; yields the environment that opens them."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    settings = {
        "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "AUTH": "true", "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0", "MINISTACK_ACCOUNT_ID": "123456789012", "MINISTACK_REGION": REGION,
        "STATE_DIR": str(folder / "aws"),
    }  # fmt: skip
    with running([program("ministack")], folder / "aws.log", port, **settings), _repeats(port) as locks:
        login = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": REGION}
        storage = boto3.client("s3", endpoint_url=address, **login)
        storage.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        boto3.client("dynamodb", endpoint_url=address, **login).create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "LockID", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "LockID", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield {
            "AWS_ENDPOINT_URL": address,
            "AWS_ENDPOINT_URL_DYNAMODB": locks,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }


class _RepeatFilter(BaseHTTPRequestHandler):
    """Takes the repeat of a request whose answer was lost for what it is.

    The SDK in Terraform repeats a PutItem that it has no answer to. DynamoDB then refuses it by the lock
    that the first try has taken, and Terraform reports a conflict with itself: cut the connection after a
    PutItem to see it. A real table does the same, and no test here is about that. It was met once, on a
    busy machine; what lost the answer is not known. ministack gave all of 19,000 under load, and 170
    applies, some of them stopped and continued at random, sent no repeat. A repeat says in its header that
    it is one.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    emulator_port: int

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, content = self._forward(body)
        if status == 400 and self._is_repeat() and self._is_stored(body):
            status, headers, content = 200, {"Content-Type": "application/x-amz-json-1.0"}, b"{}"
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """As it was signed, the name of the host included."""
        connection = http.client.HTTPConnection("127.0.0.1", self.emulator_port, timeout=30)
        try:
            connection.request("POST", self.path, body, dict(self.headers.items()))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _is_repeat(self) -> bool:
        is_put = self.headers.get("X-Amz-Target", "").endswith(".PutItem")
        attempt = re.match(r"attempt=(\d+)", self.headers.get("Amz-Sdk-Request", ""))
        return is_put and attempt is not None and int(attempt[1]) > 1

    def _is_stored(self, body: bytes) -> bool:
        """Whether what is to be written is there: word by word, a lock's own id included."""
        query = json.loads(body)
        key = {"LockID": query["Item"]["LockID"]}
        table = boto3.client(
            "dynamodb", endpoint_url=f"http://127.0.0.1:{self.emulator_port}", region_name=REGION,
            aws_access_key_id="test", aws_secret_access_key="test",
        )  # fmt: skip
        answer = table.get_item(TableName=query["TableName"], Key=key, ConsistentRead=True)
        return bool(answer.get("Item") == query["Item"])


@contextmanager
def _repeats(emulator_port: int) -> Iterator[str]:
    with _serving(type("Repeats", (_RepeatFilter,), {"emulator_port": emulator_port})) as address:
        yield address


def s3(environment: dict[str, str], *, with_table: bool) -> Cloud:
    locking: dict[str, Any] = {"dynamodb_table": TABLE} if with_table else {"use_lockfile": True}
    settings = {"bucket": BUCKET, "region": REGION, "use_path_style": True, **locking}
    return Cloud("s3", settings, environment)


# --- Google ----------------------------------------------------------------------------------------


@contextmanager
def google(folder: Path) -> Iterator[Cloud]:
    """gcp-storage-emulator behind a filter that honours `ifGenerationMatch`, by which locks are taken."""
    port = free_port()
    command = [program("gcp-storage-emulator"), "start", "--host=127.0.0.1", f"--port={port}", "--in-memory"]
    with running(command, folder / "gcs.log", port), _filter(port) as address:
        answer = httpx.post(f"{address}/storage/v1/b?project=suite", json={"name": BUCKET}, trust_env=False)
        assert answer.is_success, answer.text
        yield Cloud(
            "gcs",
            {"bucket": BUCKET},
            {
                "STORAGE_EMULATOR_HOST": f"{address}/storage/v1/",
                "GOOGLE_OAUTH_ACCESS_TOKEN": "google-secret-token",
            },
        )


class _GenerationFilter(BaseHTTPRequestHandler):
    """Answers 412 where Google would: an object that must not be there is, or is another one by now."""

    protocol_version = "HTTP/1.1"
    emulator_port: int
    one_at_a_time = threading.Lock()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = self._body()
        headers = {name: value for name, value in self.headers.items() if name.lower() != "transfer-encoding"}
        with self.one_at_a_time:
            if self._generation_differs():
                self._answer(412, b'{"error": {"code": 412, "message": "conditionNotMet"}}')
                return
            status, headers, content = self._forward(self.command, self.path, body, headers)
        self._answer(status, content, headers)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815 - the server's names

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _generation_differs(self) -> bool:
        place = urlsplit(self.path)
        query = parse_qs(place.query)
        if "ifGenerationMatch" not in query:
            return False
        name = query["name"][0] if "name" in query else None
        path = f"/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}" if name else place.path
        status, _, content = self._forward("GET", path, b"", {})
        generation = "0"
        if status == 200:
            generation = str(httpx.Response(200, content=content).json()["generation"])
        return generation != query["ifGenerationMatch"][0]

    def _forward(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.emulator_port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def _filter(emulator_port: int) -> Iterator[str]:
    with _serving(type("Filter", (_GenerationFilter,), {"emulator_port": emulator_port})) as address:
        yield address


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


# --- Microsoft -------------------------------------------------------------------------------------


@contextmanager
def microsoft(folder: Path) -> Iterator[Cloud]:
    """azurite with a certificate of the suite's, reached by its real name through a CONNECT proxy."""
    port = free_port()
    authority, certificate, key = certificates(folder)
    options = "--oauth basic --skipApiVersionCheck --disableTelemetry --inMemoryPersistence --silent"
    command = [
        program("azurite-blob"), "--blobHost", "127.0.0.1", "--blobPort", str(port),
        "--cert", str(certificate), "--key", str(key), *options.split(),
    ]  # fmt: skip
    sas = account_sas()
    with (
        running(command, folder / "azure.log", port, AZURITE_ACCOUNTS=f"{ACCOUNT}:{ACCOUNT_KEY}"),
        connect_proxy(port) as proxy,
    ):
        make_container(port, authority, sas)
        yield Cloud(
            "azurerm",
            {"storage_account_name": ACCOUNT, "container_name": BUCKET},
            {"ARM_SAS_TOKEN": sas},
            {"HTTPS_PROXY": proxy, "SSL_CERT_FILE": str(authority)},
        )


def make_container(port: int, authority: Path, sas: str) -> None:
    trusted = ssl.create_default_context(cafile=str(authority))
    address = f"https://127.0.0.1:{port}/{ACCOUNT}/{BUCKET}?restype=container&{sas}"
    answer = httpx.put(address, verify=trusted, trust_env=False, headers={"x-ms-version": "2020-08-04"})
    assert answer.is_success, answer.text


def account_sas() -> str:
    """A shared access signature for everything in the account, as the portal would make it."""
    until = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    parameters = {"sv": "2020-08-04", "ss": "b", "srt": "sco", "sp": "rwdlacx", "se": until, "spr": "https"}
    text = "\n".join(
        [
            ACCOUNT,
            parameters["sp"],
            parameters["ss"],
            parameters["srt"],
            "",
            until,
            "",
            parameters["spr"],
            parameters["sv"],
            "",
        ]
    )
    signature = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
    return urlencode({**parameters, "sig": base64.b64encode(signature).decode()})


class _Connect(BaseHTTPRequestHandler):
    """Every tunnel ends at the emulator, whatever name was asked for."""

    emulator_port: int

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_CONNECT(self) -> None:
        with socket.create_connection(("127.0.0.1", self.emulator_port)) as upstream:
            self.send_response(200)
            self.end_headers()
            ends = {self.connection: upstream, upstream: self.connection}
            while True:
                for ready in select.select(list(ends), [], [], 30)[0]:
                    received = ready.recv(65536)
                    if not received:
                        return
                    ends[ready].sendall(received)


@contextmanager
def connect_proxy(emulator_port: int) -> Iterator[str]:
    with _serving(type("Connect", (_Connect,), {"emulator_port": emulator_port})) as address:
        yield address


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """A certificate authority, and the certificate and key of the storage's name that it has signed."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("Slipway suite", authority_key, authority_key, is_authority=True)
    leaf = _certificate("storage", key, authority_key, issuer="Slipway suite")
    paths = folder / "authority.pem", folder / "storage.pem", folder / "storage.key"
    paths[0].write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    paths[2].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    signed_with: ec.EllipticCurvePrivateKey,
    *,
    issuer: str | None = None,
    is_authority: bool = False,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in MICROSOFT_NAMES]
    names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer or subject))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(_usage(signs=is_authority), critical=True)
        # From 3.13 on, Python wants to know whose key is whose.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signed_with.public_key()), critical=False
        )
        .sign(signed_with, hashes.SHA256())
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
