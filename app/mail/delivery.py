"""Delivers one mail: to an SMTP server, or into a folder of files if none is configured."""

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from prometheus_client import Counter

from app.audit.models import Action, EntityType, Event
from app.core.email_address import Mailbox, helo_name
from app.core.runtime import Runtime
from app.core.texts import one_line
from app.crypto.secret_box import SecretBox
from app.mail.mailer import Letter, SmtpConnection, SmtpServer
from app.mail.models import MailStatus, OutboxMail
from app.mail.rendering import Rendered, render
from app.mail.smtp_failures import Undeliverable
from app.mail.templates import DESCRIPTIONS, Template
from app.mail.words import ENGLISH, WORDS
from app.settings import frontend_keys, mail_keys
from app.settings import service as settings
from app.web import site

log = logging.getLogger(__name__)

UNCONFIGURED_SENDER = "no-reply@localhost"
ID_LENGTH = 36

MAILS = Counter("mails_total", "Mails that this instance sent, or gave up.", ["outcome"])
# Create both series up front: the increment a series first appears with is lost to rate().
for _outcome in (MailStatus.SENT, MailStatus.FAILED):
    MAILS.labels(_outcome)


# Stored among the values; no template variable has these names.
EXPIRES_AT, LANGUAGE = "expires_at", "language"


class Content(NamedTuple):
    """A mail's values, when its content becomes useless (None: never), and its language."""

    values: Mapping[str, str]
    expires_at: datetime | None = None
    language: str = ENGLISH


@dataclass(frozen=True)
class ReadyMail:
    """A mail ready to send; `kind` is the template name, `username` is empty if unknown."""

    mail_id: str
    kind: str
    recipient: str
    rendered: Rendered
    username: str = ""
    names_recipient: bool = False


def ready_mail(
    rt: Runtime, mail_id: str, template: Template, recipient: str, content: Content
) -> ReadyMail:
    """Render a mail from a template and its content."""
    return ReadyMail(
        mail_id=mail_id,
        kind=template,
        recipient=recipient,
        rendered=render(rt, template, content.values, content.language),
        username=content.values.get("username", ""),
        names_recipient=DESCRIPTIONS[template].names_recipient,
    )


class Transport:
    """Sends mails over one connection, which stays open until `close`."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._connection = SmtpConnection(rt.mailer)

    def send(self, mail: ReadyMail) -> None:
        """Send a mail, or write it to a file if no SMTP server is configured.

        Raises: Undeliverable.
        """
        server = smtp_server(self._rt)
        letter = _letter(self._rt, mail)
        if server is not None:
            self._connection.send(server, letter)
        else:
            _deliver_to_file(self._rt, mail, letter)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def smtp_server(rt: Runtime) -> SmtpServer | None:
    """Return the SMTP server to send by; None if it is not configured."""
    if not settings.is_mail_complete(rt.settings.get):
        return None
    return SmtpServer(
        host=rt.settings.get(mail_keys.MAIL_SMTP_HOST),
        port=rt.settings.get(mail_keys.MAIL_SMTP_PORT),
        username=rt.settings.get(mail_keys.MAIL_SMTP_USERNAME),
        password=settings.secret(rt, mail_keys.MAIL_SMTP_PASSWORD),
        uses_tls=rt.settings.get(mail_keys.MAIL_SECURITY),
        helo_name=_helo_name(rt),
    )


def _helo_name(rt: Runtime) -> str:
    """Return what the service calls itself: unless it is set, a name that others can look up.

    That is the site's, unless it only means something within a network, such as localhost.
    """
    if chosen := rt.settings.get(mail_keys.MAIL_HELO_NAME):
        return chosen
    origins = rt.settings.get(site.PUBLIC_SITE_URL)
    host = urlsplit(origins[0]).hostname or "" if origins else ""
    with suppress(ValueError):
        name = helo_name(host)
        if "." in name or ":" in name:
            return name
    return Mailbox(rt.settings.get(mail_keys.MAIL_FROM_ADDRESS)).domain


def event(recipient: str, kind: str, mail: ReadyMail | None, error: str | None) -> Event:
    """Return the audit event for a mail that was sent or given up.

    `error` is why it was given up, None if it was sent. `mail` is None if rendering failed.
    """
    details: dict[str, object] = {
        "to_address": recipient,
        "to_name": (mail.username or None) if mail else None,
        "template_code": kind,
        "subject": mail.rendered.redacted_subject if mail else None,
    }
    action = Action.MAIL_SEND
    if error is not None:
        action = Action.MAIL_DELIVERY_FAILED
        details["error"] = error
    return Event(action, EntityType.MAIL, entity_name=recipient, details=details)


def _letter(rt: Runtime, mail: ReadyMail) -> Letter:
    sender = rt.settings.get(mail_keys.MAIL_FROM_ADDRESS) or UNCONFIGURED_SENDER
    return Letter(
        sender=Mailbox(sender, one_line(_sender_name(rt))),
        recipient=Mailbox(mail.recipient, mail.username if mail.names_recipient else ""),
        subject=mail.rendered.subject,
        text=mail.rendered.text,
        html=mail.rendered.html,
        written_at=rt.clock.now(),
    )


def _sender_name(rt: Runtime) -> str:
    """Return the sender's display name: the site's name unless `mail_from_name` is set."""
    name = rt.settings.get(mail_keys.MAIL_FROM_NAME)
    is_set = name != mail_keys.MAIL_FROM_NAME.default
    return name if is_set else rt.settings.get(frontend_keys.BRANDING_TITLE)


def _deliver_to_file(rt: Runtime, mail: ReadyMail, letter: Letter) -> None:
    name = f"{rt.clock.now():%Y%m%dT%H%M%SZ}-{mail.kind}-{mail.mail_id}.eml"
    try:
        path = _write(rt.config.mail_dir, name, letter.as_bytes())
    except OSError as error:
        reason = f"{error.filename or rt.config.mail_dir}: {error.strerror}"
        raise Undeliverable(reason, is_server_failure=True) from error
    # With links and codes, so that none is lost on a developer's machine.
    log.info("no SMTP server is set; %s", " ".join(map(str, (path, *mail.rendered.secrets))))


def list_ids_with_file(folder: Path) -> set[str]:
    """Return the ids of the mails whose files still exist in the folder."""
    try:
        return {path.stem[-ID_LENGTH:] for path in folder.glob("[!.]*.eml")}
    except OSError:  # not readable by this user: then nothing is known
        return set()


def _write(folder: Path, name: str, content: bytes) -> Path:
    """Write a private file that appears under its name only when complete; return its path."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, draft = folder / name, folder / f".{name}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    draft.replace(path)
    return path


def seal(secret_box: SecretBox, mail_id: str, content: Content) -> str:
    """Return the encrypted payload to store for a mail."""
    values, end, language = content
    more = {} if end is None else {EXPIRES_AT: end.isoformat()}
    return secret_box.seal(json.dumps({**values, **more, LANGUAGE: language}), name_of(mail_id))


def unseal(secret_box: SecretBox, mail: OutboxMail) -> Content:
    """Return the decrypted content of a mail that is not finished.

    Raises: SecretUnreadable.
    """
    payload = secret_box.open(mail.payload or "", name_of(mail.id))
    values = cast("dict[str, str]", json.loads(payload))
    end = values.pop(EXPIRES_AT, None)
    language = values.pop(LANGUAGE, ENGLISH)  # older versions stored none, newer ones know more
    known = language if language in WORDS else ENGLISH
    return Content(values, datetime.fromisoformat(end) if end else None, known)


def name_of(mail_id: str) -> str:
    """Return the row name that a mail's payload is bound to (see `SecretBox`)."""
    return f"mail_outbox:{mail_id}"
