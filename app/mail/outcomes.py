"""What becomes of a mail after an attempt: sent, given up, or tried again after a pause."""

from dataclasses import dataclass, replace
from datetime import timedelta

from app.core.runtime import Runtime
from app.mail.delivery import ReadyMail
from app.mail.models import MailStatus, OutboxMail
from app.mail.smtp_failures import Undeliverable

BACK_OFF = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 60, 300, 900))
MAX_ATTEMPTS = len(BACK_OFF) + 1
# During an outage of server or key, a mail backs off for as long as it has waited, within bounds.
MIN_PAUSE = timedelta(seconds=5)
MAX_PAUSE_FOR_SERVER = timedelta(minutes=1)
# Longer, because each poll retries every mail that the server has refused by itself.
MAX_PAUSE_FOR_MAIL = timedelta(hours=1)
# Longer, because each poll retries every mail without a key, but only one or two while the server
# is down.
MAX_PAUSE_FOR_KEY = timedelta(minutes=5)
MAX_OUTAGE = timedelta(days=3)  # a weekend
NO_KEY = "no key decrypts it"


@dataclass(frozen=True)
class MailOutcome:
    """How an attempt ended; `error` is None for a mail that was sent.

    A queued mail is retried after `pause`. `counts` is False if the attempt uses up no try.
    `failure` is what the server did, if it was asked.
    """

    status: MailStatus
    error: str | None = None
    pause: timedelta = timedelta(0)
    counts: bool = True
    failure: Undeliverable | None = None


def after_try(error: str, row: OutboxMail) -> MailOutcome:
    """Return the outcome of an attempt that counts."""
    if row.attempts >= MAX_ATTEMPTS and not row.is_hurried:
        return MailOutcome(MailStatus.FAILED, error)
    return MailOutcome(
        MailStatus.QUEUED, error, BACK_OFF[max(0, min(row.attempts, MAX_ATTEMPTS) - 1)]
    )


def in_outage(error: str, row: OutboxMail, waited: timedelta, max_pause: timedelta) -> MailOutcome:
    """Return the outcome for a mail that waits for something else, for three days at most."""
    if waited >= MAX_OUTAGE and not row.is_hurried:
        return MailOutcome(MailStatus.FAILED, error, counts=False)
    pause = min(max(waited, MIN_PAUSE), max_pause)
    return MailOutcome(MailStatus.QUEUED, error, pause, counts=False)


def after_failure(
    failure: Undeliverable, row: OutboxMail, waited: timedelta, *, is_alike: bool = False
) -> MailOutcome:
    """Return the outcome of a failed attempt at a mail that has `waited` since it was queued.

    If the server may have the mail, the attempt counts regardless: a retry may deliver it twice.
    `is_alike`: somebody else was refused in the same words, so they are not about this recipient.
    """
    is_servers = failure.is_server_failure and not failure.may_be_mail_specific
    if failure.may_have_arrived:
        outcome = after_try(failure.reason, row)
    elif failure.is_final and not is_alike:
        outcome = MailOutcome(MailStatus.FAILED, failure.reason)
    else:
        max_pause = MAX_PAUSE_FOR_SERVER if is_servers else MAX_PAUSE_FOR_MAIL
        outcome = in_outage(failure.reason, row, waited, max_pause)
    return replace(outcome, failure=failure)


@dataclass(frozen=True)
class Tried:
    """An attempt at a mail, leased until it is recorded; `mail` is None if it was not rendered."""

    row: OutboxMail
    mail: ReadyMail | None
    outcome: MailOutcome

    @property
    def refusal(self) -> str | None:
        """What the server said about mail or recipient; None if it would not of another one."""
        return self.outcome.failure.refusal if self.outcome.failure else None

    @property
    def is_doubtful(self) -> bool:
        """Whether the mail ends, unless others are refused alike."""
        return self.outcome.status is MailStatus.FAILED and self.refusal is not None

    def is_refused_like(self, other: "Tried") -> bool:
        """Return whether another recipient was refused in the same words."""
        if self.refusal is None or self.row.recipient == other.row.recipient:
            return False
        return self.refusal == other.refusal

    def waiting(self, rt: Runtime) -> "Tried":
        """Return it with the outcome for a refusal that is the server's fault."""
        if self.outcome.failure is None:
            return self
        waited = rt.clock.now() - self.row.created_at
        outcome = after_failure(self.outcome.failure, self.row, waited, is_alike=True)
        return replace(self, outcome=outcome)
