"""Use cases of confirming that it is still the owner who uses a session.

Invariants: a confirmation counts for the session that made it and for no other. It is as strong as
the account's own sign-in: a second factor is asked for beside the password. Wrong passwords and
codes count together with those of logins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from fido2.webauthn import AuthenticationResponse, UserVerificationRequirement
from sqlalchemy.orm import Session

from app.audit.models import Action
from app.confirmation.errors import MethodNotOffered
from app.core.access import Principal
from app.core.client import Client
from app.core.runtime import Runtime
from app.login.errors import CredentialsFailed
from app.mail import service as mail
from app.mail.templates import Template
from app.mfa import email_codes, management
from app.mfa import service as mfa
from app.mfa.email_codes import NewCode
from app.mfa.errors import MfaCodeInvalid
from app.mfa.models import MfaMethod
from app.passkeys import ceremony, relying_party
from app.passkeys import queries as passkeys
from app.passkeys.errors import PasskeyRefused, PasskeyUnknown
from app.passkeys.relying_party import CeremonyPurpose, StartedCeremony
from app.sessions import service as sessions
from app.settings import keys
from app.store.flow_store import Flow, FlowState
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account
from app.web import guards


class Method(StrEnum):
    """How an account can confirm, the strongest first."""

    PASSKEY = "passkey"
    PASSWORD = "password"
    EMAIL_CODE = "email_code"
    EXTERNAL = "external"


@dataclass(frozen=True)
class Confirmation:
    """Whether the session is confirmed where that is always asked for, and how to confirm it.

    `expires_in` counts seconds. `needs_code`: beside the password, a code is asked for: of the
    authenticator app, a recovery code, or without such an app a mailed one.
    """

    is_fresh: bool
    expires_in: int
    required_for_changes: bool
    methods: tuple[Method, ...]
    needs_code: bool


def show(rt: Runtime, principal: Principal) -> Confirmation:
    """Return whether the caller has to confirm, and how."""
    left = guards.seconds_confirmed(rt, principal, _window(rt))
    with rt.reading() as session:
        methods = _methods(rt, session, principal.account)
    return Confirmation(
        is_fresh=left > 0,
        expires_in=max(0, int(left)),
        required_for_changes=guards.confirmation_window(rt, "if_set") is not None,
        methods=methods,
        needs_code=bool(mfa.methods(rt, principal.account)),
    )


def by_password(
    rt: Runtime, principal: Principal, *, password: str, code: str | None, client: Client
) -> int:
    """Confirm by the password, and a code if there is a second factor; return the seconds it lasts.

    Raises: errors.CONFIRM, RateLimited; TokenInvalid if the session has just ended.
    """
    _require_offered(rt, principal, Method.PASSWORD)
    with rt.reading() as session:
        stored = users_queries.find_password_hash(session, principal.user_id)
    key = identifiers.attempts_key(principal.user_id)
    attempts = rt.limits.attempts
    with attempts.counted_attempt(key, client.network, principal.user_id) as attempt:
        if not rt.passwords.check(password, stored).matches:
            raise CredentialsFailed("The password is not correct.")
    attempts.give_back(key, client.network, attempt)
    if mfa.find_totp(rt, principal.user_id) is None:
        if mfa.methods(rt, principal.account):
            _use_mailed_code(rt, principal, code or "", client)
        return _confirm(rt, principal, Method.PASSWORD, client)
    with management.proven(rt, principal, code, client) as (session, account):
        note(rt, session, principal, account, Method.PASSWORD, client)
    return _lasts(rt)


def send_code(rt: Runtime, principal: Principal) -> NewCode:
    """Mail a code to confirm with, by itself or beside the password.

    Raises: errors.SEND_CODE; RateLimited during the cooldown.
    """
    account = principal.account
    is_beside_password = mfa.methods(rt, account) == (MfaMethod.EMAIL_CODE,)
    needing = {Method.EMAIL_CODE, Method.PASSWORD} if is_beside_password else {Method.EMAIL_CODE}
    _require_offered(rt, principal, *needing)
    return email_codes.send(rt, account, _flow(rt, principal), Template.CONFIRMATION_CODE)


def by_email_code(rt: Runtime, principal: Principal, *, code: str, client: Client) -> int:
    """Confirm by a mailed code; return the seconds it lasts.

    Raises: errors.CONFIRM, RateLimited; TokenInvalid if the session has just ended.
    """
    _require_offered(rt, principal, Method.EMAIL_CODE)
    _use_mailed_code(rt, principal, code, client)
    return _confirm(rt, principal, Method.EMAIL_CODE, client)


def _use_mailed_code(rt: Runtime, principal: Principal, code: str, client: Client) -> None:
    account, flow = principal.account, _flow(rt, principal)
    stored = email_codes.find_hash(rt, account, flow)
    key = identifiers.attempts_key(account.id)
    with rt.limits.attempts.counted_attempt(key, client.network, account.id) as attempt:
        digits = email_codes.normalised(code)
        if digits is None:
            raise MfaCodeInvalid
        email_codes.check(rt, account, flow, stored, digits)
    rt.limits.attempts.give_back(key, client.network, attempt)
    if not email_codes.delete(rt, account, "code_hash", stored):
        raise MfaCodeInvalid  # another request has just used it


def start_passkey(rt: Runtime, principal: Principal) -> StartedCeremony:
    """Begin to confirm with one of the account's own passkeys.

    Raises: errors.START_PASSKEY.
    """
    _require_offered(rt, principal, Method.PASSKEY)
    site = relying_party.current(rt)
    with rt.reading() as session:
        own = passkeys.list_credentials(session, principal.user_id)
    options, state = site.authenticate_begin(
        [ceremony.descriptor(credential_id) for _, credential_id in own],
        UserVerificationRequirement.REQUIRED,
        extensions={"uvm": True},
    )
    waiting = {"challenge": state["challenge"], "session_id": principal.session_id}
    return relying_party.begin(rt, CeremonyPurpose.CONFIRMATION, waiting, options)


def by_passkey(
    rt: Runtime,
    principal: Principal,
    *,
    flow_id: str,
    credential: Mapping[str, Any],
    client: Client,
) -> int:
    """Confirm with what a passkey of the account signed; return the seconds it lasts.

    The flow is consumed even if that fails. Raises: errors.FINISH_PASSKEY; AccountDisabled,
    TokenInvalid if the session has just ended.
    """
    site = relying_party.current(rt)
    flow = relying_party.take(rt, CeremonyPurpose.CONFIRMATION, flow_id)
    proof = ceremony.read(AuthenticationResponse, credential)
    with rt.reading() as session:
        found = passkeys.find_with_account(session, proof.id)
    if found is None:
        raise PasskeyUnknown
    if found[2].id != principal.user_id:
        raise PasskeyRefused
    if flow["session_id"] != principal.session_id:
        raise PasskeyRefused
    passkey, now = found[0], rt.clock.now()
    seen = ceremony.verify_authentication(site, flow["challenge"], passkey, proof)
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        if not passkeys.use(session, passkey, seen.counter, seen.is_backed_up(), now):
            raise PasskeyRefused
        note(rt, session, principal, account, Method.PASSKEY, client)
    return _lasts(rt)


def _confirm(rt: Runtime, principal: Principal, method: Method, client: Client) -> int:
    with rt.transaction() as session:
        account = sessions.lock_account(rt, session, principal)
        note(rt, session, principal, account, method, client)
    return _lasts(rt)


def note(
    rt: Runtime,
    session: Session,
    principal: Principal,
    account: Account,
    method: Method,
    client: Client,
) -> None:
    """Confirm a session in the caller's transaction, by whose account it is, and record it.

    Raises: TokenInvalid, if the session has ended.
    """
    sessions.confirm(rt, session, principal)
    users.record(
        rt, session, Action.USER_CONFIRM_IDENTITY, account, client, details={"method": method}
    )


def _methods(rt: Runtime, session: Session, account: Account) -> tuple[Method, ...]:
    found = []
    if (
        rt.settings.get(keys.PASSKEY_LOGIN_ENABLED)
        and relying_party.is_usable(rt)
        and passkeys.has_passkey(session, account.id)
    ):
        found.append(Method.PASSKEY)
    has_password = users_queries.find_password_hash(session, account.id) is not None
    if has_password and rt.settings.get(keys.PASSWORD_LOGIN_ENABLED):
        found.append(Method.PASSWORD)
    # With an authenticator app, the others alone would be weaker than the sign-in was.
    if found or mfa.find_totp(rt, account.id) is not None:
        return tuple(found)
    if account.email_verified and mail.is_smtp_configured(rt):
        return (Method.EMAIL_CODE,)
    can_confirm = [method(rt) for method in rt.hooks.external_confirmations]
    return (Method.EXTERNAL,) if any(can(session, account.id) for can in can_confirm) else ()


def _require_offered(rt: Runtime, principal: Principal, *any_of: Method) -> None:
    with rt.reading() as session:
        offered = _methods(rt, session, principal.account)
    if not set(any_of) & set(offered):
        raise MethodNotOffered


def _flow(rt: Runtime, principal: Principal) -> Flow:
    """Return what binds a mailed code to this session."""
    ends_at = rt.clock.now() + timedelta(seconds=rt.settings.get(keys.MFA_FLOW_TTL_SECONDS))
    return Flow(f"confirmation:{principal.session_id}", {}, FlowState.OPEN, 0, ends_at)


def _window(rt: Runtime) -> timedelta:
    return guards.confirmation_window(rt, "always") or guards.CONFIRMED_WITHIN


def _lasts(rt: Runtime) -> int:
    return int(_window(rt).total_seconds())
