"""What accounts do in a year, and what that comes to: assumptions, and sums of measured acts.

How long things live and are kept is what the service is delivered with, read from its code.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.audit import keys as audit
from app.browsers import service as browsers
from app.mail import service as mail
from app.settings import keys

DAY = 86_400
DAYS_OF_A_YEAR = 365
RETENTION_DAYS: int = audit.RETENTION_DAYS.default
PRUNED = ("audit_log", "login_sessions", "mail_outbox")
SHORT_SESSION_DAYS: float = keys.SHORT_SESSION_SECONDS.default / DAY
CLEANUPS_A_DAY: float = DAY / keys.CLEANUP_INTERVAL_SECONDS.default


@dataclass(frozen=True)
class Habits:
    """What is assumed; shares are of all accounts, times are those of an active account's day."""

    # A fifth comes on a given day, two fifths within the life of a session: of services that
    # people use at work more, of shops less.
    active: float = 0.2
    active_in_a_session: float = 0.4
    # A page is open for two hours, and refreshes as often as its access token expires.
    open_hours: float = 2.0
    # Each thing that such a page loads is checked by the service behind it: one in 72 seconds.
    checks: float = 100.0
    # Half stay signed in, on a computer and a telephone; the others sign in each day.
    stay_signed_in: float = 0.5
    browsers: float = 2.0
    # Of sign-ins: by a browser that the account has not had, with a wrong password first, and with
    # a second step, which a tenth of the accounts have.
    by_new_browsers: float = 0.02
    with_wrong_password: float = 0.1
    with_second_step: float = 0.1
    # Of those who sign in each day, the others close the window.
    sign_out: float = 0.4
    change_profile: float = 0.01
    # A fiftieth has a program that calls once an hour.
    programs: float = 0.02
    calls_a_day: float = 24.0
    # New accounts a year, beside those there are.
    growth: float = 0.2
    # The busiest hour has a tenth of the day.
    busiest_hour: float = 0.1

    def acts_a_day(self) -> dict[str, float]:
        """Return how often an account does each act on an average day; names as in `year`."""
        sign_ins = self.active * (1 - self.stay_signed_in)
        new = self.growth / DAYS_OF_A_YEAR
        second = sign_ins * self.with_second_step
        by_new = sign_ins * self.by_new_browsers
        return {
            "register": new,
            "confirm the address": new,
            "sign in": sign_ins - second - by_new,
            "sign in, new browser": by_new,
            "sign in, two steps": second,
            "wrong password": sign_ins * self.with_wrong_password,
            "sign out": sign_ins * self.sign_out,
            "refresh": self.active * self.open_hours * 3600 / keys.ACCESS_TTL_SECONDS.default,
            "who am I": self.active * self.checks,
            "change the name": self.active * self.change_profile,
            "set up an app": new * self.with_second_step,
            "make a token": new * self.programs,
            "call with a token": self.programs * self.calls_a_day,
        }


@dataclass(frozen=True)
class Act:
    """What one act of one account costs, on average; `rows` are those added, by table."""

    rows: Mapping[str, float]
    wal_bytes: float
    writes: float
    cpu_ms: float

    def __add__(self, other: "Act") -> "Act":
        rows = {table: self.rows[table] + other.rows[table] for table in self.rows}
        wal_bytes, writes = self.wal_bytes + other.wal_bytes, self.writes + other.writes
        return Act(rows, wal_bytes, writes, self.cpu_ms + other.cpu_ms)


@dataclass(frozen=True)
class Year:
    """What there is in the end, by table, after everything that is too old was deleted."""

    rows: Mapping[str, float]
    audit_rows: float
    wal_bytes: float
    peak: Mapping[str, float]
    peak_writes: float
    peak_cores: float
    deletions_an_hour: float


def year_of(accounts: int, habits: Habits, acts: Mapping[str, Act]) -> Year:
    """Return what a year of so many accounts comes to; `acts` are all of `Habits.acts_a_day`."""
    often = {name: accounts * times for name, times in habits.acts_a_day().items()}
    added = {
        table: _total(often, {name: act.rows[table] for name, act in acts.items()})
        for table in acts["register"].rows
    }
    peak = {name: times * habits.busiest_hour / 3600 for name, times in often.items()}
    return Year(
        rows=_kept(accounts, habits, often, added)
        | {
            "mfa_recovery_codes": accounts
            * habits.with_second_step
            * acts["set up an app"].rows["mfa_recovery_codes"]
        },
        audit_rows=added["audit_log"] * DAYS_OF_A_YEAR,
        wal_bytes=DAYS_OF_A_YEAR * _total(often, {n: act.wal_bytes for n, act in acts.items()}),
        peak=peak,
        peak_writes=_total(peak, {name: act.writes for name, act in acts.items()}),
        peak_cores=_total(peak, {name: act.cpu_ms for name, act in acts.items()}) / 1000,
        deletions_an_hour=sum(added[table] for table in PRUNED) / CLEANUPS_A_DAY,
    )


def _kept(
    accounts: int, habits: Habits, often: Mapping[str, float], added: Mapping[str, float]
) -> dict[str, float]:
    """Return the rows that are not deleted yet; those of sessions kept open count once."""
    stay = habits.active_in_a_session * habits.stay_signed_in * habits.browsers
    new_browsers = often["sign in, new browser"] * browsers.UNUSED.days
    return {
        "users": accounts,
        "user_profiles": accounts,
        "login_sessions": accounts * stay + added["login_sessions"] * SHORT_SESSION_DAYS,
        "browsers": accounts * habits.browsers + new_browsers,
        "audit_log": added["audit_log"] * RETENTION_DAYS,
        "mail_outbox": added["mail_outbox"] * mail.RETENTION.days,
        "access_tokens": accounts * habits.programs,
        "mfa_factors": accounts * habits.with_second_step,
    }


def _total(often: Mapping[str, float], each: Mapping[str, float]) -> float:
    return sum(times * each[name] for name, times in often.items())
