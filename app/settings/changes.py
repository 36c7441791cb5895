"""Changing runtime settings: all that is asked for, or nothing."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from app.audit import service as audit
from app.audit.models import Action, EntityType
from app.core.access import Operator
from app.core.clock import SKEW
from app.core.runtime import Runtime, SignInSwitch
from app.core.setting_kinds import Key
from app.crypto.secret_box import REDACTED, SecretUnreadable
from app.settings import keys, queries
from app.settings.errors import SettingInvalid, SettingsChanged, SettingUndeletable
from app.settings.service import LOGIN_METHODS, announce, find_key, joint_problems
from app.store import locks
from app.store.live_settings import LiveSettings

# Called in the transaction of a change with the runtime as it will be after it; may raise.
Approve = Callable[[Session, Runtime], None]

# What lets people in; every other administrator hears of a change.
SIGN_IN_SWITCHES = {name: key.notice for name, key in keys.ALL.items() if key.notice}


@dataclass(frozen=True)
class Changed:
    """The names of the settings that changed: those asked for, and others along with them."""

    names: list[str]
    others: list[str]


@dataclass(frozen=True)
class SettingVerdict:
    """What a change would lead to: complaints by name, and what else it would change."""

    problems: dict[str, str]
    others: list[str]


def change(
    rt: Runtime,
    by: Operator,
    values: Mapping[str, object],
    unset: Collection[str] = (),
    *,
    expected_updated_at: datetime | None = None,
    approve: Approve | None = None,
) -> Changed:
    """Set settings and return others to their defaults; what has its value already stays as it is.

    `expected_updated_at` is the state the change is meant for; None accepts any.
    Raises: SettingUnknown, SettingInvalid; SettingsChanged, if one of them was changed after that;
    and what `approve` raises.
    """
    texts = {name: _text(name, value) for name, value in values.items()}
    wanted = texts | {find_key(name).name: None for name in unset}
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)
        if expected_updated_at is not None:
            _require_unchanged(rt, session, wanted, expected_updated_at)
        before = queries.list_texts(session)
        changes = {
            name: text for name, text in wanted.items() if not _is_same(rt, name, before, text)
        }
        repairs = _repairs(rt, session, _merged(before, changes), changes)
        if approve and changes:
            approve(session, _runtime_with(rt, _merged(before, {**changes, **repairs})))
        for name, text in {**changes, **repairs}.items():
            _store(rt, session, by, name, before.get(name), text)
        by.recheck(session)
        for react in rt.hooks.on_setting_change:
            react(_runtime_with(rt, _merged(before, {**changes, **repairs})), session, changes)
        _tell_of_switches(rt, session, by, before, {**changes, **repairs})
    if changes:
        announce(rt)
    return Changed(list(changes), list(repairs))


def remove_unknown(rt: Runtime, by: Operator, name: str) -> None:
    """Remove what another version has stored under a name that this one does not know.

    Raises: SettingUndeletable for a setting of this version; SettingUnknown if nothing is stored.
    """
    if name in keys.ALL:
        raise SettingUndeletable
    with rt.transaction() as session:
        locks.hold(session, locks.SETTINGS)
        if name not in queries.list_texts(session):
            find_key(name)
        queries.remove(session, name)
        _record(rt, session, by, Action.ADMIN_DELETE_CONFIG, name, {"value": None})
    announce(rt)


def check(rt: Runtime, values: Mapping[str, object], unset: Collection[str]) -> SettingVerdict:
    """Return what `change` would do and complain about, without doing it."""
    problems, wanted = {}, {}
    for name, value in {**dict.fromkeys(unset), **values}.items():
        key = keys.ALL.get(name)
        if key is None:
            problems[name] = "is not a setting of this version"
            continue
        try:
            wanted[name] = None if name in unset else key.render(value)
        except ValueError as error:
            problems[name] = str(error)
    with rt.reading() as session:
        before = queries.list_texts(session)
        changes = {name: text for name, text in wanted.items() if before.get(name) != text}
        joint = _joint(rt, session, _merged(before, changes), changes)
    code_login = keys.EMAIL_CODE_LOGIN_ENABLED.name
    others = [name for name in joint if name == code_login and name not in changes]
    return SettingVerdict(problems | {n: p for n, p in joint.items() if n not in others}, others)


def _require_unchanged(
    rt: Runtime, session: Session, names: Collection[str], since: datetime
) -> None:
    if any(since < at <= rt.clock.now() + SKEW for at in queries.list_times(session, names)):
        raise SettingsChanged


def _text(name: str, value: object) -> str:
    """Return the text of a value; a secret's is still plain.

    Raises: SettingUnknown, SettingInvalid.
    """
    key = find_key(name)
    if key.is_sensitive and value == REDACTED:
        raise SettingInvalid(f"{name} cannot be set to the placeholder for a hidden value")
    try:
        return key.render(value)
    except ValueError as error:
        raise SettingInvalid(f"{name} {error}") from None


def _is_same(rt: Runtime, name: str, before: Mapping[str, str], text: str | None) -> bool:
    stored = before.get(name)
    if not (keys.ALL[name].is_sensitive and stored and text):
        return stored == text
    try:
        return rt.secret_box.open(stored, name) == text
    except SecretUnreadable:
        return False


def _merged(texts: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**texts, **changes}
    return {name: text for name, text in merged.items() if text is not None}


def _runtime_with(rt: Runtime, texts: Mapping[str, str]) -> Runtime:
    return replace(rt, settings=LiveSettings(lambda: texts, rt.clock))


def _joint(
    rt: Runtime, session: Session, texts: Mapping[str, str], changed: Iterable[str]
) -> dict[str, str]:
    """Return what is wrong with the settings together that a change of some has to do with."""
    problems = joint_problems(rt, session, texts)
    if not {key.name for key in LOGIN_METHODS} & set(changed):
        problems.pop(keys.PASSWORD_LOGIN_ENABLED.name, None)
    return problems


def _repairs(
    rt: Runtime, session: Session, texts: Mapping[str, str], changed: Collection[str]
) -> dict[str, str]:
    """Return what must change along with a change.

    Raises: SettingInvalid.
    """
    problems, code_login = _joint(rt, session, texts, changed), keys.EMAIL_CODE_LOGIN_ENABLED.name
    repairs = {}
    if code_login in problems and code_login not in changed:
        del problems[code_login]
        repairs[code_login] = "false"
    for name, problem in problems.items():
        raise SettingInvalid(f"{name}: {problem}")
    return repairs


def _store(
    rt: Runtime, session: Session, by: Operator, name: str, previous: str | None, text: str | None
) -> None:
    key = keys.ALL[name]
    sealed = rt.secret_box.seal(text, name) if key.is_sensitive and text else text
    queries.store(session, name, sealed, rt.clock.now(), by.user_id)
    details = {"value": _shown(key, text), "previous_value": _shown(key, previous)}
    _record(rt, session, by, Action.CONFIG_UPDATE, name, details)


def _shown(key: Key[Any], text: str | None) -> str | None:
    return REDACTED if key.is_sensitive and text else text


def _record(
    rt: Runtime, session: Session, by: Operator, action: Action, name: str, details: dict[str, Any]
) -> None:
    about = {"entity_name": name, "details": details}
    audit.record_by(rt, session, by, action, EntityType.SYSTEM_CONFIG, **about)


def _tell_of_switches(
    rt: Runtime,
    session: Session,
    by: Operator,
    before: Mapping[str, str],
    changes: Mapping[str, str | None],
) -> None:
    for name, what in SIGN_IN_SWITCHES.items():
        key = keys.ALL[name]
        is_on = key.value_of(changes.get(name))
        if name in changes and is_on != key.value_of(before.get(name)):
            switch = SignInSwitch(name, what, f"switched {'on' if is_on else 'off'}")
            for tell in rt.hooks.on_sign_in_switch:
                tell(rt, session, by, switch)
