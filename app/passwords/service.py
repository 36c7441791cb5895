"""Use cases of passwords: changing one's own, and resetting a forgotten one by mail."""

from app.audit.models import Action
from app.browsers import queries as browsers
from app.contact_verification import tokens
from app.contact_verification.errors import ContactVerificationInvalid
from app.contact_verification.models import ContactToken, LinkPurpose
from app.core.access import AccountDisabled, Principal, TokenInvalid, TokenPair
from app.core.client import Client
from app.core.runtime import Runtime
from app.crypto.passwords import are_equivalent
from app.login import sign_in_methods
from app.login.errors import CredentialsFailed
from app.mail import service as mail
from app.mail.templates import Template
from app.mfa import service as mfa
from app.passwords.errors import PasswordUnchanged
from app.sessions import service as sessions
from app.users import identifiers
from app.users import queries as users_queries
from app.users import service as users
from app.users.models import Account, Status

RESETTING = (LinkPurpose.PASSWORD_RESET,)
CHANGED = "The password was changed, and every other session was signed out."


def change_password(
    rt: Runtime, principal: Principal, *, current_password: str, new_password: str, client: Client
) -> TokenPair:
    """Replace the password, end every session and open a new, unrestricted one.

    With a second factor, which is not asked for, the new one is confirmed no later than the old.
    Nothing changes if the caller's session ends, or the account changes, while the passwords are
    hashed. Wrong current passwords count like failed logins. Links mailed earlier become void.
    Raises: errors.CHANGE, RateLimited, TokenInvalid.
    """
    with rt.reading() as session:
        old_hash = users_queries.find_password_hash(session, principal.user_id)
    attempts_key = identifiers.attempts_key(principal.user_id)
    with rt.limits.attempts.counted_attempt(
        attempts_key, client.network, principal.user_id
    ) as attempt:
        is_right = rt.passwords.check(current_password, old_hash).matches
    if old_hash is None or not is_right:
        raise CredentialsFailed("The current password is not correct.")
    rt.limits.attempts.give_back(attempts_key, client.network, attempt)
    if are_equivalent(new_password, current_password):
        raise PasswordUnchanged
    account = principal.account
    users.require_acceptable(rt, new_password, account.username, account.email)
    new_hash = rt.passwords.hash(new_password)
    return _replace(rt, principal, old_hash, new_hash, client)


def request_reset(rt: Runtime, *, email: str, client: Client) -> None:
    """Mail a password reset link to the account with this address, if there is one in use.

    Also to one that waits for activation: whoever set it up, it is the mailbox's owner who gets in.
    The caller cannot tell whether there is one, nor whether it was mailed a link a moment ago.
    Raises: errors.REQUEST_RESET.
    """
    sign_in_methods.require_password_login(rt)
    address = identifiers.email(email)
    with rt.reading() as session:
        account = users_queries.find_by_identifier(session, address)
    if account is None or account.status != Status.ACTIVE:
        return
    with rt.transaction() as session:
        account = users_queries.lock_and_find(session, account.id)
        if account is None or account.status != Status.ACTIVE or account.email != address:
            return
        tokens.send(rt, session, account, LinkPurpose.PASSWORD_RESET, address)
        users.record(rt, session, Action.USER_REQUEST_PASSWORD_RESET, account, client)


def confirm_reset(rt: Runtime, *, token: str, new_password: str, client: Client) -> None:
    """Set a new password, which may equal the old one, and shut out whoever had the account.

    Every session ends and every other link becomes void; the address counts as proven by the link,
    and an account that waits for activation is activated. If nobody had proven it before, passkeys,
    external identities and second factors are removed, too: whoever added them may have created
    the account to hijack it once the address's owner uses it. Else second factors stay. So does the
    count of failed logins: clearing it would give anyone who can read the mailbox unlimited guesses
    at the second factor.
    Raises the first that applies: PasswordLoginDisabled, PasswordInvalid, PasswordGuessable,
    ContactVerificationInvalid, ContactVerificationExpired, AccountDisabled; PasswordGuessable last,
    if only the account's names make the password guessable.
    """
    sign_in_methods.require_password_login(rt)
    users.require_acceptable(rt, new_password)
    with rt.reading() as session:
        found = tokens.peek(rt, session, token, RESETTING)
        account = users_queries.find_account(session, found.user_id)
    if account is None:
        raise ContactVerificationInvalid  # it has just been deleted
    _require_unchanged(account, found)
    # Again with the names, about which only a valid link may learn anything.
    users.require_acceptable(rt, new_password, account.username, account.email)
    # Hashing is expensive: only for a valid token, and outside the transaction.
    _reset(rt, token, rt.passwords.hash(new_password), client)


def _reset(rt: Runtime, token: str, new_hash: str, client: Client) -> None:
    """Redeem the link for a new password; raises what the check before the hashing raises."""
    with rt.transaction() as session:
        found = tokens.redeem(rt, session, token, RESETTING)
        account = users.get(session, found.user_id)
        _require_unchanged(account, found)
        now = rt.clock.now()
        users_queries.set_columns(
            session,
            account.id,
            now,
            password_hash=new_hash,
            must_change_password=False,
            activated_at=account.activated_at or now,
            email_verified_at=account.email_verified_at or now,
            proven_at=account.proven_at or now,
        )
        removed = 0
        if account.proven_at is None or account.email_verified_at is None:
            removed = sum(remove(session, account.id) for remove in rt.hooks.on_unverified_reset)
        if account.proven_at is None:
            removed += sum(remove(session, account.id) for remove in rt.hooks.on_unproven_reset)
        sessions.revoke_all(rt, session, account.id)
        browsers.begin_anew(session, account.id)
        tokens.void(session, account.id)
        mail.queue(
            rt,
            session,
            Template.PASSWORD_RESET_NOTICE,
            account.email,
            language=account.language,
            username=account.username,
        )
        details = {"removed_ways_in": removed} if removed else None
        users.record(
            rt, session, Action.USER_CONFIRM_PASSWORD_RESET, account, client, details=details
        )


def _replace(
    rt: Runtime, principal: Principal, old_hash: str, new_hash: str, client: Client
) -> TokenPair:
    account, now = principal.account, rt.clock.now()
    confirmed_at = principal.confirmed_at if mfa.methods(rt, account) else None
    with rt.transaction() as session:
        is_unchanged = users_queries.lock_unchanged(session, account)
        if not is_unchanged or not sessions.is_live(rt, session, principal.session_id):
            raise TokenInvalid
        if not users_queries.change_password(session, account.id, new_hash, now, old_hash=old_hash):
            raise CredentialsFailed  # a concurrent change was faster
        is_short = sessions.is_short(session, principal.session_id)
        sessions.revoke_all(rt, session, account.id, keeps_tokens=True)
        tokens.void(session, account.id)
        pair = sessions.open_session(
            rt,
            session,
            account.id,
            client,
            is_limited=False,
            is_short=is_short,
            confirmed_at=confirmed_at,
        )
        users.notify_owner(rt, session, account, CHANGED)
        users.record(rt, session, Action.USER_CHANGE_PASSWORD, account, client)
    return pair


def _require_unchanged(account: Account, found: ContactToken) -> None:
    """Refuse a link if its account is closed, or no longer has the address it was sent to."""
    if account.status != Status.ACTIVE:
        raise AccountDisabled
    if account.email != found.address:
        raise ContactVerificationInvalid
