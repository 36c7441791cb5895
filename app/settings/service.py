"""Reading and changing runtime settings."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType, Event
from app.core.database import locks
from app.core.pubsub import Channel, Listener
from app.core.redis import SETTINGS_CHANNEL
from app.core.runtime import Runtime
from app.core.secret_box import REDACTED, SecretUnreadable
from app.core.setting_kinds import Key
from app.core.texts import did_you_mean, shortened
from app.settings import keys, queries
from app.settings.errors import SettingInvalid, SettingUnknown
from app.web import cors

T = TypeVar("T")

log = logging.getLogger(__name__)


def announce(rt: Runtime) -> None:
    """Make every process reload the settings; one that misses this reloads within a second."""
    rt.settings.expire()
    try:
        rt.redis.client.publish(SETTINGS_CHANNEL, "changed")
    except RedisError:
        log.warning("a settings change could not be announced; workers notice it by themselves")


def listen(rt: Runtime) -> Callable[[], None]:
    """Follow announcements in the background; return a function that stops it."""
    expire = rt.settings.expire
    channel = Channel(SETTINGS_CHANNEL, on_messages=lambda _texts: expire(), on_gap=expire)
    listener = Listener(rt.redis.client, rt.clock, [channel])
    listener.start()
    return listener.close


def find_key(name: str) -> Key[Any]:
    """Return the setting with this name.

    Raises: SettingUnknown.
    """
    try:
        return keys.ALL[name]
    except KeyError:
        hint = did_you_mean(name, keys.ALL)
        raise SettingUnknown(f"There is no setting {shortened(name)}.{hint}") from None


def change(rt: Runtime, changes: Mapping[str, object]) -> list[str]:
    """Set several settings atomically; return the names of other settings this changed.

    Raises: SettingUnknown, SettingInvalid.
    """
    texts = {name: _rendered(rt, name, value) for name, value in changes.items()}
    now = rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)
        for name, text in texts.items():
            queries.store(session, name, text, now)
        others = _enforce_joint_rules(rt, session, set(texts), now)
        for name, text in texts.items():
            _record(rt, session, Action.CONFIG_UPDATE, name, text)
    announce(rt)
    return others


def unset(rt: Runtime, name: str) -> list[str]:
    """Reset a setting to its default; idempotent. Return the names of other settings this changed.

    It also removes what another version has stored under a name that this one does not know.
    Raises: SettingUnknown for a name neither known nor stored, SettingInvalid.
    """
    now = rt.clock.now()
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)
        if name not in queries.list_texts(session):
            find_key(name)
            return []
        queries.remove(session, name)
        others = _enforce_joint_rules(rt, session, {name}, now)
        _record(rt, session, Action.ADMIN_DELETE_CONFIG, name, None)
    announce(rt)
    return others


def secret(rt: Runtime, key: Key[str]) -> str:
    """Return a sensitive setting decrypted; empty if it is not set or cannot be decrypted."""
    sealed = rt.settings.get(key)
    if not sealed:
        return ""
    try:
        return rt.secret_box.open(sealed, key.name)
    except SecretUnreadable:
        log.error(  # noqa: TRY400 - the traceback adds nothing
            "the setting %s cannot be decrypted and counts as not set; is a key missing?", key.name
        )
        return ""


def is_mail_complete(value_of: Callable[[Key[str]], str]) -> bool:
    """Return whether mail can be sent by SMTP: host and from address are set.

    `value_of` returns the value of a setting.
    """
    return bool(value_of(keys.MAIL_SMTP_HOST) and value_of(keys.MAIL_FROM_ADDRESS))


def leaves_no_login_method(rt: Runtime, session: Session, texts: Mapping[str, str]) -> bool:
    """Return whether these settings leave no way to sign in."""
    built_in = keys.PASSWORD_LOGIN_ENABLED, keys.PASSKEY_LOGIN_ENABLED
    if any(_in_force(key, texts) for key in built_in):
        return False
    return not any(check(session) for check in rt.hooks.extra_login_methods)


def joint_problems(rt: Runtime, session: Session, texts: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with settings in combination with others, by name."""
    problems = {}
    is_deliverable = is_mail_complete(lambda key: _in_force(key, texts))
    if _in_force(keys.EMAIL_CODE_LOGIN_ENABLED, texts) and not is_deliverable:
        name = keys.EMAIL_CODE_LOGIN_ENABLED.name
        problems[name] = "needs mail_smtp_host and mail_from_address"
    origins = _in_force(cors.ALLOWED_ORIGINS, texts)
    if not cors.is_consistent(origins, credentials=_in_force(cors.ALLOW_CREDENTIALS, texts)):
        problems[cors.ALLOWED_ORIGINS.name] = "* must stand alone and never with credentials"
    if leaves_no_login_method(rt, session, texts):
        problems[keys.PASSWORD_LOGIN_ENABLED.name] = "no way to sign in is left"
    return problems


def _in_force(key: Key[T], texts: Mapping[str, str]) -> T:
    return key.value_of(texts.get(key.name))


def _rendered(rt: Runtime, name: str, value: object) -> str:
    key = find_key(name)
    if key.is_sensitive and value == REDACTED:
        raise SettingInvalid(f"{name} cannot be set to the placeholder for a hidden value")
    try:
        text = key.render(value)
    except ValueError as error:
        raise SettingInvalid(f"{name} {error}") from None
    if key.is_sensitive and text:
        return rt.secret_box.seal(text, name)
    return text


def _enforce_joint_rules(
    rt: Runtime, session: Session, changed: set[str], now: datetime
) -> list[str]:
    """Enforce the rules that span several settings; return the names of repaired settings.

    It reads the rows already changed in this transaction. Raises: SettingInvalid.
    """
    problems, repaired = joint_problems(rt, session, queries.list_texts(session)), []
    code_login = keys.EMAIL_CODE_LOGIN_ENABLED.name
    if code_login in problems.keys() - changed:
        del problems[code_login]
        queries.store(session, code_login, "false", now)
        _record(rt, session, Action.CONFIG_UPDATE, code_login, "false")
        repaired.append(code_login)
    if not changed & {keys.PASSWORD_LOGIN_ENABLED.name, keys.PASSKEY_LOGIN_ENABLED.name}:
        problems.pop(keys.PASSWORD_LOGIN_ENABLED.name, None)
    for name, problem in problems.items():
        raise SettingInvalid(f"{name}: {problem}")
    return repaired


def _record(rt: Runtime, session: Session, action: Action, name: str, text: str | None) -> None:
    is_secret = name in keys.ALL and keys.ALL[name].is_sensitive
    event = Event(
        action,
        EntityType.SYSTEM_CONFIG,
        entity_name=name,
        details={"value": REDACTED if is_secret and text else text},
    )
    audit.record(rt, session, event)
