"""Operations on all settings at once: list, validate, export, describe, re-encrypt."""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import EntityType
from app.core.access import Operator
from app.core.runtime import Runtime
from app.core.setting_groups import Group
from app.core.setting_kinds import Key
from app.crypto.secret_box import REDACTED, Resealed, Resealer, SecretUnreadable
from app.settings import catalogue, keys, queries, service
from app.settings.models import SystemConfig
from app.store.key_use import KeyUse

Wire = str | list[str]

HEAD = """\
# Runtime settings

`flask config list` shows the values in force, `flask config get KEY` shows one with its meaning,
`flask config set KEY VALUE` changes it, `flask config unset KEY` returns it to its default, and
`flask config import FILE` changes several at once. Every worker follows within a second.

This page is printed by `flask config describe --markdown`.
"""


@dataclass(frozen=True)
class Setting:
    """One setting; what follows `key` is as stored, and None if it was never set."""

    key: Key[Any]
    text: str | None = field(default=None, repr=False)
    updated_at: datetime | None = None
    updated_by: int | None = None
    built_in: str = ""

    @property
    def is_set(self) -> bool:
        """Whether an operator has set it."""
        return self.text is not None

    @property
    def id(self) -> int:
        """Its place among all settings."""
        return catalogue.position_of(self.key.name)

    @property
    def category(self) -> str:
        """The heading under which pages show it."""
        return self.key.group.category

    @property
    def value(self) -> Wire:
        """Return the value in force as it is shown; secrets are redacted."""
        if self.key.is_sensitive:
            return REDACTED if self.text else ""
        return _wire(self.key, self.key.value_of(self.text))

    @property
    def default(self) -> Wire:
        """Return the default as it is shown."""
        return _wire(self.key, self.key.default)

    @property
    def value_with_text(self) -> Wire:
        """Like `value`; where that is empty, the built-in text that is used instead."""
        return self.built_in if self.built_in and not self.value else self.value

    @property
    def default_with_text(self) -> Wire:
        """Like `default`, as above."""
        return self.built_in or self.default


def find(rt: Runtime, name: str) -> Setting:
    """Return one setting.

    Raises: SettingUnknown.
    """
    key = service.find_key(name)
    return next(each for each in list_all(rt) if each.key is key)


def list_all(rt: Runtime) -> list[Setting]:
    """Return every known setting, sorted by name."""
    with rt.reading() as session:
        stored: dict[str, dict[str, Any]] = {
            row.key: {"text": row.value, "updated_at": row.updated_at, "updated_by": row.updated_by}
            for row in session.scalars(select(SystemConfig))
        }
    return [replace(one, **stored.get(one.key.name, {})) for one in list_unset(rt)]


def list_unset(rt: Runtime) -> list[Setting]:
    """Return every known setting, sorted by name, as it is while nothing is set."""
    texts = {name: text for each in rt.hooks.template_defaults for name, text in each().items()}
    return [Setting(key, built_in=texts.get(name, "")) for name, key in sorted(keys.ALL.items())]


def export(rt: Runtime) -> dict[str, Wire]:
    """Return the set values, as `service.change` takes them, without secrets and invalid ones."""
    return {
        setting.key.name: setting.value
        for setting in list_all(rt)
        if setting.text is not None
        and not setting.key.is_sensitive
        and _complaint(rt, setting.key.name, setting.text) is None
    }


def export_for(rt: Runtime, by: Operator) -> dict[str, Wire]:
    """Do `export`, and record that an operator took it away."""
    with rt.transaction() as session:
        audit.record_action(rt, session, by, EntityType.SYSTEM_CONFIG, "config", "export")
    return export(rt)


def problems(rt: Runtime) -> list[tuple[str, str]]:
    """Check every stored value by itself and all of them together; return names and complaints."""
    with rt.reading() as session:
        texts = queries.list_texts(session)
        single = [(name, _complaint(rt, name, text)) for name, text in sorted(texts.items())]
        joint = service.joint_problems(rt, session, texts)
    return [(name, problem) for name, problem in (*single, *joint.items()) if problem]


def reseal(rt: Runtime, session: Session) -> Resealed:
    """Re-encrypt the sensitive settings under the newest key.

    Values that cannot be decrypted are left alone: a restored key may still decrypt them.
    """
    resealer, changed, texts = Resealer(rt.secret_box), 0, queries.list_texts(session)
    for name in sorted(name for name, key in keys.ALL.items() if key.is_sensitive):
        sealed = texts.get(name)
        fresh = resealer.resealed(sealed, name) if sealed else None
        if fresh is not None:
            queries.reseal(session, name, fresh)
            changed += 1
    return Resealed(changed, resealer.unreadable)


def count_keys(rt: Runtime, session: Session, use: KeyUse) -> None:
    """Count the sensitive settings by the key they are encrypted with."""
    texts = queries.list_texts(session)
    names = [name for name, key in keys.ALL.items() if key.is_sensitive and texts.get(name)]
    use.add_secrets(rt.secret_box, {name: texts[name] for name in names})


def _complaint(rt: Runtime, name: str, text: str) -> str | None:
    key = keys.ALL.get(name)
    if key is None:
        return "is not a setting of this version; unset it unless another version needs it"
    try:
        key.render(rt.secret_box.open(text, name) if key.is_sensitive and text else text)
    except SecretUnreadable:
        return (
            "cannot be decrypted with any key of this installation. Is a key missing? Put it back; "
            "only if it is lost, set it again"
        )
    except ValueError as error:
        return str(error)
    return None


def _wire(key: Key[Any], value: Any) -> Wire:
    """Return a string or a list of strings; numbers and booleans become strings, too."""
    if isinstance(value, tuple):
        return list(value)
    text: str = key.render(value) if isinstance(value, bool) else str(value)
    return text


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
    sections = dict.fromkeys(group.section for group in Group)
    return "\n".join([HEAD, *map(_section, sections)])


def _section(title: str) -> str:
    found = [key for _, key in sorted(keys.ALL.items()) if key.group.section == title]
    rows = (
        f"| `{key.name}` | {key.meaning} | {key.takes} | {default_of(key)} |\n" for key in found
    )
    head = "| Key | Meaning | Takes | Default |\n|---|---|---|---|\n"
    return f"## {title}\n\n{head}{''.join(rows)}"
