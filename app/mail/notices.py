"""Security notices: what is mailed at once, and what is gathered.

None is dropped, or whoever has stolen a session could use them up before doing what nobody is to
hear of. Only switches that may go back and forth are gathered: the first change is mailed at once,
and all others of the next ten minutes follow in one mail.
"""

from datetime import timedelta

from sqlalchemy.orm import Session

from app.core.runtime import Runtime, SignInSwitch
from app.crypto.secret_box import SecretUnreadable
from app.mail import delivery, queries
from app.mail.models import OutboxMail
from app.mail.service import queue
from app.mail.templates import Template
from app.mail.words import ENGLISH

GATHERED_FOR = timedelta(minutes=10)
# What is mailed of any number of changes: as many as fit here, and the last.
MAX_TOLD_LENGTH = 1000
AND_THEN, AT_LAST = ", then ", ", then more of the same, and at last "


def queue_notice(
    rt: Runtime,
    session: Session,
    recipient: str,
    *,
    username: str,
    event: str,
    topic: str | None = None,
    language: str = ENGLISH,
) -> None:
    """Queue a notice within the running transaction; `event`, in `language`, is what it tells."""
    queue(
        rt,
        session,
        Template.SECURITY_NOTICE,
        recipient,
        topic=topic,
        language=language,
        username=username,
        event=event,
    )


def queue_notice_of_switch(
    rt: Runtime, session: Session, recipient: str, *, username: str, switch: SignInSwitch, how: str
) -> None:
    """Queue a notice of a switch, or add it to those of the last ten minutes.

    `how` says who did it. The caller holds the lock SETTINGS, so that no two see the same state.
    """
    now, topic = rt.clock.now(), f"switch:{switch.name}"
    first = queries.find_notice(session, recipient, topic, now - GATHERED_FOR, now)
    if first is None:
        event = f"{switch.what} was {switch.did} {how}."
        kind = Template.SECURITY_NOTICE
        queue(rt, session, kind, recipient, topic=topic, username=username, event=event)
        return
    gathered = queries.find_gathered(session, recipient, f"more:{topic}", first.created_at)
    if gathered is not None and _add(rt, gathered, f"{switch.did} {how}"):
        return
    event = f"{switch.what} was changed again within ten minutes: {switch.did} {how}."
    queue(
        rt,
        session,
        Template.SECURITY_NOTICE,
        recipient,
        topic=f"more:{topic}",
        due_at=first.created_at + GATHERED_FOR,
        username=username,
        event=event,
    )


def _add(rt: Runtime, gathered: OutboxMail, change: str) -> bool:
    """Add a change to a mail that waits; False if it cannot be read."""
    try:
        content = delivery.unseal(rt.secret_box, gathered)
    except SecretUnreadable:
        return False
    so_far = content.values["event"].removesuffix(".").partition(AT_LAST)[0]
    joint = AND_THEN if len(so_far) + len(change) < MAX_TOLD_LENGTH else AT_LAST
    values = {**content.values, "event": f"{so_far}{joint}{change}."}
    gathered.payload = delivery.seal(rt.secret_box, gathered.id, content._replace(values=values))
    return True
