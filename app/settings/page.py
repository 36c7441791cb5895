"""The page docs/settings.md."""

import json
from collections.abc import Sequence
from typing import Any

from app.core.setting_kinds import Key
from app.settings import keys
from app.settings.upkeep import Setting

# Each section lists the settings whose names start with one of its prefixes.
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Signing in, accounts and sessions", ("auth_",)),
    ("Addresses of the site", ("public_", "cors_")),
    ("Mail", ("mail_",)),
    ("What the frontend shows", ("branding_", "archive_", "frontend_")),
    ("Avatars, storage and teams", ("avatar_", "gravatar_", "default_", "team_")),
    ("Audit log and cleaning up", ("audit_", "maintenance_")),
)

HEAD = """\
# Runtime settings

`flask config list` shows the values in force, `flask config get KEY` one of them with what is said
here, `flask config set KEY VALUE` changes it, `flask config unset KEY` returns it to its default.
Every worker follows within a second. Several are changed at once with `flask config import FILE`.

This page is printed by `flask config describe --markdown`.
"""


def default_of(key: Key[Any]) -> str:
    """Return the default in words."""
    default = Setting(key).default
    if default in ("", []):
        return "empty"
    if default == list(key.options):
        return "all of them"
    return default if isinstance(default, str) else json.dumps(default)


def page() -> str:
    """Return the content of docs/settings.md."""
    return "\n".join([HEAD, *(_section(*section) for section in SECTIONS)])


def _section(title: str, beginnings: Sequence[str]) -> str:
    found = [key for name, key in sorted(keys.ALL.items()) if name.startswith(tuple(beginnings))]
    rows = (
        f"| `{key.name}` | {key.meaning} | {key.takes} | {default_of(key)} |\n" for key in found
    )
    head = "| Key | Meaning | Takes | Default |\n|---|---|---|---|\n"
    return f"## {title}\n\n{head}{''.join(rows)}"
