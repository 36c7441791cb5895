"""An identity provider on loopback that can be made to misbehave in any way.

It speaks OpenID Connect with PKCE correctly until a test changes `metadata`, `keys`, `header`,
`claims`, `token_answer` or the answer to a path.
"""

import base64
import hashlib
import json
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from app.core.clock import Clock

CLIENT_ID = "client"
CLIENT_SECRET = "a secret of more than thirty-two bytes: +/%"
SUBJECT = "248289761001"
PERSON = {
    "sub": SUBJECT,
    "email": "jane@example.com",
    "email_verified": True,
    "name": "Jane Doe",
    "preferred_username": "jane",
}
DESCRIPTION = ("email", "email_verified", "name", "preferred_username")
LIFE_SECONDS = 600
REMOVED: Any = object()

DISCOVERY = "/.well-known/openid-configuration"


@cache
def rsa_key(number: int = 0) -> rsa.RSAPrivateKey:
    """Return a key, cached by number because generating one is slow."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def ec_key(number: int = 0) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def public_jwk(key: Any, **members: Any) -> dict[str, Any]:
    """Return the public half as a JWK; a member set to REMOVED is left out."""
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    jwk = algorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": "1", "use": "sig"}
    return without_removed(jwk | members)


def without_removed(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not REMOVED}


@dataclass(frozen=True)
class Request:
    """One request as the provider received it."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Reply:
    """One answer; a body other than bytes is sent as JSON.

    `pieces` are sent one by one instead of the body, with a pause of `pause` seconds before each;
    with a `length` of None the body ends when the connection is closed.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterator[bytes] | None = None
    pause: float = 0.0
    length: int | Literal["right"] | None = "right"
    content_type: str = "application/json"

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Respond = Callable[[Request], Reply]


@dataclass
class _Granted:
    """An authorization code that was handed out."""

    redirect_uri: str
    nonce: str | None
    challenge: str


class _Server(ThreadingHTTPServer):
    """Has a backlog large enough for a burst of connections."""

    request_queue_size = 1024
    daemon_threads = True


class FakeProvider:
    """A context manager; `clock` dates its tokens, `tls` makes it serve HTTPS as `localhost`."""

    def __init__(self, clock: Clock, *, tls: ssl.SSLContext | None = None) -> None:
        self.clock = clock
        self.client_id, self.client_secret = CLIENT_ID, CLIENT_SECRET
        self.requests: list[Request] = []
        self.granted: dict[str, _Granted] = {}
        self.replies: dict[str, Reply | Respond] = {}
        self.signing_key: Any = rsa_key()
        self.keys: list[dict[str, Any]] = [public_jwk(self.signing_key)]
        self.algorithm = "RS256"
        self.header: dict[str, Any] = {"kid": "1"}
        self.claims: dict[str, Any] = {}
        # Claims that only user info has, as with most providers' defaults.
        self.not_in_id_token: tuple[str, ...] = ()
        self.token_answer: dict[str, Any] = {}
        # Makes the ID token, if set, from the header and claims it would have.
        self.sign: Callable[[dict[str, Any], dict[str, Any]], str] | None = None
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        scheme, host = ("https", "localhost") if tls else ("http", "127.0.0.1")
        if tls:
            socket = self._server.socket
            self._server.socket = tls.wrap_socket(
                socket, server_side=True, do_handshake_on_connect=False
            )
        self.issuer = f"{scheme}://{host}:{self._server.server_port}"
        self.metadata: dict[str, Any] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256"],
        }

    def __enter__(self) -> "FakeProvider":
        threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="provider", daemon=True
        ).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- for tests --------------------------------------------------------------------------------

    def sign_in(self, authorization_url: str) -> dict[str, str]:
        """Sign Jane in; return the callback's parameters."""
        query = _single(urlsplit(authorization_url).query)
        assert query["response_type"] == "code"
        assert query["client_id"] == self.client_id
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.granted[code] = _Granted(
            query["redirect_uri"], query.get("nonce"), query["code_challenge"]
        )
        return {"code": code, "state": query["state"]}

    def reply(self, path: str, body: Any = None, **members: Any) -> None:
        """Set the answer to a path from now on; `body` may be a function of the request."""
        self.replies[path] = body if callable(body) else Reply(body, **members)

    def seen(self, path: str) -> list[Request]:
        """Return the requests for a path."""
        return [request for request in self.requests if request.path == path]

    def id_token(self, nonce: str | None) -> str:
        """Return an ID token for Jane, with the changes in `header` and `claims`."""
        now = int(self.clock.now().timestamp())
        claims = {
            "iss": self.metadata["issuer"],
            "aud": self.client_id,
            "iat": now,
            "exp": now + LIFE_SECONDS,
            "nonce": nonce,
            **PERSON,
        }
        kept_back = dict.fromkeys(self.not_in_id_token, REMOVED)
        claims = without_removed(claims | self.claims | kept_back)
        header = without_removed({"alg": self.algorithm} | self.header)
        if self.sign:
            return self.sign(header, claims)
        return signed(header, claims, self.signing_key)

    # --- answers ----------------------------------------------------------------------------------

    def _answer(self, request: Request) -> Reply:
        self.requests.append(request)
        reply = self.replies.get(request.path)
        if reply is not None:
            return reply if isinstance(reply, Reply) else reply(request)
        answers: dict[str, Respond] = {
            DISCOVERY: lambda _: Reply(without_removed(self.metadata)),
            "/jwks": lambda _: Reply({"keys": self.keys}),
            "/authorize": self._authorize,
            "/token": self._token,
            "/userinfo": self._userinfo,
        }
        respond = answers.get(request.path)
        return respond(request) if respond else Reply({"error": "not_found"}, 404)

    def _authorize(self, request: Request) -> Reply:
        query = urlencode(self.sign_in(f"?{urlencode(request.query)}"))
        target = f"{request.query['redirect_uri']}?{query}"
        return Reply(b"", 302, {"Location": target})

    def _token(self, request: Request) -> Reply:
        form = request.form or request.query
        granted = self.granted.pop(form.get("code", ""), None)
        is_fitting = (
            granted is not None
            and form.get("grant_type") == "authorization_code"
            and granted.redirect_uri == form.get("redirect_uri")
            and granted.challenge == challenge(form.get("code_verifier", ""))
        )
        if not self._is_client(request, form):
            return Reply({"error": "invalid_client"}, 401)
        if granted is None or not is_fitting:
            return Reply({"error": "invalid_grant"}, 400)
        answer = {"access_token": "an-access-token", "token_type": "Bearer", "expires_in": 600}
        if granted.nonce:
            answer["id_token"] = self.id_token(granted.nonce)
        return Reply(without_removed(answer | self.token_answer))

    def _is_client(self, request: Request, form: Mapping[str, str]) -> bool:
        given = form.get("client_id"), form.get("client_secret")
        header = request.headers.get("Authorization", "")
        if header.startswith("Basic "):
            pair = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
            given = unquote_plus(pair[0]), unquote_plus(pair[2])
        return given in ((self.client_id, self.client_secret), (self.client_id, None))

    def _userinfo(self, request: Request) -> Reply:
        if request.headers.get("Authorization") != "Bearer an-access-token":
            return Reply({"error": "invalid_token"}, 401)
        changed = {name: value for name, value in self.claims.items() if name in PERSON}
        return Reply(without_removed(PERSON | changed))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._serve()

            def do_POST(self) -> None:
                self._serve()

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                length = int(self.headers.get("Content-Length", 0))
                form = _single(self.rfile.read(length).decode())
                query = _single(parts.query)
                request = Request(self.command, parts.path, query, form, dict(self.headers))
                self._send(provider._answer(request))

            def _send(self, reply: Reply) -> None:
                self.close_connection = True
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.content_type)
                length = len(reply.content) if reply.length == "right" else reply.length
                if length is not None and reply.pieces is None:
                    self.send_header("Content-Length", str(length))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for piece in reply.pieces or iter((reply.content,)):
                    time.sleep(reply.pause)
                    self.wfile.write(piece)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def signed(header: Mapping[str, Any], claims: Mapping[str, Any], key: Any) -> str:
    """Return a token with exactly this header, signed with the algorithm it names."""
    head = ".".join(encoded(part) for part in (header, claims))
    algorithm = jwt.get_algorithm_by_name(header["alg"])
    signature = algorithm.sign(head.encode(), algorithm.prepare_key(key))
    return f"{head}.{unpadded(signature)}"


def encoded(part: Mapping[str, Any]) -> str:
    return unpadded(json.dumps(part).encode())


def unpadded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def challenge(verifier: str) -> str:
    return unpadded(hashlib.sha256(verifier.encode()).digest())


def _single(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}
