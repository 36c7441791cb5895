"""What Prometheus is told when several workers answer."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.mail import dispatcher
from app.mail import service as mail
from app.mail.templates import Template
from tests.support.factories import make_user
from tests.support.images import BLUE, plain, upload
from tests.support.live import eventually
from tests.support.streams import OpenStream

# Every name but those of processes, with its labels.
NAMED = {
    "http_requests_total": {"method", "route", "status"},
    "http_request_duration_seconds": {"method", "route"},
    "db_queries_total": set(),
    "auth_events_total": {"action", "status", "reason"},
    "avatar_uploads_total": {"outcome"},
    "avatar_source_bytes": set(),
    "avatar_render_duration_seconds": set(),
    "avatar_render_wait_duration_seconds": set(),
    "avatar_render_waiting": set(),
    "avatar_render_active": set(),
    "avatar_publish_duration_seconds": set(),
    "avatar_rejections_total": {"code"},
}
HISTOGRAMS = {name for name in NAMED if name.endswith(("_seconds", "_bytes"))}
PROCESS = {
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_start_time_seconds",
    "process_open_fds",
    "process_max_fds",
}


def scraped(client):
    """Return every sample as {name: {labels: value}}."""
    text = client.get("/health/metrics").text
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


def by_worker(samples, name):
    return {int(dict(labels)["pid"]): value for labels, value in samples[name].items()}


def value(samples, name, **labels):
    return samples.get(name, {}).get(frozenset(labels.items()), 0)


def labels_of(samples, name):
    """Return the sets of label names that a metric's samples have, without a histogram's own."""
    if name in HISTOGRAMS:
        buckets = {frozenset(dict(labels)) for labels in samples[f"{name}_bucket"]}
        counts = {frozenset(dict(labels)) for labels in samples[f"{name}_count"]}
        assert buckets == {labels | {"le"} for labels in counts}
        return counts
    return {frozenset(dict(labels)) for labels in samples[name]}


@pytest.fixture
def user(live):
    make_user(live.rt, username="root", role="admin")
    return make_user(live.rt)


def test_every_metric_of_the_interface_is_there_with_its_labels(live, user):
    with live.client() as client:
        client.login(user).ok()
        upload(client, plain(BLUE)).ok()
        upload(client, b"no picture").fails(400, "file.type_not_allowed")
        samples = scraped(client)
    for name, labels in NAMED.items():
        assert labels_of(samples, name) == {frozenset(labels)}, name


def test_uploads_have_a_series_for_every_outcome_from_the_start(api):
    outcomes = {dict(labels)["outcome"] for labels in scraped(api)["avatar_uploads_total"]}
    assert outcomes == {"applied", "superseded", "failed"}


def test_counts_are_the_sum_over_workers_and_outlive_them(live, user):
    """A counter that fell with a worker would be a spike of requests to Prometheus."""
    me = {"method": "GET", "route": "/api/v1/auth/me"}
    login = {"action": "login.log_in", "status": "success", "reason": ""}
    wrong = {"action": "login.log_in", "status": "failure", "reason": "auth.credentials_failed"}

    def counted(client):
        samples = scraped(client)
        return [
            value(samples, "http_requests_total", **me, status="200"),
            value(samples, "http_request_duration_seconds_count", **me),
            value(samples, "http_request_duration_seconds_bucket", **me, le="+Inf"),
            value(samples, "auth_events_total", **login),
            value(samples, "auth_events_total", **wrong),
            value(samples, "avatar_uploads_total", outcome="applied"),
            value(samples, "avatar_source_bytes_count"),
            value(samples, "avatar_publish_duration_seconds_count"),
        ]

    with live.client_on_each_worker() as clients:
        before = counted(clients[0])
        queries = value(scraped(clients[0]), "db_queries_total")
        for client in clients:
            client.login(user).ok()
            client.login(replace(user, password="not the password")).fails(
                401, "auth.credentials_failed"
            )
            upload(client, plain(BLUE)).ok()
            for _ in range(3):
                client.me().ok()
        after = [b + n for b, n in zip(before, (6, 6, 6, 2, 2, 2, 2, 2), strict=True)]
        assert [counted(client) for client in clients] == [after] * len(clients)
        assert value(scraped(clients[1]), "db_queries_total") >= queries + 2 * 6
        killed = clients[0].worker()
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: killed not in live.workers(), "the end of the worker")
    live.wait()
    with live.client() as client:
        assert counted(client) == after
        client.login(user).ok()
        client.me().ok()
        assert counted(client)[0] == after[0] + 1


def test_a_gauge_forgets_a_dead_worker(live, user):
    def streams(client):
        return value(scraped(client), "storage_event_streams")

    with live.client_on_each_worker() as clients:
        clients[0].login(user).ok()
        clients[1].cookies = dict(clients[0].cookies)
        eventually(lambda: streams(clients[0]) == 0, "the end of others' streams")
        with live.client_on_each_worker() as others:
            for other in others:
                other.cookies = dict(clients[0].cookies)
                OpenStream(other, shares=True).opened()
            assert streams(clients[1]) == len(others)
            os.kill(clients[0].worker(), signal.SIGKILL)
            eventually(lambda: streams(clients[1]) == 1, "the gauge of the living")
    live.wait()


def test_requests_are_counted_over_all_workers(live):
    health = frozenset({("method", "GET"), ("route", "/health"), ("status", "200")})
    with live.client_on_each_worker() as clients:
        before = scraped(clients[0])["http_requests_total"][health]
        for client in clients:
            client.get("/health")
        assert scraped(clients[0])["http_requests_total"][health] == before + len(clients)


def test_each_worker_tells_its_process_metrics_whoever_is_asked(live):
    with live.client_on_each_worker() as clients:
        for client in clients:
            samples = scraped(client)
            assert {name for name in samples if name.startswith("process_")} == PROCESS
            for name in PROCESS:
                assert set(by_worker(samples, name)) == set(live.workers())


def test_process_metrics_are_those_of_the_system(live):
    with live.client() as client:
        samples = scraped(client)
    for pid in live.workers():
        process = psutil.Process(pid)
        told = {name: by_worker(samples, name)[pid] for name in PROCESS}
        assert told["process_start_time_seconds"] == pytest.approx(process.create_time(), abs=2)
        assert told["process_resident_memory_bytes"] == pytest.approx(
            process.memory_info().rss, rel=0.5
        )
        assert told["process_open_fds"] == pytest.approx(process.num_fds(), abs=5)
        assert told["process_max_fds"] == process.rlimit(psutil.RLIMIT_NOFILE)[0]
        times = process.cpu_times()
        assert 0 <= told["process_cpu_seconds_total"] <= times.user + times.system


def test_a_dead_worker_is_told_no_longer_and_its_successor_is(live):
    killed, kept = live.workers()
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: killed not in live.workers(), "the end of the worker")
    live.wait()
    with live.client() as client:
        told = set(by_worker(scraped(client), "process_start_time_seconds"))
    assert kept in told
    assert killed not in told
    assert told == set(live.workers())


def test_a_file_that_a_killed_worker_left_empty_hides_nothing(live):
    maps = [Path(one.path) for one in psutil.Process(live.workers()[0]).memory_maps()]
    folder = next(path.parent for path in maps if path.match("counter_*.db"))
    empty = folder / "counter_999999999.db"
    empty.touch()
    try:
        with live.client() as client:
            assert "http_requests_total" in scraped(client)
    finally:
        empty.unlink()


def test_a_single_process_tells_of_itself_without_a_label(api):
    [(labels, value)] = scraped(api)["process_start_time_seconds"].items()
    assert not labels
    assert value == pytest.approx(psutil.Process().create_time(), abs=2)


def test_what_fails_is_counted_as_a_failure_whoever_refuses_it(app, api, monkeypatch):
    """Flask itself refuses some requests, and nobody foresaw others."""
    name, login = "auth_events_total", {"action": "login.log_in"}

    def failures(reason):
        return value(scraped(api), name, **login, status="failure", reason=reason)

    before = value(scraped(api), name, **login, status="success", reason="")
    bad, broken = failures("bad_request"), failures("internal_server_error")
    api.post("/auth/login", b"{").fails(400, "bad_request")
    with monkeypatch.context() as patch:
        patch.setitem(app.view_functions, "login.log_in", lambda **_: 1 / 0)
        api.post("/auth/login", {}).fails(500, "internal_server_error")
    assert failures("bad_request") == bad + 1
    assert failures("internal_server_error") == broken + 1
    assert value(scraped(api), name, **login, status="success", reason="") == before


def test_what_a_link_or_a_callback_came_to_is_counted(api):
    confirm, callback = "contact_verification.confirm", "external_auth.callback"
    link = "/auth/contact-verification/confirm?token=cv_nothing"
    back = "/auth/external-auth/callback?state=nothing&code=x"

    def failures():
        found = scraped(api).get("auth_events_total", {})
        named = ((dict(labels), count) for labels, count in found.items())
        return {
            (told["action"], told["reason"]): count
            for told, count in named
            if told["status"] == "failure"
        }

    before = failures()
    assert api.get(link).status == 302
    redirected = api.get(back)
    assert redirected.status == 302
    code = parse_qs(urlsplit(redirected.headers["Location"]).query)["code"][0]
    after = failures()
    for key in ((confirm, "invalid"), (callback, code)):
        assert after[key] == before.get(key, 0) + 1


def test_database_redis_and_outbox_are_looked_up(rt, api, clock):
    with rt.transaction() as session:
        mail.queue(rt, session, Template.PASSWORD_RESET_NOTICE, "ada@example.com", username="ada")
    clock.advance(minutes=3)
    samples = scraped(api)
    for dependency in ("database", "redis"):
        assert value(samples, "dependency_up", dependency=dependency) == 1
        assert value(samples, "dependency_response_seconds", dependency=dependency) >= 0
    told = {dict(labels)["status"]: n for labels, n in samples["mail_outbox_mails"].items()}
    assert told == {"queued": 1, "sending": 0, "failed": 0}
    assert value(samples, "mail_outbox_due_seconds") == 180
    assert value(samples, "mail_outbox_oldest_seconds") == 180
    dispatcher.drain(rt)
    samples = scraped(api)
    assert value(samples, "mail_outbox_mails", status="queued") == 0
    assert value(samples, "mail_outbox_due_seconds") == 0
    assert value(samples, "mail_outbox_oldest_seconds") == 0


def test_the_oldest_mail_tells_of_a_server_that_fails(rt, api, clock):
    """Each attempt makes the mail due later, so that it is never due for long."""
    rt.config.mail_dir.write_text("in the way")
    with rt.transaction() as session:
        mail.queue(rt, session, Template.PASSWORD_RESET_NOTICE, "ada@example.com", username="ada")
    for _ in range(30):
        clock.advance(seconds=60)
        dispatcher.drain(rt)
    samples = scraped(api)
    assert value(samples, "mail_outbox_due_seconds") == 0
    assert value(samples, "mail_outbox_oldest_seconds") == 1800
    assert value(samples, "mail_outbox_mails", status="queued") == 1
