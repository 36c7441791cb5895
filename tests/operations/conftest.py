"""Fixtures: the service as bin/serve runs it, a real browser, its metrics."""

from collections.abc import Iterator

import pytest
from flask import Flask
from prometheus_client import REGISTRY

from app.core.runtime import Runtime
from app.factory import create_app
from app.operations.service import Dependencies
from app.web import runtime as web_runtime
from app.web.metrics import WorkerProcesses
from tests.support import servers
from tests.support.initial_state import InitialState
from tests.support.launcher import Service

# What a family's samples are called after its name.
ENDS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


@pytest.fixture
def service(running: tuple[Service, InitialState, Runtime]) -> Service:
    """A service as nobody has used it yet."""
    service, initial_state, _ = running
    initial_state.restore()
    return service


@pytest.fixture
def origin(service: Service) -> str:
    return f"http://localhost:{service.port}"


@pytest.fixture(scope="session")
def idle_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """An application with a database of its own, no Redis, and no requests."""
    folder = tmp_path_factory.mktemp("idle")
    file = servers.sqlite_template(folder / "gatehouse.db")
    app = create_app(servers.cheap_config(folder, f"sqlite:///{file}", "redis://127.0.0.1:1"))
    yield app
    app.extensions[web_runtime.EXTENSION].close()


@pytest.fixture(scope="session")
def told(idle_app: Flask) -> dict[str, set[str]]:
    """The names of all samples that Prometheus is told, with the labels that each has."""
    found: dict[str, set[str]] = {}
    for collector in set(REGISTRY._collector_to_names):
        labels = set(getattr(collector, "_labelnames", ()))
        for family in collector.collect():
            for end in ENDS.get(family.type, ()):
                found[family.name + end] = labels | {"le"} if end == "_bucket" else labels
    for collector in (Dependencies(idle_app.extensions[web_runtime.EXTENSION]), WorkerProcesses()):
        for family in collector.collect():
            for sample in family.samples:
                found[sample.name] = set(sample.labels)
    return found
