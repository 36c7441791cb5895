"""`flask doctor`: runs its checks, of which those on stored data are here."""

import logging
import os
from collections.abc import Callable
from typing import Any

from app.access_tokens import service as tokens
from app.access_tokens.service import OLD_DAYS, UNUSED_DAYS
from app.core.addresses import is_loopback_name
from app.core.config import ConfigError
from app.core.runtime import Runtime
from app.core.texts import Sentence
from app.external_auth.providers import remarks
from app.installation import machine_checks as machine
from app.installation import preparation, secret_keys
from app.installation.machine_checks import Finding, Level, fail, ok, warn
from app.mail import operators as mails
from app.mail.errors import MailDeliveryFailed
from app.passkeys import relying_party
from app.settings import keys, mail_keys, upkeep
from app.setup.queries import SetupState
from app.store.database import reason_of
from app.store.key_use import KeyUse
from app.user_admin import queries
from app.web import site
from app.web.cli import FAILURES, refusal_of

log = logging.getLogger(__name__)

MAX_NAMES = 5
Check = Callable[[Runtime], Finding]

IF_LOST = (
    "Only if it is lost for good, set the secrets of the mail server and of providers again, and "
    "have second factors set up again (`flask users reset-mfa`). Mails that need it wait for at "
    "most three days."
)


def values(rt: Runtime) -> Finding:
    """Check that every stored setting is valid, by itself and together with the others."""
    problems = upkeep.problems(rt)
    if not problems:
        return ok("All valid.")
    (key, problem), more = problems[0], len(problems) - 1
    return fail(
        "{key}: {problem} ({more} more)." if more else "{key}: {problem}.",
        "See `flask config validate`.",
        key=key,
        problem=problem,
        more=more,
    )


def stored_secrets(rt: Runtime) -> Finding:
    """Check that every key the stored secrets need is here, by decrypting a sample of each."""
    use = secret_keys.key_use(rt)
    place = rt.keyring.path if rt.keyring.is_file else "GATEHOUSE_SECRET_KEYS"
    lost = sorted(use.unusable_key_ids)
    if not lost:
        return ok("Secrets: {count}; every key they need is present.", count=use.secrets.total())
    told = [_lost_key(rt, use, key_id) for key_id in lost]
    if any(use.secrets[key_id] for key_id in lost):
        told.append(Sentence("Put the right one into {place}.", place=place))
        return fail(told, IF_LOST)
    put_back = "Unless it was removed on purpose, put it back into {place}."
    return warn([*told, Sentence(put_back, place=place)])


def _lost_key(rt: Runtime, use: KeyUse, key_id: str) -> Sentence:
    return Sentence(
        "Key {key} is present with a wrong value; secrets that need it: {secrets}, recovery "
        "codes: {codes}."
        if rt.secret_box.knows(key_id)
        else "Key {key} is missing; secrets that need it: {secrets}, recovery codes: {codes}.",
        key=key_id or "(unknown)",
        secrets=use.secrets[key_id],
        codes=use.hashes[key_id],
    )


def site_address(rt: Runtime) -> Finding:
    """Check that the site's address is set: links and passkeys depend on it."""
    origins = rt.settings.get(site.PUBLIC_SITE_URL)
    if not origins:
        return warn(
            "public_site_url is empty.",
            """Run `flask config set public_site_url '["https://files.example"]'`.""",
        )
    if rt.settings.get(keys.PASSKEY_LOGIN_ENABLED) and not relying_party.is_usable(rt):
        return warn(
            "Browsers offer no passkeys at {origin}. Begin public_site_url with an https "
            "address with a host name, or switch auth_passkey_login_enabled off.",
            "For that, run `flask config set auth_passkey_login_enabled false`.",
            origin=origins[0],
        )
    return ok("{origins}.", origins=", ".join(origins))


def cookies(rt: Runtime) -> Finding:
    """Check that cookies are sent over plain http only if the site itself uses it."""
    origins = rt.settings.get(site.PUBLIC_SITE_URL)
    is_https = any(origin.startswith("https://") for origin in origins)
    is_secure = rt.settings.get(site.COOKIE_SECURE)
    if is_https and not is_secure:
        return warn(
            "The site uses https, but its cookies are also sent over http: "
            "auth_cookie_secure is off.",
            "Run `flask config set auth_cookie_secure true`.",
        )
    if is_secure and origins and not is_https:
        return warn(
            "Cookies are sent over https only, but the site does not use https, so browsers drop "
            "them. Serve the site over https, or switch auth_cookie_secure off.",
            "For that, run `flask config set auth_cookie_secure false`.",
        )
    return ok("Sent over https only." if is_secure else "Also sent over http.")


def mail(rt: Runtime) -> Finding:
    """Check that mails are sent, and that every account has an address that cannot be misread."""
    finding = _mail_server(rt)
    with rt.reading() as session:
        names = queries.list_misread(session)
    if not names or finding.level is not Level.OK:
        return finding
    return warn(
        "Accounts with an address with =? in it, which mail programs may read as another: {count} "
        "({names}). Ask for another address.",
        "Set it with `flask users set-email`.",
        count=len(names),
        names=", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else ""),
    )


def _mail_server(rt: Runtime) -> Finding:
    """Check that the SMTP server, if configured, accepts mail; warn of half a configuration."""
    host = rt.settings.get(mail_keys.MAIL_SMTP_HOST)
    sender = rt.settings.get(mail_keys.MAIL_FROM_ADDRESS)
    if host and sender:
        port = rt.settings.get(mail_keys.MAIL_SMTP_PORT)
        try:
            mails.reach_server(rt)
        except MailDeliveryFailed as error:
            return warn(
                "Mails wait: the SMTP server {host}, port {port}, cannot be used: {reason} Correct "
                "the mail_smtp_* settings, or start the server.",
                host=host,
                port=port,
                reason=error.public_message,
            )
        if not (rt.settings.get(mail_keys.MAIL_SECURITY) or is_loopback_name(host.lower())):
            return warn(
                "Mails, with their links and codes, go to {host}, port {port}, unencrypted. "
                "Switch mail_security on, or use a server on this machine.",
                "For that, run `flask config set mail_security true`.",
                host=host,
                port=port,
            )
        return ok(
            "SMTP server {host}, port {port}, sender {sender}.",
            host=host,
            port=port,
            sender=sender,
        )
    if host or sender:
        missing = mail_keys.MAIL_FROM_ADDRESS.name if host else mail_keys.MAIL_SMTP_HOST.name
        return warn(
            "{missing} is missing, so SMTP is not used. Set it, or unset the other.",
            missing=missing,
        )
    folder = rt.config.mail_dir
    # The folder is created with the first mail, so check its closest existing ancestor.
    there = next(path for path in (folder, *folder.parents) if os.access(path, os.F_OK))
    if not os.access(there, os.W_OK | os.X_OK):
        return warn(
            "Mails wait: no SMTP server is set, and {folder} cannot be written to. "
            "Set mail_smtp_host and mail_from_address, or correct GATEHOUSE_MAIL_DIR.",
            folder=folder,
        )
    return ok(
        "No SMTP server is set: mails are files in {folder}, their links are logged.",
        folder=folder,
    )


def external_sign_in(rt: Runtime) -> Finding:
    """Check that the enabled providers are usable, as far as local data can show."""
    names = ", ".join(remarks.enabled_names(rt))
    if unreadable := remarks.unreadable_keys(rt):
        return fail(
            "The client secret of {names} cannot be decrypted with any key. "
            "Is a key missing? Put it back; only if it is lost, set the secret again.",
            "`flask external-auth update KEY --client-secret -` does that.",
            names=", ".join(unreadable),
        )
    if not names:
        return ok("No provider is enabled.")
    problems = remarks.broken_links(rt)
    if not rt.settings.get(site.PUBLIC_SITE_URL):
        unusable = "{names} cannot be used while public_site_url is empty."
        problems.append(Sentence(unusable, names=names))
    if rt.config.allow_loopback_http:
        is_on = "GATEHOUSE_ALLOW_LOOPBACK_HTTP is on, which is for development and tests."
        problems.append(Sentence(is_on))
    problems += remarks.open_to_all(rt)
    if problems:
        return warn(problems)
    return ok("{names}.", "Try them with `flask external-auth test KEY`.", names=names)


def access_tokens(rt: Runtime) -> Finding:
    """Check that no token that changes the installation is very old, or was forgotten."""
    with rt.reading() as session:
        found = tokens.list_risky(rt, session)
    if not found:
        return ok("None for administration is older than {days} days or unused.", days=OLD_DAYS)
    names = [f"{username}: {name}" for username, name in found]
    return warn(
        "Access tokens with the scope admin that are older than {old} days, or were not used for "
        "{unused}: {count} ({names}). Remove those that nobody needs, and make the others anew.",
        "See `flask tokens list USER`; `flask tokens revoke ID` removes one.",
        old=OLD_DAYS,
        unused=UNUSED_DAYS,
        count=len(names),
        names=", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else ""),
    )


def storage_route(rt: Runtime) -> Finding:
    """Check that the installation is ready for ordinary accounts."""
    state = preparation.setup_state(rt)
    if state is SetupState.NEEDS_ADMIN:
        return warn(
            "needs_admin: create the first administrator in the browser.",
            "Or run `flask users create --username NAME --email ADDRESS --role admin --generate`.",
        )
    if state is SetupState.NEEDS_STORAGE:
        return warn("needs_storage: finish the set-up.", "Run `flask storage bootstrap`.")
    return ok("Ready.")


MACHINE: dict[str, Check] = {
    "configuration": machine.configuration,
    "instance folder": machine.instance_folder,
    "keys": machine.secret_keys,
    "avatars": machine.avatars,
    "password hash": machine.password_hash,
    "leaked passwords": machine.leaked_passwords,
    "redis": machine.redis,
    "database": machine.database,
}
# Run in stages: one finding about an unreachable or an empty database is enough.
DATABASE: dict[str, Check] = {
    "clock": machine.clock,
    "migrations": machine.migrations,
}
ROWS: dict[str, Check] = {
    "stored secrets": stored_secrets,
    "settings": values,
    "site address": site_address,
    "cookies": cookies,
    "mail": mail,
    "external sign-in": external_sign_in,
    "access tokens": access_tokens,
    "storage route": storage_route,
}


def examine(rt: Runtime) -> dict[str, Finding]:
    """Run every check whose prerequisites hold; a check that cannot run counts as failed."""
    findings: dict[str, Finding] = {}
    for checks, prerequisite in ((MACHINE, None), (DATABASE, "database"), (ROWS, "migrations")):
        if prerequisite and findings[prerequisite].level is Level.FAIL:
            break
        findings |= {name: _finding(rt, check) for name, check in checks.items()}
    return findings


def listed(findings: dict[str, Finding]) -> list[dict[str, Any]]:
    """Return findings as browsers show them, in the order of the checks."""
    return [
        {
            "check": name,
            "level": finding.level,
            "message": finding.message,
            "sentences": finding.sentences,
        }
        for name, finding in findings.items()
    ]


def _finding(rt: Runtime, check: Check) -> Finding:
    try:
        return check(rt)
    except ConfigError:  # the "keys" check reports the details
        return fail("This cannot be checked without the keys.")
    except FAILURES as error:
        refusal = refusal_of(rt, error)
        return fail(refusal.public_message, refusal.remedy)
    except Exception as error:
        # Such as a nonsensical answer: the other checks still tell something.
        log.debug("the check failed", exc_info=True)
        return fail("This could not be checked ({reason}).", reason=reason_of(error))
