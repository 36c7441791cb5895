"""Reading runtime settings, and what they must satisfy together."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.core.setting_kinds import Key
from app.core.texts import did_you_mean, shortened
from app.crypto.secret_box import SecretUnreadable
from app.settings import keys, mail_keys
from app.settings.errors import SettingUnknown
from app.store.pubsub import Channel, Listener
from app.store.redis import SETTINGS_CHANNEL
from app.web import cors

T = TypeVar("T")

# Those that are no provider's.
LOGIN_METHODS = keys.PASSWORD_LOGIN_ENABLED, keys.PASSKEY_LOGIN_ENABLED
# What is switched off along with mail by SMTP.
MAILED_CODES = keys.EMAIL_CODE_LOGIN_ENABLED, keys.EMAIL_CODE_SIGN_IN_ENABLED

log = logging.getLogger(__name__)


def announce(rt: Runtime) -> None:
    """Make every process reload the settings; one that misses this reloads within a second."""
    rt.settings.expire()
    try:
        rt.redis.client.publish(SETTINGS_CHANNEL, "changed")
    except RedisError:
        log.warning("a settings change could not be announced; workers will notice it anyway")


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
    return bool(value_of(mail_keys.MAIL_SMTP_HOST) and value_of(mail_keys.MAIL_FROM_ADDRESS))


def is_email_code_sign_in_open(rt: Runtime) -> bool:
    """Return whether a mailed code signs in: it is switched on, and mail is sent by SMTP."""
    return rt.settings.get(keys.EMAIL_CODE_SIGN_IN_ENABLED) and is_mail_complete(rt.settings.get)


def leaves_no_login_method(rt: Runtime, session: Session, texts: Mapping[str, str]) -> bool:
    """Return whether these settings leave no way to sign in."""
    if any(_in_force(key, texts) for key in LOGIN_METHODS):
        return False
    return not any(check(session) for check in rt.hooks.extra_login_methods)


def joint_problems(rt: Runtime, session: Session, texts: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with settings in combination with others, by name."""
    problems = {}
    is_deliverable = is_mail_complete(lambda key: _in_force(key, texts))
    for key in MAILED_CODES:
        if _in_force(key, texts) and not is_deliverable:
            problems[key.name] = "needs mail_smtp_host and mail_from_address"
    origins = _in_force(cors.ALLOWED_ORIGINS, texts)
    if not cors.is_consistent(origins, credentials=_in_force(cors.ALLOW_CREDENTIALS, texts)):
        problems[cors.ALLOWED_ORIGINS.name] = "* must be the only entry, without credentials"
    if leaves_no_login_method(rt, session, texts):
        problems[keys.PASSWORD_LOGIN_ENABLED.name] = "no way to sign in would be left"
    return problems


def _in_force(key: Key[T], texts: Mapping[str, str]) -> T:
    return key.value_of(texts.get(key.name))
