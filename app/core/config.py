"""The configuration of a process, read once from the environment."""

import hashlib
import ipaddress
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from app.core import base64url
from app.core.environment import EnvironmentReader

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# sun_path holds 107 bytes; Valkey appends nothing to it, but leave room in case it ever does.
MAX_SOCKET_PATH_BYTES = 100
MIN_SECRET_LENGTH = 32

# Not configurable: they belong to this version of the code.
MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"


@dataclass(frozen=True)
class Bucket:
    """A token bucket: refilled at `per_second`, it holds at most `burst` tokens."""

    per_second: float
    burst: int

    def times(self, many: int) -> "Bucket":
        """Return a bucket `many` times as large, refilled as many times as fast."""
        return Bucket(many * self.per_second, many * self.burst)


@dataclass(frozen=True)
class Argon2Cost:
    """Argon2id parameters."""

    memory_kib: int = 19456
    passes: int = 2
    lanes: int = 1


@dataclass(frozen=True)
class FailureLimit:
    """How many failed attempts an account allows one client network per window."""

    attempts: int = 10
    window_seconds: int = 300


@dataclass(frozen=True)
class Config:
    """What the operator decides before start-up; everything else is a runtime setting."""

    instance: Path
    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    embedded_redis: bool = False
    bind: str = "127.0.0.1:8000"
    workers: int = 2
    storage_bootstrap: Literal["local", "none"] = "none"
    trusted_proxies: tuple[Network, ...] = ()
    rate_limits: bool = True
    anonymous_bucket: Bucket = Bucket(per_second=20, burst=100)
    session_bucket: Bucket = Bucket(per_second=50, burst=300)
    failure_limit: FailureLimit = FailureLimit()
    response_floor_ms: int = 350
    argon2: Argon2Cost = Argon2Cost()
    password_threads: int = 1
    database_pool: int = 10
    sse_per_user: int = 20
    sse_per_worker: int = 8000
    avatar_dir: Path = Path("instance/avatars")
    avatar_accel: str = ""
    mail_dir: Path = Path("instance/mail")
    external_auth_legacy_callback: bool = False
    allow_loopback_http: bool = False
    provider_networks: tuple[Network, ...] = ()
    secret_keys: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)
    log_format: Literal["text", "json"] = "text"
    log_level: str = "INFO"
    slow_request_ms: int = 1000
    # One warning per GATEHOUSE_* variable that this version does not know.
    unknown_variables: tuple[str, ...] = ()

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "Config":
        """Read every `GATEHOUSE_*` variable.

        Raises: ConfigError, naming all bad variables at once.
        """
        reader = EnvironmentReader(environ)
        instance = Path(reader.text("INSTANCE", "instance")).absolute()
        database_url = reader.read(
            "DATABASE_URL", f"sqlite:///{instance / 'gatehouse.db'}", _database_url
        )
        embedded_database = not reader.is_set("DATABASE_URL")
        config = cls(
            instance=instance,
            database_url=database_url,
            redis_url=reader.read("REDIS_URL", default_redis_url(instance), _redis_url),
            embedded_redis=not reader.is_set("REDIS_URL"),
            bind=reader.read("BIND", cls.bind, _bind),
            workers=reader.integer("WORKERS", cls.workers, 1, 256),
            storage_bootstrap=reader.choice(
                "STORAGE_BOOTSTRAP", "local" if embedded_database else "none", ("local", "none")
            ),
            trusted_proxies=reader.read("TRUSTED_PROXIES", cls.trusted_proxies, _networks),
            rate_limits=reader.switch("RATE_LIMITS", default=cls.rate_limits),
            anonymous_bucket=reader.read("RATE_LIMIT_ANONYMOUS", cls.anonymous_bucket, _bucket),
            session_bucket=reader.read("RATE_LIMIT_SESSION", cls.session_bucket, _bucket),
            failure_limit=reader.read("LOGIN_FAILURES", cls.failure_limit, _failure_limit),
            response_floor_ms=reader.integer("RESPONSE_FLOOR_MS", cls.response_floor_ms, 0, 10_000),
            argon2=reader.read("ARGON2", cls.argon2, _argon2_cost),
            password_threads=reader.integer("PASSWORD_THREADS", cls.password_threads, 1, 64),
            database_pool=reader.integer("DATABASE_POOL", cls.database_pool, 1, 200),
            sse_per_user=reader.integer("SSE_PER_USER", cls.sse_per_user, 1, 10_000),
            sse_per_worker=reader.integer("SSE_PER_WORKER", cls.sse_per_worker, 1, 100_000),
            avatar_dir=reader.folder("AVATAR_DIR", instance / "avatars"),
            avatar_accel=reader.read("AVATAR_ACCEL", cls.avatar_accel, _path_prefix),
            mail_dir=reader.folder("MAIL_DIR", instance / "mail"),
            external_auth_legacy_callback=reader.switch(
                "EXTERNAL_AUTH_LEGACY_CALLBACK", default=cls.external_auth_legacy_callback
            ),
            provider_networks=reader.read("PROVIDER_NETWORKS", cls.provider_networks, _networks),
            allow_loopback_http=reader.switch(
                "ALLOW_LOOPBACK_HTTP", default=cls.allow_loopback_http
            ),
            secret_keys=reader.read("SECRET_KEYS", (), parse_secret_keys),
            log_format=reader.choice("LOG_FORMAT", cls.log_format, ("text", "json")),
            slow_request_ms=reader.integer("SLOW_REQUEST_MS", cls.slow_request_ms, 0, 3_600_000),
            log_level=reader.choice(
                "LOG_LEVEL", cls.log_level, ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
            ),
        )
        reader.refuse_if_bad()
        return replace(config, unknown_variables=reader.unknown())


def default_redis_url(instance: Path) -> str:
    """Return the URL of this instance folder's embedded Valkey.

    A Unix socket's path must stay short, so the socket of a deeply nested instance is put in a
    private folder under the system's temporary folder instead.
    """
    socket = instance / "valkey.sock"
    if len(os.fsencode(socket)) > MAX_SOCKET_PATH_BYTES:
        name = hashlib.sha256(os.fsencode(instance)).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"gatehouse-{os.getuid()}-{name}"
        socket = folder / "valkey.sock"
    return f"unix://{quote(str(socket))}"


def _path_prefix(raw: str) -> str:
    """Parse the path of a location in the reverse proxy."""
    if not re.fullmatch(r"(/[A-Za-z0-9_~-]+)+/?", raw):
        raise ValueError("must be a path such as /internal/avatars")
    return raw.rstrip("/")


def _bind(raw: str) -> str:
    host, separator, port = raw.rpartition(":")
    if raw.startswith("unix:") and raw != "unix:":
        return raw
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("must be HOST:PORT or unix:PATH")
    return raw


def _networks(raw: str) -> tuple[Network, ...]:
    parts = (part.strip() for part in raw.split(","))
    return tuple(ipaddress.ip_network(part, strict=False) for part in parts if part)


def _bucket(raw: str) -> Bucket:
    refill, burst = _numbers(raw, 2, "REFILL_PER_SECOND/BURST, both above 0")
    return Bucket(per_second=refill, burst=_whole(burst))


def _failure_limit(raw: str) -> FailureLimit:
    attempts, window = _numbers(raw, 2, "ATTEMPTS/WINDOW_SECONDS, both above 0")
    return FailureLimit(attempts=_whole(attempts), window_seconds=_whole(window))


def _argon2_cost(raw: str) -> Argon2Cost:
    memory, passes, lanes = (_whole(n) for n in _numbers(raw, 3, "MEMORY_KIB/PASSES/LANES"))
    if memory < 8 * lanes or memory > 4 * 1024 * 1024 or lanes > 64 or passes > 100:
        raise ValueError("memory must be 8 KiB per lane or more, and all of it sensible")
    return Argon2Cost(memory_kib=memory, passes=passes, lanes=lanes)


def _database_url(raw: str) -> str:
    """Check the URL, and set the one PostgreSQL driver that is installed.

    Error messages never repeat the value, which may hold a password.
    """
    # Imported only when a URL is given: SQLAlchemy would slow down the launcher's start.
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(raw)
    except (ArgumentError, ValueError):
        raise ValueError("is not a database URL") from None
    kind = url.drivername.split("+")[0]
    if kind in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg2").render_as_string(hide_password=False)
    if kind != "sqlite":
        raise ValueError("must start with postgresql:// or sqlite:///")
    if not url.database or url.database == ":memory:":
        raise ValueError("must name a file: every worker would have a memory database of its own")
    return f"sqlite:///{Path(url.database).absolute()}"


def _redis_url(raw: str) -> str:
    from redis.connection import parse_url as parse_redis_url  # likewise only when it is given

    try:
        parse_redis_url(raw)  # type: ignore[no-untyped-call]
    except ValueError:
        raise ValueError("must be a redis://, rediss:// or unix:// URL") from None
    return raw


def _numbers(raw: str, count: int, shape: str) -> list[float]:
    """Parse `count` positive numbers separated by slashes."""
    problem = ValueError(f"must be {shape}")
    parts = raw.split("/")
    if len(parts) != count:
        raise problem
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        raise problem from None
    if not all(0 < number < 1e9 for number in numbers):
        raise problem
    return numbers


def _whole(number: float) -> int:
    """Return a whole number as an integer; truncating a fraction could leave a limit of 0."""
    if not number.is_integer():
        raise ValueError(f"must be a whole number, not {number}")
    return int(number)


def parse_secret_keys(raw: str) -> tuple[tuple[str, bytes], ...]:
    """Parse `ID:BASE64URL,...`, the signing key first; each secret has at least 32 bytes."""
    keys = []
    for part in raw.split(","):
        key_id, separator, encoded = part.strip().partition(":")
        try:
            secret = base64url.decoded(encoded.rstrip("="))
        except ValueError:
            secret = b""
        if not separator or not key_id.isalnum() or len(secret) < MIN_SECRET_LENGTH:
            raise ValueError("must be ID:SECRET,... with base64url secrets of 32 bytes or more")
        keys.append((key_id, secret))
    if len({key_id for key_id, _ in keys}) != len(keys):
        raise ValueError("names one key id twice")
    return tuple(keys)
