"""What becomes of a mail after an attempt to send it.

A mail is given up after six attempts. A failure of the server before it had the mail does not
count, nor does a missing decryption key: an outage of either, up to three days, loses no mail
except those whose content expires meanwhile.
"""

from dataclasses import dataclass
from datetime import timedelta

from app.core.smtp_errors import Undeliverable
from app.mail.models import MailStatus

BACK_OFF_SECONDS = (5, 15, 60, 300, 900)
MAX_ATTEMPTS = len(BACK_OFF_SECONDS) + 1
# During an outage of server or key, a mail backs off for as long as it has waited, within bounds.
MIN_PAUSE_SECONDS = 5.0
MAX_PAUSE_FOR_SERVER_SECONDS = 60.0
# Longer, because each poll retries every mail without a key, but only one or two while the server
# is down.
MAX_PAUSE_FOR_KEY_SECONDS = 300.0
MAX_OUTAGE = timedelta(days=3)  # a weekend
NO_KEY = "no key opens it, see `flask doctor`"
MAX_PAUSE = timedelta(seconds=BACK_OFF_SECONDS[-1])


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended; `error` is None for a mail that was sent.

    `counts` is False if the attempt uses up no try. `may_be_mail_specific`: the failure may be
    specific to this mail; only trying another one can tell.
    """

    status: MailStatus
    error: str | None = None
    is_server_failure: bool = False
    may_be_mail_specific: bool = False
    counts: bool = True


def after_failure(error: Undeliverable, attempts: int, waited: timedelta) -> Outcome:
    """Return the outcome of a failed attempt at a mail that has `waited` since it was queued.

    If the server may have the mail, the attempt counts regardless: a retry may deliver it twice.
    """
    blame = error.is_server_failure, error.is_server_failure and error.may_be_mail_specific
    if error.is_server_failure and not error.may_have_arrived:
        return Outcome(_status_in_outage(waited), error.reason, *blame, counts=False)
    status = MailStatus.FAILED if error.is_final else status_after(attempts)
    return Outcome(status, error.reason, *blame)


def without_key(waited: timedelta) -> Outcome:
    """Return the outcome for a mail, `waited` since it was queued, that no key decrypts now."""
    return Outcome(_status_in_outage(waited), NO_KEY, counts=False)


def _status_in_outage(waited: timedelta) -> MailStatus:
    return MailStatus.FAILED if waited >= MAX_OUTAGE else MailStatus.QUEUED


def status_after(attempts: int) -> MailStatus:
    """Return the status after a failed attempt: queued for a retry, or failed for good."""
    return MailStatus.QUEUED if attempts < MAX_ATTEMPTS else MailStatus.FAILED


def pause(outcome: Outcome, attempts: int, waited: timedelta) -> timedelta:
    """Return the back-off before a mail is retried."""
    if outcome.counts:
        return timedelta(seconds=BACK_OFF_SECONDS[attempts - 1])
    longest = MAX_PAUSE_FOR_KEY_SECONDS
    if outcome.is_server_failure:
        longest = MAX_PAUSE_FOR_SERVER_SECONDS
    return timedelta(seconds=min(max(waited.total_seconds(), MIN_PAUSE_SECONDS), longest))
