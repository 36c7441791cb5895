"""What Prometheus is told when several workers answer (spec 04 §8.1)."""

import os
import signal

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.live import eventually

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
    empty = live.folder / "instance" / "metrics" / "counter_999999999.db"
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
