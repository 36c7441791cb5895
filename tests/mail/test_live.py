"""The outbox of the real service."""

import os
import signal
import threading
import time

import sqlalchemy as sa

from app.mail.models import OutboxMail
from tests.support.factories import configure
from tests.support.live import eventually
from tests.support.mailbox import Mailbox
from tests.support.outbox import queue, rows, use_smtp
from tests.support.smtp import RecordingSmtpServer, ScriptedSmtpServer

# In seconds; the next look is an hour away.
AT_ONCE = 60


def register(live, name):
    with live.client() as client:
        body = {"username": name, "email": f"{name}@example.com", "password": "a good password"}
        client.post("/auth/register", body).ok(201)


def test_a_request_wakes_the_sender_of_its_process(live, root):
    with RecordingSmtpServer() as sink:
        use_smtp(live.rt, sink.port)
        configure(live.rt, mail_outbox_dispatch_interval_secs=3600)
        with live.client_on_each_worker() as clients:
            for number, client in enumerate(clients):
                body = {
                    "username": f"user{number}",
                    "email": f"user{number}@example.com",
                    "password": "a good password",
                }
                client.post("/auth/register", body).ok(201)
                eventually(lambda n=number: len(sink.received) > n, "the mail", AT_ONCE)


def test_without_smtp_the_file_is_there_at_once(live, root):
    configure(
        live.rt, auth_register_activation_enabled="true", mail_outbox_dispatch_interval_secs=3600
    )
    mailbox = Mailbox(live.folder / "instance" / "mail")
    mailbox.read()
    register(live, "ada")
    [mail] = eventually(mailbox.read, "the file", AT_ONCE)
    assert mail["To"] == "ada@example.com"
    assert mailbox.token(mail).startswith("cv_")


def test_killed_between_sending_and_marking_the_service_repeats_that_mail_only(live, root):
    with RecordingSmtpServer() as sink:
        use_smtp(live.rt, sink.port)
        configure(live.rt, mail_outbox_dispatch_interval_secs=1)
        first, killed = threading.Lock(), threading.Event()

        def kill(_mail):
            # Or more: the other worker's mail may have come in before this looks. And both may look
            # at once, when a second kill would find nobody, or whom the test has started again.
            if len(sink.received) >= 3 and first.acquire(blocking=False):
                os.killpg(live.pid, signal.SIGKILL)
                killed.set()

        sink.on_mail = kill
        for number in range(6):
            queue(live.rt, f"user{number}@example.com")
        eventually(killed.is_set, "the kill")
        live.kill()
        with live.rt.transaction() as session:  # the lease runs out
            session.execute(
                sa.update(OutboxMail)
                .where(OutboxMail.status == "sending")
                .values(due_at=live.rt.clock.now())
            )
        live.restart()
        eventually(lambda: {row.status for row in rows(live.rt)} == {"sent"}, "all mails")
        repeated = [r for r in set(sink.recipients) if sink.recipients.count(r) > 1]
        # Each of the two workers may have had one mail in hand.
        assert len(repeated) <= 2
        assert len(sink.recipients) == 6 + len(repeated)


def test_a_stop_waits_for_the_answer_to_a_mails_content(live, root):
    with RecordingSmtpServer() as sink:
        use_smtp(live.rt, sink.port)
        configure(live.rt, mail_outbox_dispatch_interval_secs=1)
        sink.on_mail = lambda _mail: time.sleep(3)
        queue(live.rt)
        eventually(lambda: sink.received, "the content")
        stopped = set(live.workers())
        for worker in stopped:
            os.kill(worker, signal.SIGTERM)
        eventually(lambda: not stopped & set(live.workers()), "the end of the workers")
        assert [row.status for row in rows(live.rt)] == ["sent"]
        assert len(sink.received) == 1
    live.wait()


def test_a_stop_does_not_wait_for_mail(live, root):
    configure(live.rt, mail_outbox_dispatch_interval_secs=1)

    def drip(client):
        """Let no wait for an answer end, so that the mail is in hand for the 45 s of an attempt."""
        while True:
            client.sendall(b"2")
            time.sleep(0.2)

    with ScriptedSmtpServer(drip) as server:
        use_smtp(live.rt, server.port)
        queue(live.rt)
        eventually(lambda: server.connections, "the mail in hand")
        stopped = set(live.workers())
        for worker in stopped:
            os.kill(worker, signal.SIGTERM)
        eventually(lambda: not stopped & set(live.workers()), "the end of the workers")
        # After its attempt it would have been put off.
        assert [row.status for row in rows(live.rt)] == ["sending"]
    live.wait()
