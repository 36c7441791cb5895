"""Checks of `flask doctor` on stored data: settings, secrets, providers, storage route."""

import os

from app.administration import service
from app.administration.findings import Finding, fail, ok, warn
from app.core.addresses import is_loopback_name
from app.core.database.key_use import KeyUse
from app.core.runtime import Runtime
from app.core.texts import pluralized
from app.external_auth.providers import service as external_auth
from app.mail import service as mails
from app.mail.errors import MailDeliveryFailed
from app.passkeys import relying_party
from app.settings import keys, upkeep
from app.setup.queries import SetupState
from app.web import site

IF_LOST = (
    "only if it is lost for good, set the secrets of the mail server and of providers again, and "
    "have second factors set up anew (`flask users reset-mfa`). Mails among them wait for it, "
    "three days at the most."
)


def values(rt: Runtime) -> Finding:
    """Check that every stored setting is valid, by itself and together with the others."""
    problems = upkeep.problems(rt)
    if not problems:
        return ok("All valid.")
    (key, problem), more = problems[0], len(problems) - 1
    others = f" ({more} more)" if more else ""
    return fail(f"{key}: {problem}{others}. See `flask config validate`.")


def stored_secrets(rt: Runtime) -> Finding:
    """Check that every key the stored secrets need is here, by decrypting a sample of each."""
    use = service.key_use(rt)
    place = rt.keyring.path if rt.keyring.is_file else "GATEHOUSE_SECRET_KEYS"
    told = [_lost_key(rt, use, key_id, place) for key_id in sorted(use.unusable_key_ids)]
    if any(use.secrets[key_id] for key_id in use.unusable_key_ids):
        return fail(" ".join(told))
    if told:
        return warn(" ".join(told))
    secrets = pluralized(use.secrets.total(), "secret", "secrets")
    return ok(f"{secrets}; every key that they need is here.")


def _lost_key(rt: Runtime, use: KeyUse, key_id: str, place: object) -> str:
    secrets, codes = use.secrets[key_id], use.hashes[key_id]
    counts = ((secrets, "secret"), (codes, "recovery code"))
    stored = " and ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts if n)
    are = "is" if secrets + codes == 1 else "are"
    if rt.secret_box.knows(key_id):
        return (
            f"Key {key_id}, under which {stored} {are} stored, does not open the one that was "
            f"tried: it is another key. Put the right one into {place}; {IF_LOST}"
        )
    lost = f"Key {key_id or '(unknown)'}, under which {stored} {are} stored, is missing."
    if not secrets:
        return f"{lost} Unless it was taken out on purpose, put it back into {place}."
    return f"{lost} Put it back into {place}; {IF_LOST}"


def site_address(rt: Runtime) -> Finding:
    """Check that the site's address is set: links and passkeys depend on it."""
    origins = rt.settings.get(site.PUBLIC_SITE_URL)
    if not origins:
        return warn(
            "public_site_url is empty. "
            """Run `flask config set public_site_url '["https://files.example"]'`."""
        )
    if rt.settings.get(keys.PASSKEY_LOGIN_ENABLED) and not relying_party.is_usable(rt):
        return warn(
            f"Browsers offer no passkeys at {origins[0]}. Let public_site_url begin with an https "
            "address with a host name, or run `flask config set auth_passkey_login_enabled false`."
        )
    return ok(f"{', '.join(origins)}.")


def cookies(rt: Runtime) -> Finding:
    """Check that cookies are sent over plain http only if the site itself uses it."""
    origins = rt.settings.get(site.PUBLIC_SITE_URL)
    is_secure = rt.settings.get(site.COOKIE_SECURE)
    if not is_secure and any(origin.startswith("https://") for origin in origins):
        return warn(
            "The site uses https and its cookies travel over http, too. "
            "Run `flask config set auth_cookie_secure true`."
        )
    if is_secure and origins and not any(origin.startswith("https://") for origin in origins):
        return warn(
            "Cookies are for https only and the site is not: browsers drop them. "
            "Serve the site over https, or run `flask config set auth_cookie_secure false`."
        )
    return ok("Sent over https only." if is_secure else "Sent over http, too.")


def mail(rt: Runtime) -> Finding:
    """Check that the SMTP server, if configured, accepts mail; warn of half a configuration."""
    host = rt.settings.get(keys.MAIL_SMTP_HOST)
    sender = rt.settings.get(keys.MAIL_FROM_ADDRESS)
    if host and sender:
        port = rt.settings.get(keys.MAIL_SMTP_PORT)
        try:
            mails.reach_server(rt)
        except MailDeliveryFailed as error:
            return warn(
                f"Mails wait: the SMTP server {host}, port {port}, cannot be used: "
                f"{error.public_message} Correct the mail_smtp_* settings, or start it."
            )
        if not (rt.settings.get(keys.MAIL_SECURITY) or is_loopback_name(host.lower())):
            return warn(
                f"Mails go to {host}, port {port}, unencrypted, with the links and codes in them. "
                "Run `flask config set mail_security true`, or use a server on this machine."
            )
        return ok(f"SMTP server {host}, port {port}, sender {sender}.")
    if host or sender:
        missing = keys.MAIL_FROM_ADDRESS.name if host else keys.MAIL_SMTP_HOST.name
        return warn(f"{missing} is missing, so SMTP is not used. Set it, or unset the other.")
    folder = rt.config.mail_dir
    # The folder is created with the first mail, so check its closest existing ancestor.
    there = next(path for path in (folder, *folder.parents) if os.access(path, os.F_OK))
    if not os.access(there, os.W_OK | os.X_OK):
        return warn(
            f"Mails wait: no SMTP server is set, and {folder} cannot be written. "
            "Set mail_smtp_host and mail_from_address, or correct GATEHOUSE_MAIL_DIR."
        )
    return ok(f"No SMTP server is set: mails become files in {folder}, their links are logged.")


def external_sign_in(rt: Runtime) -> Finding:
    """Check that the enabled providers are usable, as far as local data can show."""
    names = external_auth.enabled_names(rt)
    if unreadable := external_auth.unreadable_keys(rt):
        return fail(
            f"The client secret of {', '.join(unreadable)} cannot be decrypted with any key. "
            "Is a key missing? Put it back; only if it is lost, set it again with "
            "`flask external-auth update KEY --client-secret -`."
        )
    if not names:
        return ok("No provider is enabled.")
    problems = external_auth.broken_links(rt)
    if not rt.settings.get(site.PUBLIC_SITE_URL):
        problems.append(f"{', '.join(names)} cannot be used while public_site_url is empty.")
    if rt.config.allow_loopback_http:
        problems.append("GATEHOUSE_ALLOW_LOOPBACK_HTTP is on, which is for development and tests.")
    if problems:
        return warn(" ".join(problems))
    return ok(f"{', '.join(names)}. Try them with `flask external-auth test KEY`.")


def storage_route(rt: Runtime) -> Finding:
    """Check that the installation is ready for ordinary accounts."""
    state = service.setup_state(rt)
    if state is SetupState.NEEDS_ADMIN:
        return warn(
            "needs_admin: make the first administrator in the browser, or run "
            "`flask users create --username NAME --email ADDRESS --role admin --generate`."
        )
    if state is SetupState.NEEDS_STORAGE:
        return warn("needs_storage: run `flask storage bootstrap`.")
    return ok("ready")
