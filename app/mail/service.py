"""Use cases of the outbox."""

import json

from sqlalchemy.orm import Session

from app.core.runtime import Runtime
from app.core.tokens import random_uuid
from app.mail.models import MailStatus, OutboxMail
from app.mail.templates import Template
from app.settings import keys
from app.web import site


def queue(rt: Runtime, session: Session, template: Template, recipient: str, **values: str) -> None:
    """Write a mail into the running transaction; it leaves soon after the commit.

    `values` are the template's stored values but for `site_name`, which is added.
    """
    mail_id, now = random_uuid(), rt.clock.now()
    payload = json.dumps(values | {"site_name": rt.settings.get(keys.BRANDING_TITLE)})
    session.add(
        OutboxMail(
            id=mail_id,
            template=template,
            recipient=recipient,
            payload=rt.secret_box.seal(payload, f"mail_outbox:{mail_id}"),
            status=MailStatus.QUEUED,
            attempts=0,
            created_at=now,
            due_at=now,
        )
    )


def is_smtp_configured(rt: Runtime) -> bool:
    """Tell whether mail leaves by SMTP: host and from address are set (decision E18)."""
    return bool(rt.settings.get(keys.MAIL_SMTP_HOST) and rt.settings.get(keys.MAIL_FROM_ADDRESS))


def site_link(rt: Runtime, path: str) -> str:
    """Return an address of the site for a mail; only the path while the site's is not known."""
    origins = rt.settings.get(site.PUBLIC_SITE_URL)
    return f"{origins[0]}{path}" if origins else path
