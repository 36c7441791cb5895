"""What becomes of a mail after an attempt at it.

A mail is given up after six attempts. What the server failed at before it had the mail is none, and
neither is one without the key that opens the mail: however long that is away, up to three days, it
costs no mail, as long as what the mail brings is of use.
"""

from dataclasses import dataclass
from datetime import timedelta

from app.core.smtp.errors import Undeliverable
from app.mail.models import MailStatus

BACK_OFF_SECONDS = (5, 15, 60, 300, 900)
MAX_ATTEMPTS = len(BACK_OFF_SECONDS) + 1
# While server or key is away, a mail pauses as long as it has waited by then, within these bounds.
SHORTEST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_FOR_SERVER_SECONDS = 60.0
# Of all mails, where only one of those that wait for the server is tried at each look.
LONGEST_PAUSE_FOR_KEY_SECONDS = 300.0
LONGEST_OUTAGE = timedelta(days=3)  # a weekend
NO_KEY = "no key opens it, see `flask doctor`"
LONGEST_PAUSE = timedelta(seconds=BACK_OFF_SECONDS[-1])


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended; `error` is None for a mail that was sent.

    One that does not count is as good as never made. `is_perhaps_the_mails`: whether the server
    fails at others as well, only another tells.
    """

    status: MailStatus
    error: str | None = None
    is_servers_fault: bool = False
    is_perhaps_the_mails: bool = False
    counts: bool = True


def of_failure(error: Undeliverable, attempts: int, waited: timedelta) -> Outcome:
    """Return what a failure means for a mail that was queued so long ago.

    One that the server may have counts whoever is at fault: each try may deliver it once more.
    """
    blame = error.is_servers_fault, error.is_servers_fault and error.is_perhaps_the_mails
    if error.is_servers_fault and not error.may_have_arrived:
        return Outcome(_status_in_outage(waited), error.reason, *blame, counts=False)
    status = MailStatus.FAILED if error.is_final else status_after(attempts)
    return Outcome(status, error.reason, *blame)


def without_key(waited: timedelta) -> Outcome:
    """Return what it means for a mail queued so long ago that no key opens it now."""
    return Outcome(_status_in_outage(waited), NO_KEY, counts=False)


def _status_in_outage(waited: timedelta) -> MailStatus:
    return MailStatus.FAILED if waited >= LONGEST_OUTAGE else MailStatus.QUEUED


def status_after(attempts: int) -> MailStatus:
    """Return whether a mail that did not leave is tried again."""
    return MailStatus.QUEUED if attempts < MAX_ATTEMPTS else MailStatus.FAILED


def pause(outcome: Outcome, attempts: int, waited: timedelta) -> timedelta:
    """Return how long a mail rests that is to be tried again."""
    if outcome.counts:
        return timedelta(seconds=BACK_OFF_SECONDS[attempts - 1])
    longest = LONGEST_PAUSE_FOR_KEY_SECONDS
    if outcome.is_servers_fault:
        longest = LONGEST_PAUSE_FOR_SERVER_SECONDS
    return timedelta(seconds=min(max(waited.total_seconds(), SHORTEST_PAUSE_SECONDS), longest))
