"""Reads environment variables as typed values, and reports every bad one at once."""

import difflib
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from app.core.texts import one_line

T = TypeVar("T")
Word = TypeVar("Word", bound=str)

PREFIX = "GATEHOUSE_"
# Not part of the configuration: a secret given to a command, and a flag from bin/serve to gunicorn.
NON_CONFIG_VARIABLES = frozenset({"CLIENT_SECRET", "PREPARES"})
# Injected by Kubernetes and Docker for services called gatehouse, gatehouse-valkey and the like.
_INJECTED = re.compile(
    r"([A-Z0-9_]+_)?(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT_[0-9]+_(TCP|UDP|SCTP)(_[A-Z]+)?)"
)
_INJECTED_ADDRESS = re.compile(r"([A-Z0-9_]+_)?PORT")


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
        ours = (name.removeprefix(PREFIX) for name in self._environ if name.startswith(PREFIX))
        return tuple(self._complaint(name) for name in sorted(ours) if self._is_ignored(name))

    def _is_ignored(self, name: str) -> bool:
        """Return whether an operator set a variable that nothing reads."""
        value = self._environ[PREFIX + name].strip()
        if name in self._known or not value:
            return False
        if _INJECTED.fullmatch(name):
            return False
        # A PORT set by an operator is a number, meant for BIND; one set by Kubernetes is a URL.
        return not (_INJECTED_ADDRESS.fullmatch(name) and "://" in value)

    def _complaint(self, name: str) -> str:
        near = difflib.get_close_matches(name.upper(), sorted(self._known), 1)
        hint = f"; is it to be {PREFIX}{near[0]}?" if near else ""
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
            self._problems.append(f"{PREFIX}{name}: {error}")
            return default


def variable(default: T, parse: Callable[[str], T], *, name: str = "", hidden: bool = False) -> T:
    """Declare a field of the configuration, for `EnvironmentReader.read_fields`.

    Its variable is named like the field, unless `name` says otherwise; `hidden` ones hold secrets.
    """
    told: Any = field(default=default, repr=not hidden, metadata={"parse": parse, "name": name})
    return cast("T", told)


def folder(raw: str) -> Path:
    """Read the path of a folder, which need not exist yet; made absolute."""
    path = Path(raw).absolute()
    for each in (path, *path.parents):
        if _is_in_the_way(each):
            raise ValueError(f"{each} is not a folder")
    return path


def choice(*allowed: Word) -> Callable[[str], Word]:
    """Read one of the `allowed` words."""

    def parse(raw: str) -> Word:
        if raw not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return raw

    return parse


def switch(raw: str) -> bool:
    """Read `on` or `off`."""
    known = {"1": True, "true": True, "yes": True, "on": True}
    known |= {"0": False, "false": False, "no": False, "off": False}
    if raw.lower() not in known:
        raise ValueError("must be on or off")
    return known[raw.lower()]


def integer(least: int, most: int) -> Callable[[str], int]:
    """Read a whole number from `least` to `most`."""

    def parse(raw: str) -> int:
        if not raw.isascii() or not raw.isdigit() or not least <= int(raw) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(raw)

    return parse


def _is_in_the_way(path: Path) -> bool:
    """Return whether something other than a folder has this name, as far as this user can see."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False
