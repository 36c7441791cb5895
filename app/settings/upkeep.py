"""Operations on all settings at once: list, validate, export, re-encrypt."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.core.database.key_use import KeyUse
from app.core.runtime import Runtime
from app.core.secret_box import REDACTED, Resealed, Resealer, SecretUnreadable
from app.core.setting_kinds import Key
from app.settings import keys, queries, service
from app.settings.models import SystemConfig

Wire = str | list[str]


@dataclass(frozen=True)
class Setting:
    """One setting; `text` and `updated_at` are as stored, and None if it is not set."""

    key: Key[Any]
    text: str | None = field(default=None, repr=False)
    updated_at: datetime | None = None

    @property
    def is_set(self) -> bool:
        """Whether an operator has set it."""
        return self.text is not None

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


@dataclass(frozen=True)
class Problem:
    """What is wrong with a stored value, by itself or in combination with others."""

    key: str
    problem: str


def find(rt: Runtime, name: str) -> Setting:
    """Return one setting.

    Raises: SettingUnknown.
    """
    key = service.find_key(name)
    with rt.reading() as session:
        return _setting(key, queries.find(session, name))


def list_all(rt: Runtime) -> list[Setting]:
    """Return every known setting, sorted by name."""
    with rt.reading() as session:
        stored = queries.list_stored(session)
        return [_setting(key, stored.get(name)) for name, key in sorted(keys.ALL.items())]


def export(rt: Runtime) -> dict[str, Wire]:
    """Return the set values, as `service.change` takes them, without secrets and invalid ones."""
    return {
        setting.key.name: setting.value
        for setting in list_all(rt)
        if setting.text is not None
        and not setting.key.is_sensitive
        and _complaint(rt, setting.key, setting.text) is None
    }


def problems(rt: Runtime) -> list[Problem]:
    """Check every stored value by itself and all of them together."""
    with rt.reading() as session:
        texts = queries.list_texts(session)
        return [*_single_problems(rt, texts), *_joint_problems(rt, session, texts)]


def reseal(rt: Runtime, session: Session) -> Resealed:
    """Re-encrypt the sensitive settings under the newest key.

    Values that cannot be decrypted are left alone: a restored key may still decrypt them.
    """
    resealer, changed, texts = Resealer(rt.secret_box), 0, queries.list_texts(session)
    for name in sorted(name for name, key in keys.ALL.items() if key.is_sensitive):
        sealed = texts.get(name)
        fresh = resealer.resealed(sealed, name) if sealed else None
        if fresh is not None:
            queries.store(session, name, fresh, rt.clock.now())
            changed += 1
    return Resealed(changed, resealer.unreadable)


def count_keys(rt: Runtime, session: Session, use: KeyUse) -> None:
    """Count the sensitive settings by the key they are encrypted with."""
    texts = queries.list_texts(session)
    names = [name for name, key in keys.ALL.items() if key.is_sensitive and texts.get(name)]
    use.add_secrets(rt.secret_box, {name: texts[name] for name in names})


def _single_problems(rt: Runtime, texts: Mapping[str, str]) -> Iterator[Problem]:
    for name, text in sorted(texts.items()):
        key = keys.ALL.get(name)
        if key is None:
            yield Problem(
                name, "is not a setting of this version; unset it unless another version needs it"
            )
        elif complaint := _complaint(rt, key, text):
            yield Problem(name, complaint)


def _complaint(rt: Runtime, key: Key[Any], text: str) -> str | None:
    try:
        key.render(rt.secret_box.open(text, key.name) if key.is_sensitive and text else text)
    except SecretUnreadable:
        return (
            "cannot be decrypted with any key of this installation. Is a key missing? Put it back; "
            "only if it is lost, set it again"
        )
    except ValueError as error:
        return str(error)
    return None


def _joint_problems(rt: Runtime, session: Session, texts: Mapping[str, str]) -> Iterator[Problem]:
    if service.lacks_code_delivery(texts):
        name = keys.EMAIL_CODE_LOGIN_ENABLED.name
        yield Problem(name, "needs mail_smtp_host and mail_from_address")
    if service.is_cors_contradictory(texts):
        yield Problem("cors_allowed_origins", service.CORS_CONTRADICTION)
    if service.leaves_no_login_method(rt, session, texts):
        yield Problem(keys.PASSWORD_LOGIN_ENABLED.name, "no way to sign in is left")


def _setting(key: Key[Any], row: SystemConfig | None) -> Setting:
    return Setting(key, row.value, row.updated_at) if row else Setting(key)


def _wire(key: Key[Any], value: Any) -> Wire:
    """Return a string or a list of strings; numbers and booleans become strings, too."""
    if isinstance(value, tuple):
        return list(value)
    text: str = key.render(value) if isinstance(value, bool) else str(value)
    return text
