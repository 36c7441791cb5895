"""The outbox: leases, back-off, what becomes of a mail."""

import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY

from app.core.access import COMMAND_LINE
from app.mail import dispatcher, operators, queries, service
from app.mail.errors import MailDeliveryFailed, MailNotConfigured
from app.mail.mailer import Mailer
from app.mail.models import MailStatus, OutboxMail
from app.mail.templates import Template
from app.store.database import DATABASE_ERRORS
from app.web import runtime as web_runtime
from tests.support.factories import audit_rows, configure, count
from tests.support.full_disk import fill
from tests.support.live import free_port
from tests.support.outbox import TOKEN, only_row, queue, rows, use_smtp
from tests.support.smtp import ScriptedSmtpServer, converse

SENT = OutboxMail.status == "sent"


def change(rt, **columns):
    """Change every mail behind the sender's back."""
    with rt.transaction() as session:
        session.execute(sa.update(OutboxMail).values(**columns))


def rename(rt, old, new):
    """Make a table unreachable, or bring it back."""
    with rt.transaction() as session:
        session.execute(sa.text(f"ALTER TABLE {old} RENAME TO {new}"))


@pytest.fixture
def second(make_app, authority):
    """Another instance on the same database."""
    return make_app(mailer=Mailer(tls=authority.client())).extensions[web_runtime.EXTENSION]


@contextmanager
def plans(rt):
    """Yield a list of how the database goes about each statement of the block."""
    told = []

    def explain(_connection, cursor, statement, values, *_):
        if rt.database.is_sqlite:
            cursor.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        else:  # small tables are read whole, or by any index, and then sorted
            for other in ("seqscan", "bitmapscan", "sort"):
                cursor.execute(f"SET LOCAL enable_{other} = off")
            cursor.execute(f"EXPLAIN {statement}", values)
        told.append("\n".join(map(str, cursor.fetchall())))

    sa.event.listen(rt.database.engine, "before_cursor_execute", explain)
    yield told
    sa.event.remove(rt.database.engine, "before_cursor_execute", explain)


# --- queueing ------------------------------------------------------------------------------------


def test_a_mail_is_written_with_the_transaction_or_not_at_all(rt):
    def fail():
        with rt.transaction() as session:
            service.queue(
                rt, session, Template.PASSWORD_RESET_NOTICE, "a@example.com", username="A"
            )
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert rows(rt) == []
    assert not rt.mailer.due.is_set()


def test_what_a_mail_says_cannot_be_read_in_the_database(rt):
    queue(rt)
    row = only_row(rt)
    assert TOKEN not in repr(row)
    assert (row.status, row.attempts, row.lease, row.finished_at) == ("queued", 0, None, None)


@pytest.mark.parametrize("values", [{}, {"username": "Ada", "token": TOKEN}])
def test_a_mail_is_queued_with_what_its_template_needs(rt, values):
    with rt.transaction() as session, pytest.raises(ValueError, match="password_reset_notice"):
        service.queue(rt, session, Template.PASSWORD_RESET_NOTICE, "a@example.com", **values)


def test_a_commit_wakes_the_sender(rt):
    queue(rt)
    assert rt.mailer.due.is_set()


# --- how it ends ---------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_sent_mail_keeps_no_payload_and_is_audited(rt, smtp, clock):
    queue(rt)
    dispatcher.drain(rt)
    row = only_row(rt)
    assert (row.status, row.payload, row.lease) == ("sent", None, None)
    assert row.finished_at == clock.now()
    [entry] = audit_rows(rt, "mail_send")
    assert (entry.user_id, entry.entity_type, entry.entity_id) == (0, "mail", None)
    assert entry.entity_name == "ada@example.com"
    assert json.loads(entry.details) == {
        "to_address": "ada@example.com",
        "to_name": "Ada",
        "template_code": "password_reset",
        "subject": "Gatehouse: reset your password",
    }


def take_and_hang_up(client):
    """Take the content, and never say whether it is accepted."""
    converse(client, until=b"DATA")
    client.sendall(b"354 go on\r\n")
    client.recv(100)


def test_a_mail_that_may_have_arrived_is_tried_six_times_at_growing_distances(rt, clock):
    with ScriptedSmtpServer(take_and_hang_up) as server:
        use_smtp(rt, server.port)
        queue(rt)
        for attempt, pause in enumerate((5, 15, 60, 300, 900), start=1):
            dispatcher.drain(rt)
            row = only_row(rt)
            assert (row.status, row.attempts, row.lease) == ("queued", attempt, None)
            assert row.due_at == clock.now() + timedelta(seconds=pause)
            assert row.payload is not None
            clock.advance(seconds=pause - 1)
            dispatcher.drain(rt)
            assert only_row(rt).attempts == attempt
            clock.advance(seconds=1)
        assert audit_rows(rt, "mail_delivery_failed") == []
        dispatcher.drain(rt)
    row = only_row(rt)
    assert (row.status, row.attempts, row.payload) == ("failed", 6, None)
    assert row.finished_at == clock.now()
    [entry] = audit_rows(rt, "mail_delivery_failed")
    assert json.loads(entry.details)["error"] == row.last_error
    clock.advance(days=1)
    dispatcher.drain(rt)
    assert only_row(rt).attempts == 6


@pytest.mark.both_databases
def test_a_mail_that_was_late_is_sent_like_any_other(rt, smtp, clock):
    queue(rt)
    smtp.data_answers = ["451 later"]
    dispatcher.drain(rt)
    clock.advance(seconds=5)
    dispatcher.drain(rt)
    row = only_row(rt)
    assert (row.status, row.attempts, row.last_error) == ("sent", 1, None)


def test_the_longest_due_goes_first(rt, smtp, clock):
    for name in ("first", "second", "third"):
        queue(rt, f"{name}@example.com")
        clock.advance(seconds=1)
    dispatcher.drain(rt)
    assert [r.partition("@")[0] for r in smtp.recipients] == ["first", "second", "third"]


def test_a_server_that_is_away_costs_no_mail(rt, sink, clock):
    use_smtp(rt, free_port())
    queue(rt, template=Template.PASSWORD_RESET_NOTICE, username="Ada")
    pauses = []
    while clock.now() - only_row(rt).created_at < timedelta(days=2):
        dispatcher.drain(rt)
        row = only_row(rt)
        assert (row.status, row.attempts, row.lease) == ("queued", 0, None)
        assert row.payload is not None
        pauses.append((row.due_at - clock.now()).total_seconds())
        clock.advance(seconds=pauses[-1] if len(pauses) < 8 else 3600)
    assert pauses[:8] == [5, 5, 10, 20, 40, 60, 60, 60]
    assert set(pauses[8:]) == {60}
    use_smtp(rt, sink.port)
    dispatcher.drain(rt)
    assert (only_row(rt).status, only_row(rt).attempts) == ("sent", 1)
    assert audit_rows(rt, "mail_delivery_failed") == []


def test_a_server_that_stays_away_is_not_waited_for_longer_than_a_weekend(rt, clock):
    use_smtp(rt, free_port())
    queue(rt, template=Template.PASSWORD_RESET_NOTICE, username="Ada")
    clock.advance(days=3, seconds=-1)
    dispatcher.drain(rt)
    assert only_row(rt).status == "queued"
    clock.advance(minutes=1)
    dispatcher.drain(rt)
    row = only_row(rt)
    assert (row.status, row.attempts, row.payload) == ("failed", 0, None)
    assert "cannot be reached" in row.last_error
    assert len(audit_rows(rt, "mail_delivery_failed")) == 1


def test_an_outage_leaves_a_mail_the_attempts_it_had(rt, smtp, clock):
    queue(rt, template=Template.PASSWORD_RESET_NOTICE, username="Ada")
    with ScriptedSmtpServer(take_and_hang_up) as server:
        use_smtp(rt, server.port)
        for _ in range(5):
            dispatcher.drain(rt)
            clock.advance(seconds=900)
    use_smtp(rt, free_port())
    for _ in range(3):
        dispatcher.drain(rt)
        assert (only_row(rt).status, only_row(rt).attempts) == ("queued", 5)
        clock.advance(seconds=60)
    with ScriptedSmtpServer(take_and_hang_up) as server:
        use_smtp(rt, server.port)
        dispatcher.drain(rt)
    assert (only_row(rt).status, only_row(rt).attempts) == ("failed", 6)


def test_a_server_that_hangs_up_over_a_mail_does_not_get_it_for_days(rt, clock):
    """It may deliver each of them."""
    with ScriptedSmtpServer(take_and_hang_up) as server:
        use_smtp(rt, server.port)
        queue(rt)
        for _ in range(8):
            dispatcher.drain(rt)
            clock.advance(seconds=900)
        assert server.connections == 6
    assert (only_row(rt).status, only_row(rt).attempts) == ("failed", 6)


def test_a_mail_whose_link_has_expired_does_not_leave(rt, smtp, clock):
    for name, seconds in (("late", 3599), ("later", 3600), ("ever", None)):
        life = seconds and timedelta(seconds=seconds)
        with rt.transaction() as session:
            service.queue(
                rt,
                session,
                Template.PASSWORD_RESET,
                f"{name}@example.com",
                expires_at=life and clock.now() + life,
                username="Ada",
                token=TOKEN,
                expires_in="1 hour",
            )
    clock.advance(seconds=3599)
    assert dispatcher.drain(rt).counts == {MailStatus.FAILED: 1, MailStatus.SENT: 2}
    assert sorted(smtp.recipients) == ["ever@example.com", "later@example.com"]
    [row] = [row for row in rows(rt) if row.status == "failed"]
    assert (row.recipient, row.attempts, row.payload) == ("late@example.com", 0, None)
    assert row.last_error == "its link or code has expired"
    [entry] = audit_rows(rt, "mail_delivery_failed")
    assert json.loads(entry.details)["subject"] == "Gatehouse: reset your password"


def test_a_code_in_the_subject_is_not_audited(rt, smtp):
    configure(rt, mail_template_password_reset_subject="{{username}}: {{reset_url}}")
    queue(rt)
    dispatcher.drain(rt)
    [mail] = smtp.received
    assert TOKEN in mail.message["Subject"]
    [entry] = audit_rows(rt, "mail_send")
    assert json.loads(entry.details)["subject"] == "Ada: ***"


def test_a_mail_that_cannot_be_made_does_not_stop_the_others(rt, smtp, caplog):
    caplog.set_level(logging.ERROR)
    queue(rt, "first@example.com")
    change(rt, template="of_another_version")
    queue(rt, "second@example.com")
    change_first = sa.update(OutboxMail).where(OutboxMail.recipient == "first@example.com")
    with rt.transaction() as session:
        session.execute(change_first.values(due_at=rt.clock.now() - timedelta(seconds=1)))
    dispatcher.drain(rt)
    assert smtp.recipients == ["second@example.com"]
    [broken] = [row for row in rows(rt) if row.status == "queued"]
    assert broken.last_error == "the mail could not be rendered (ValueError)"


@pytest.fixture
def bereft(make_app):
    """An instance without the key of the others."""
    other = ("new", b"a key that opens nothing of before")
    return make_app(secret_keys=(other,)).extensions[web_runtime.EXTENSION]


def test_a_key_that_is_put_back_has_cost_no_mail(rt, bereft, smtp, clock, caplog):
    caplog.set_level(logging.WARNING)
    queue(rt)
    pauses = []
    for _ in range(9):
        dispatcher.drain(bereft)
        row = only_row(rt)
        assert (row.status, row.attempts) == ("queued", 0)
        assert row.last_error == "no key decrypts it"
        pauses.append((row.due_at - clock.now()).total_seconds())
        clock.advance(seconds=pauses[-1])
    assert pauses[:7] == [5, 5, 10, 20, 40, 80, 160]
    assert set(pauses[7:]) == {300}
    clock.advance(days=2)
    assert {record.exc_info for record in caplog.records} == {None}
    dispatcher.drain(rt)
    assert (only_row(rt).status, only_row(rt).attempts) == ("sent", 1)
    assert audit_rows(rt, "mail_delivery_failed") == []


def test_a_key_that_stays_away_is_not_waited_for_longer_than_a_weekend(rt, bereft, clock):
    queue(rt)
    clock.advance(days=3)
    dispatcher.drain(bereft)
    row = only_row(rt)
    assert (row.status, row.attempts, row.payload) == ("failed", 0, None)
    assert len(audit_rows(rt, "mail_delivery_failed")) == 1


def test_mails_without_their_key_hold_up_no_others(rt, bereft, smtp, clock):
    for name in ("first", "second"):
        queue(rt, f"{name}@example.com")
    clock.advance(seconds=1)
    queue(bereft, "third@example.com")
    drained = dispatcher.drain(bereft)
    assert smtp.recipients == ["third@example.com"]
    assert drained.server_error is None


# --- leases --------------------------------------------------------------------------------------


@pytest.mark.both_databases
def test_a_mail_that_somebody_sends_is_left_alone_until_the_lease_ends(rt, second, smtp, clock):
    seen = []

    def look(_mail):
        row = only_row(second)
        seen.append((row.status, row.attempts, row.due_at - clock.now(), bool(row.lease)))
        seen.append(dispatcher.drain(second).counts)

    smtp.on_mail = look
    queue(rt)
    dispatcher.drain(rt)
    assert seen == [("sending", 1, timedelta(seconds=60), True), {}]
    assert len(smtp.received) == 1


def test_a_lease_that_ran_out_is_taken_over_and_its_late_sender_marks_nothing(
    rt, second, smtp, clock, caplog
):
    caplog.set_level(logging.WARNING)

    def overtake(_mail):
        smtp.on_mail = lambda _mail: None
        clock.advance(seconds=60)
        smtp.refusals["ada@example.com"] = "450 not now"
        assert dispatcher.drain(second).counts == {MailStatus.QUEUED: 1}

    smtp.on_mail = overtake
    queue(rt)
    dispatcher.drain(rt)
    row = only_row(rt)
    assert (row.status, row.attempts) == ("queued", 1)
    assert audit_rows(rt, "mail_send") == []
    assert "longer than its lease" in caplog.text


def test_a_sender_that_dies_between_sending_and_marking_repeats_that_mail_only(rt, smtp, clock):
    for number in range(5):
        queue(rt, f"user{number}@example.com")
    survivor = rt.mailer.context

    @contextmanager
    def dying():
        with survivor():
            yield
        if len(smtp.received) == 3:
            raise KeyboardInterrupt

    rt.mailer.context = dying
    with pytest.raises(KeyboardInterrupt):
        dispatcher.drain(rt)
    rt.mailer.context = survivor
    dispatcher.drain(rt)
    assert len(smtp.received) == 5
    clock.advance(seconds=60)
    dispatcher.drain(rt)
    assert len(smtp.received) == 6
    assert smtp.recipients.count(smtp.recipients[2]) == 2
    assert sorted(row.attempts for row in rows(rt)) == [1, 1, 1, 1, 2]
    assert {row.status for row in rows(rt)} == {"sent"}


def test_a_database_that_goes_away_while_a_mail_is_sent_does_not_repeat_it(
    rt, smtp, clock, monkeypatch
):
    smtp.on_mail = lambda _mail: rename(rt, "mail_outbox", "elsewhere")

    def come_back(seconds):
        if seconds == dispatcher.MARK_PAUSE_SECONDS:
            rename(rt, "elsewhere", "mail_outbox")

    monkeypatch.setattr(clock, "sleep", come_back)
    queue(rt)
    assert dispatcher.drain(rt).counts == {MailStatus.SENT: 1}
    assert only_row(rt).status == "sent"
    assert len(smtp.received) == 1


def test_a_database_that_stays_away_leaves_the_mail_to_its_lease(rt, smtp):
    smtp.on_mail = lambda _mail: rename(rt, "mail_outbox", "elsewhere")
    queue(rt)
    with pytest.raises(DATABASE_ERRORS):
        dispatcher.drain(rt)
    rename(rt, "elsewhere", "mail_outbox")
    assert only_row(rt).status == "sending"


def test_a_mail_whose_every_sender_died_is_given_up(rt, smtp, clock):
    queue(rt)
    change(rt, status="sending", lease="gone", attempts=6, due_at=clock.now())
    dispatcher.drain(rt)
    row = only_row(rt)
    assert (row.status, row.attempts, row.payload) == ("failed", 6, None)
    assert row.last_error == "the last attempt was never finished"
    assert smtp.received == []
    assert len(audit_rows(rt, "mail_delivery_failed")) == 1


def test_mails_a_clock_ahead_put_off_leave_once_it_is_set_right(rt, smtp, clock, caplog):
    """Of both, one had been tried and waited for its turn, and one had just been queued."""
    caplog.set_level(logging.WARNING)
    clock.advance(days=1)
    smtp.refusals["first@example.com"] = "450 not now"
    queue(rt, "first@example.com")
    dispatcher.drain(rt)
    queue(rt, "second@example.com")
    smtp.refusals.clear()
    clock.advance(days=-1)
    dispatcher.drain(rt)
    assert sorted(smtp.recipients) == ["first@example.com", "second@example.com"]
    assert "the clock was set back: 2 mails" in caplog.text


def test_a_lease_of_a_clock_ahead_ends_after_its_usual_time(rt, second, smtp, clock):
    """And not at once, since whoever holds it may be in the middle of the mail."""
    queue(rt)
    until = clock.now() + timedelta(days=1)
    change(rt, status="sending", lease="gone", attempts=1, due_at=until)
    dispatcher.drain(rt)
    assert (only_row(rt).lease, only_row(rt).due_at) == ("gone", clock.now() + dispatcher.LEASE)
    clock.advance(seconds=59)
    dispatcher.drain(second)
    assert smtp.received == []
    clock.advance(seconds=1)
    dispatcher.drain(second)
    assert [row.status for row in rows(rt)] == ["sent"]
    assert len(smtp.received) == 1


def test_a_mail_in_hand_while_the_clock_is_set_back_is_sent_once(rt, second, smtp, clock):
    def set_back(_mail):
        clock.advance(days=-1)
        dispatcher.drain(second)

    smtp.on_mail = set_back
    queue(rt)
    assert dispatcher.drain(rt).counts == {MailStatus.SENT: 1}
    clock.advance(days=1)
    dispatcher.drain(second)
    assert len(smtp.received) == 1
    assert len(audit_rows(rt, "mail_send")) == 1


@pytest.mark.parametrize(
    ("status", "seconds"), [("sending", 60 + 60), ("queued", 3600 + 60)], ids=["lease", "pause"]
)
def test_what_may_be_put_off_so_far_stays_where_it_is(rt, smtp, clock, status, seconds):
    queue(rt)
    due_at = clock.now() + timedelta(seconds=seconds)
    change(rt, status=status, due_at=due_at)
    dispatcher.drain(rt)
    assert (only_row(rt).status, only_row(rt).due_at) == (status, due_at)


@pytest.mark.both_databases
def test_several_senders_send_each_mail_once(rt, second, smtp):
    recipients = [f"user{number}@example.com" for number in range(40)]
    with rt.transaction() as session:
        for recipient in recipients:
            values = {"username": "Ada", "token": TOKEN, "expires_in": "1 hour"}
            service.queue(rt, session, Template.PASSWORD_RESET, recipient, **values)
    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(dispatcher.drain, [rt, second, rt, second]))
    assert sorted(smtp.recipients) == sorted(recipients)
    assert sum(drained.counts[MailStatus.SENT] for drained in sent) == 40
    assert {(row.status, row.attempts) for row in rows(rt)} == {("sent", 1)}
    assert len(audit_rows(rt, "mail_send")) == 40


# --- in the background ---------------------------------------------------------------------------


def start(rt):
    """Start sending; return how to stop it, and the thread that does it."""
    before = set(threading.enumerate())
    stop = dispatcher.start(rt)
    [thread] = [t for t in set(threading.enumerate()) - before if t.name == "mail dispatcher"]
    return stop, thread


def seconds_of(action):
    """Return how long something takes."""
    began = time.monotonic()
    action()
    return time.monotonic() - began


@pytest.fixture
def running(rt):
    stop = dispatcher.start(rt)
    yield
    stop()


def test_a_queued_mail_is_sent_without_waiting_for_the_next_look(rt, smtp, running, wait_for):
    configure(rt, mail_outbox_dispatch_interval_secs=3600)
    for number in (1, 2, 3):
        queue(rt, f"user{number}@example.com")
        wait_for(lambda expected=number: len(smtp.received) == expected)
    wait_for(lambda: {row.status for row in rows(rt)} == {"sent"})


def test_mails_that_follow_one_another_share_a_connection(rt, smtp, running, wait_for, monkeypatch):
    # However long it takes on a busy machine until the next one follows.
    monkeypatch.setattr(dispatcher, "MAX_STEP_SECONDS", 3600.0)
    configure(rt, mail_outbox_dispatch_interval_secs=3600)
    for number in (1, 2, 3):
        queue(rt, f"user{number}@example.com")
        wait_for(lambda expected=number: count(rt, OutboxMail, SENT) == expected)
    assert {mail.connection for mail in smtp.received} == {1}


def test_a_connection_is_not_kept_when_no_mail_follows(rt, smtp, running, wait_for, monkeypatch):
    monkeypatch.setattr(dispatcher, "MAX_STEP_SECONDS", 0.1)
    queue(rt)
    wait_for(lambda: len(smtp.received) == 1 and not smtp.is_anybody_connected)
    queue(rt)
    wait_for(lambda: len(smtp.received) == 2)
    assert smtp.connections == 2


def test_a_server_that_hung_up_meanwhile_is_connected_again(rt, smtp, running, wait_for):
    smtp.mails_per_connection = 1
    for number in (1, 2):
        queue(rt)
        wait_for(lambda expected=number: count(rt, OutboxMail, SENT) == expected)
    assert [mail.connection for mail in smtp.received] == [1, 2]
    assert {row.attempts for row in rows(rt)} == {1}


def test_a_mail_of_another_process_is_found_at_the_next_look(rt, second, smtp, running, wait_for):
    configure(rt, mail_outbox_dispatch_interval_secs=1)
    rt.mailer.due.set()
    queue(second)
    wait_for(lambda: len(smtp.received) == 1)


def test_a_shorter_interval_does_not_wait_for_the_end_of_a_long_one(
    rt, second, smtp, running, wait_for, monkeypatch
):
    monkeypatch.setattr(dispatcher, "MAX_STEP_SECONDS", 0.1)
    configure(rt, mail_outbox_dispatch_interval_secs=3600)
    rt.mailer.due.set()
    wait_for(lambda: not rt.mailer.due.is_set())
    queue(second)
    configure(rt, mail_outbox_dispatch_interval_secs=1)
    wait_for(lambda: len(smtp.received) == 1)


def test_it_survives_a_database_that_goes_away(rt, smtp, running, wait_for, caplog, monkeypatch):
    caplog.set_level(logging.WARNING)
    failed, look = [], queries.is_any_due

    def watched(*arguments, **bounds):
        try:
            return look(*arguments, **bounds)
        except DATABASE_ERRORS as error:
            failed.append(error)
            raise

    monkeypatch.setattr(queries, "is_any_due", watched)
    configure(rt, mail_outbox_dispatch_interval_secs=1)
    queue(rt)
    wait_for(lambda: only_row(rt).status == "sent")
    rename(rt, "mail_outbox", "elsewhere")
    for times in (1, 2, 3):
        rt.mailer.due.set()
        wait_for(lambda expected=times: len(failed) >= expected)
    rename(rt, "elsewhere", "mail_outbox")
    queue(rt, "second@example.com")
    wait_for(lambda: len(smtp.received) == 2)
    [wait] = [line for line in caplog.messages if line.startswith("mails wait: ")]
    assert "mail_outbox" in wait.partition("the database does not answer: ")[2]
    # Told at the end of the round, which the mail may have left before.
    wait_for(lambda: "mails are sent again: the database answers" in caplog.messages)
    assert caplog.messages.count("mails are sent again: the database answers") == 1


def test_a_stop_does_not_wait_for_the_next_look(rt, smtp, wait_for, monkeypatch):
    monkeypatch.setattr(dispatcher, "STOP_SECONDS", 60)
    configure(rt, mail_outbox_dispatch_interval_secs=3600)
    stop, thread = start(rt)
    queue(rt)
    wait_for(lambda: only_row(rt).status == "sent")
    stop()
    assert not thread.is_alive()
    queue(rt)
    assert sorted(row.status for row in rows(rt)) == ["queued", "sent"]


def test_a_stop_waits_for_a_server_that_has_the_content_and_has_not_answered(
    rt, smtp, wait_for, monkeypatch
):
    """Were the mail left to its lease, it would arrive a second time."""
    monkeypatch.setattr(dispatcher, "STOP_SECONDS", 60)
    arrived, may_answer = threading.Event(), threading.Event()

    def hold(_mail):
        arrived.set()
        may_answer.wait(30)

    smtp.on_mail = hold
    stop, thread = start(rt)
    queue(rt)
    assert arrived.wait(30)
    threading.Timer(0.5, may_answer.set).start()
    stop()
    assert may_answer.is_set()
    assert not thread.is_alive()
    assert only_row(rt).status == "sent"
    assert len(smtp.received) == 1


def test_a_stop_during_a_mail_waits_only_a_moment_and_leaves_it_to_the_lease(
    rt, wait_for, monkeypatch
):
    monkeypatch.setattr(dispatcher, "STOP_SECONDS", 0.5)
    with ScriptedSmtpServer(lambda _client: None, hangs=True) as server:
        use_smtp(rt, server.port)
        stop, thread = start(rt)
        queue(rt)
        wait_for(lambda: server.connections == 1)
        assert seconds_of(stop) >= 0.5
        assert thread.is_alive()  # for as long as the server is waited for
        assert only_row(rt).status == "sending"
    thread.join(30)
    assert not thread.is_alive()


# --- while somebody waits ------------------------------------------------------------------------


def send_code(rt):
    values = {"username": "Ada", "code": "12345678", "lang": "en"}
    values |= dict.fromkeys(("expires_in", "good_for"), "10 minutes")
    service.send_now(rt, Template.LOGIN_EMAIL_CODE, "ada@example.com", **values)


def test_a_mail_can_be_sent_at_once(rt, smtp):
    send_code(rt)
    [mail] = smtp.received
    assert str(mail.message["To"]) == "Ada <ada@example.com>"
    assert "12345678" in mail.message.get_body(("plain",)).get_content()
    assert rows(rt) == []
    [entry] = audit_rows(rt, "mail_send")
    assert json.loads(entry.details)["template_code"] == "login_email_code"
    assert "12345678" not in entry.details


def test_without_a_server_nothing_is_sent_at_once(rt):
    with pytest.raises(MailNotConfigured):
        send_code(rt)
    assert audit_rows(rt) == []


def test_a_failure_is_told_to_who_waits(rt, smtp):
    smtp.refusals["ada@example.com"] = "550 no such user"
    with pytest.raises(MailDeliveryFailed) as failure:
        send_code(rt)
    assert failure.value.public_message == "The mail could not be sent."
    assert len(audit_rows(rt, "mail_delivery_failed")) == 1


def test_every_mail_that_is_sent_or_given_up_is_counted(rt, smtp):
    def counted():
        return [
            REGISTRY.get_sample_value("mails_total", {"outcome": outcome}) or 0
            for outcome in ("sent", "failed")
        ]

    sent, failed = counted()
    queue(rt)
    dispatcher.drain(rt)
    send_code(rt)
    operators.send_test(rt, COMMAND_LINE, "ada@example.com")
    assert counted() == [sent + 3, failed]
    smtp.refusals["ada@example.com"] = "550 no such user"
    with pytest.raises(MailDeliveryFailed):
        send_code(rt)
    queue(rt)
    dispatcher.drain(rt)
    assert counted() == [sent + 3, failed + 2]
    smtp.refusals["ada@example.com"] = "450 not now"
    queue(rt)
    dispatcher.drain(rt)
    assert counted() == [sent + 3, failed + 2]


# --- without SMTP --------------------------------------------------------------------------------


def test_without_a_server_a_mail_becomes_a_private_file_and_its_link_is_logged(
    rt, mailbox, clock, caplog
):
    caplog.set_level(logging.INFO)
    configure(rt, public_site_url=["https://files.example"])
    queue(rt)
    dispatcher.drain(rt)
    [path] = rt.config.mail_dir.iterdir()
    row = only_row(rt)
    assert path.name == f"20260302T093000Z-password_reset-{row.id}.eml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    link = f"https://files.example/reset-password?token={TOKEN}"
    assert mailbox.link(mailbox.only()) == link
    assert any(
        str(path) in line and link in line
        for line in map(logging.LogRecord.getMessage, caplog.records)
    )
    assert (row.status, row.payload) == ("sent", None)
    assert len(audit_rows(rt, "mail_send")) == 1


def test_a_folder_that_cannot_be_written_is_tried_again(rt, clock):
    rt.config.mail_dir.write_text("in the way")
    queue(rt)
    dispatcher.drain(rt)
    row = only_row(rt)
    assert (row.status, row.attempts) == ("queued", 0)
    assert "File exists" in row.last_error
    rt.config.mail_dir.unlink()
    clock.advance(seconds=5)
    dispatcher.drain(rt)
    assert only_row(rt).status == "sent"


def test_a_disk_without_room_for_a_mail_is_named(make_app, small_disk):
    rt = make_app(mail_dir=small_disk).extensions["gatehouse"]
    fill(small_disk / "filler")
    queue(rt)
    dispatcher.drain(rt)
    assert only_row(rt).last_error == f"{small_disk}: No space left on device"


@pytest.mark.parametrize("missing", ["mail_smtp_host", "mail_from_address"])
def test_half_a_configuration_is_none(rt, sink, missing):
    use_smtp(rt, sink.port)
    assert service.is_smtp_configured(rt)
    configure(rt, **{missing: ""})
    assert not service.is_smtp_configured(rt)
    queue(rt)
    dispatcher.drain(rt)
    assert sink.received == []
    assert len(list(rt.config.mail_dir.iterdir())) == 1


@pytest.mark.both_databases
# --- upkeep --------------------------------------------------------------------------------------


def test_finished_mails_are_deleted_after_a_week_and_waiting_ones_never(rt, smtp, clock):
    smtp.refusals["bad@example.com"] = "550 no such user"
    queue(rt)
    queue(rt, "bad@example.com")
    dispatcher.drain(rt)
    queue(rt, "waiting@example.com")
    clock.advance(days=7)
    assert service.delete_finished(rt) == 0
    clock.advance(seconds=1)
    assert service.delete_finished(rt) == 2
    assert only_row(rt).recipient == "waiting@example.com"


@pytest.mark.both_databases
def test_waiting_mails_survive_rotated_keys(make_app, smtp, rt):
    app = make_app(secret_keys=())
    filed = app.extensions[web_runtime.EXTENSION]
    queue(filed)
    filed.keyring.rotate()
    with filed.transaction() as session:
        assert service.reseal(filed, session) == (1, 0)
        assert service.reseal(filed, session) == (0, 0)
    assert filed.secret_box.is_current(only_row(filed).payload)
    dispatcher.drain(filed)
    assert smtp.recipients == ["ada@example.com"]
    assert count(rt, OutboxMail, OutboxMail.payload.is_not(None)) == 0


def test_many_mails_are_encrypted_anew_page_by_page(make_app, monkeypatch):
    monkeypatch.setattr("app.store.bulk.BATCH_ROWS", 2)
    rt = make_app(secret_keys=()).extensions[web_runtime.EXTENSION]
    for number in range(5):
        queue(rt, f"ada{number}@example.com")
    rt.keyring.rotate()
    with rt.transaction() as session:
        assert service.reseal(rt, session) == (5, 0)


@pytest.mark.both_databases
def test_what_no_key_opens_is_left_alone(rt):
    queue(rt)
    change(rt, payload="v1:gone:AAAA:AAAA")
    with rt.transaction() as session:
        assert service.reseal(rt, session) == (0, 1)
    assert only_row(rt).payload == "v1:gone:AAAA:AAAA"


@pytest.mark.both_databases
def test_both_databases_find_the_next_mail_in_the_index(rt):
    """Else each of 100,000 mails would be looked at for every one that is sent."""
    now = rt.clock.now()
    with rt.transaction() as session:  # so many that no other way is as cheap
        for number in range(300):
            service.queue(
                rt, session, Template.PASSWORD_RESET_NOTICE, f"{number}@example.com", username="A"
            )
        session.execute(sa.update(OutboxMail).values(status=MailStatus.SENT))
    with rt.transaction() as session:
        session.execute(sa.text("ANALYZE"))
    with plans(rt) as told:
        dispatcher.drain(rt)
        for other in (None, "ada@example.com"):
            with rt.transaction() as session:
                queries.lease_next(session, "x", due=now, until=now, exclude_recipient=other)
    of_mails = [plan for plan in told if "mail_outbox" in plan]
    assert of_mails
    assert all("ix_mail_outbox_status_due_at" in plan for plan in of_mails)
    assert not any("SORT" in plan.upper() or "SCAN mail_outbox\n" in plan for plan in of_mails)


@pytest.mark.both_databases
def test_both_databases_find_notices_in_the_index(rt):
    now = rt.clock.now()
    with plans(rt) as told, rt.transaction() as session:
        queries.count_sign_ins(session, "x", now, now)
        queries.find_notice(session, "a@example.com", "x", now, now)
        queries.find_gathered(session, "a@example.com", "x", now)
    assert len([plan for plan in told if "ix_mail_outbox_notices" in plan]) == 2
    assert len([plan for plan in told if "ix_mail_outbox_sign_ins" in plan]) == 1
