"""The configuration of a process, read once from the environment."""

import difflib
import hashlib
import ipaddress
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast
from urllib.parse import quote

from app.core import base64url
from app.core.parsing import Bounds, Word, one_of, switch
from app.core.texts import MAX_SOCKET_PATH_BYTES, one_line, sqlite_url

T = TypeVar("T")

PREFIX = "GATEHOUSE_"
# Not part of the configuration: a secret given to a command, and a flag from bin/serve to gunicorn.
NON_CONFIG_VARIABLES = frozenset({"CLIENT_SECRET", "PREPARES"})
# Injected by Kubernetes and Docker for services called gatehouse, gatehouse-valkey and the like. A
# PORT that an operator set is a number, meant for BIND; one set by Kubernetes is a URL.
_INJECTED = re.compile(
    r"([A-Z0-9_]+_)?(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)=.*"
    r"|PORT_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?=.*|PORT=.*://.*)"
)


class ConfigError(Exception):
    """The environment, the instance folder or a key file is unusable; one line per problem."""


class EnvironmentReader:
    """Reads variables by their names without PREFIX; blank ones count as unset."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._known = set(NON_CONFIG_VARIABLES)
        self._problems: list[str] = []

    def is_set(self, name: str) -> bool:
        """Return whether the variable is set, and note its name as known."""
        self._known.add(name)
        return bool(self._environ.get(PREFIX + name, "").strip())

    def unknown(self) -> tuple[str, ...]:
        """Return a warning about each variable with PREFIX that nothing reads.

        Call it after everything has been read. Values are not repeated: they may be secret.
        """
        ours = {
            name.removeprefix(PREFIX): value.strip()
            for name, value in self._environ.items()
            if name.startswith(PREFIX)
        }
        return tuple(
            self._complaint(name)
            for name in sorted(ours.keys() - self._known)
            if ours[name] and not _INJECTED.fullmatch(f"{name}={ours[name]}")
        )

    def _complaint(self, name: str) -> str:
        near = difflib.get_close_matches(name.upper(), sorted(self._known), 1)
        hint = f"; did you mean {PREFIX}{near[0]}?" if near else ""
        return one_line(f"{PREFIX}{name} is not a variable of this version and is ignored{hint}")

    def refuse_if_bad(self) -> None:
        """Raise ConfigError if any variable read so far is bad."""
        if self._problems:
            raise ConfigError("\n".join(self._problems))

    def read_fields(self, configuration: type[Any], **defaults: object) -> dict[str, Any]:
        """Read what a dataclass declares by `variable`; `defaults` go before its own."""
        return {
            each.name: self.read(
                each.metadata["name"] or each.name.upper(),
                defaults.get(each.name, each.default),
                each.metadata["parse"],
            )
            for each in fields(configuration)
            if "parse" in each.metadata
        }

    def read(self, name: str, default: T, parse: Callable[[str], T]) -> T:
        """Return the parsed variable, or `default`; `parse` raises ValueError for a bad value."""
        if not self.is_set(name):
            return default
        try:
            return parse(self._environ[PREFIX + name].strip())
        except ValueError as error:
            self._problems.append(one_line(f"{PREFIX}{name}: {error}"))
            return default


def variable(default: T, parse: Callable[[str], T], *, name: str = "", hidden: bool = False) -> T:
    """Declare a field of the configuration, for `EnvironmentReader.read_fields`.

    Its variable is named like the field, unless `name` says otherwise; `hidden` ones hold secrets.
    """
    declared: Any = field(default=default, repr=not hidden, metadata={"parse": parse, "name": name})
    return cast("T", declared)


def folder(raw: str) -> Path:
    """Read the path of a folder, which need not exist yet; made absolute."""
    path = Path(raw).absolute()
    for each in (path, *path.parents):
        with suppress(OSError):  # as far as this user can see
            if not stat.S_ISDIR(each.stat().st_mode):
                raise ValueError(f"{each} is not a folder")
    return path


def choice(*allowed: Word) -> Callable[[str], Word]:
    """Read one of the `allowed` words."""
    return lambda raw: one_of(raw, allowed)


def integer(least: int, most: int) -> Callable[[str], int]:
    """Read a whole number from `least` to `most`."""
    bounds = Bounds(least, most)

    def parse(raw: str) -> int:
        try:
            return bounds.read(raw)
        except ValueError:
            raise ValueError(f"must be a whole number {bounds}") from None

    return parse


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MIN_SECRET_LENGTH = 32

# Not configurable: they belong to this version of the code.
MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"


@dataclass(frozen=True)
class Bucket:
    """A token bucket: refilled at `per_second`, it holds at most `burst` tokens."""

    per_second: float
    burst: int


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


def _absolute(raw: str) -> Path:
    return Path(raw).absolute()


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
    shape = "REFILL_PER_SECOND/BURST, both above 0, the burst a whole number"
    return Bucket(*_numbers(raw, (float, int), shape))


def _failure_limit(raw: str) -> FailureLimit:
    shape = "ATTEMPTS/WINDOW_SECONDS, whole numbers above 0"
    return FailureLimit(*_numbers(raw, (int, int), shape))


def _argon2_cost(raw: str) -> Argon2Cost:
    shape = "MEMORY_KIB/PASSES/LANES, whole numbers above 0"
    memory, passes, lanes = _numbers(raw, (int, int, int), shape)
    if memory < 8 * lanes or memory > 4 * 1024 * 1024 or lanes > 64 or passes > 100:
        raise ValueError("memory must be at least 8 KiB per lane, and all three numbers reasonable")
    return Argon2Cost(memory_kib=memory, passes=passes, lanes=lanes)


def _database_url(raw: str) -> str:
    from app.core import store_urls  # only when it is given: SQLAlchemy would slow the start down

    return store_urls.database_url(raw)


def _redis_url(raw: str) -> str:
    from app.core import store_urls

    return store_urls.redis_url(raw)


def _numbers(raw: str, kinds: Sequence[type[float]], shape: str) -> list[Any]:
    """Parse positive numbers of these kinds, with slashes between them."""
    try:
        numbers = [kind(part) for kind, part in zip(kinds, raw.split("/"), strict=True)]
    except ValueError:
        raise ValueError(f"must be {shape}") from None
    if not all(0 < number < 1e9 for number in numbers):
        raise ValueError(f"must be {shape}")
    return numbers


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


@dataclass(frozen=True)
class Config:
    """What the operator decides before start-up; everything else is a runtime setting."""

    instance: Path
    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    embedded_redis: bool = False
    bind: str = variable("127.0.0.1:8000", _bind)
    workers: int = variable(2, integer(1, 256))
    storage_bootstrap: Literal["local", "none"] = variable("none", choice("local", "none"))
    trusted_proxies: tuple[Network, ...] = variable((), _networks)
    rate_limits: bool = variable(True, switch)
    anonymous_bucket: Bucket = variable(Bucket(20, 100), _bucket, name="RATE_LIMIT_ANONYMOUS")
    session_bucket: Bucket = variable(Bucket(50, 300), _bucket, name="RATE_LIMIT_SESSION")
    failure_limit: FailureLimit = variable(FailureLimit(), _failure_limit, name="LOGIN_FAILURES")
    response_floor_ms: int = variable(350, integer(0, 10_000))
    argon2: Argon2Cost = variable(Argon2Cost(), _argon2_cost)
    password_threads: int = variable(1, integer(1, 64))
    breached_passwords: Path | None = variable(None, _absolute)
    database_pool: int = variable(10, integer(1, 200))
    sse_per_user: int = variable(20, integer(1, 10_000))
    sse_per_worker: int = variable(8000, integer(1, 100_000))
    avatar_dir: Path = variable(Path("instance/avatars"), folder)
    avatar_accel: str = variable("", _path_prefix)
    mail_dir: Path = variable(Path("instance/mail"), folder)
    external_auth_legacy_callback: bool = variable(False, switch)
    allow_loopback_http: bool = variable(False, switch)
    provider_networks: tuple[Network, ...] = variable((), _networks)
    admin_networks: tuple[Network, ...] = variable((), _networks)
    secret_keys: tuple[tuple[str, bytes], ...] = variable((), parse_secret_keys, hidden=True)
    log_format: Literal["text", "json"] = variable("text", choice("text", "json"))
    log_level: str = variable("INFO", choice("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
    slow_request_ms: int = variable(1000, integer(0, 3_600_000))
    # One warning per GATEHOUSE_* variable that this version does not know.
    unknown_variables: tuple[str, ...] = ()

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "Config":
        """Read every `GATEHOUSE_*` variable.

        Raises: ConfigError, naming all bad variables at once.
        """
        reader = EnvironmentReader(environ)
        instance = Path(reader.read("INSTANCE", "instance", str)).absolute()
        database = sqlite_url(instance / "gatehouse.db")
        config = cls(
            instance=instance,
            database_url=reader.read("DATABASE_URL", database, _database_url),
            redis_url=reader.read("REDIS_URL", default_redis_url(instance), _redis_url),
            embedded_redis=not reader.is_set("REDIS_URL"),
            **reader.read_fields(
                cls,
                storage_bootstrap="none" if reader.is_set("DATABASE_URL") else "local",
                avatar_dir=instance / "avatars",
                mail_dir=instance / "mail",
            ),
        )
        reader.refuse_if_bad()
        return replace(config, unknown_variables=reader.unknown())
