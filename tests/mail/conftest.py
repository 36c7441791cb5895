"""An application that trusts the suite's own certificate authority, and servers to send to."""

import pytest

from app.mail.mailer import Mailer
from tests.support.outbox import use_smtp
from tests.support.smtp import Authority, RecordingSmtpServer


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def app(make_app, authority):
    return make_app(mailer=Mailer(tls=authority.client()))


@pytest.fixture
def sink():
    """An SMTP server without TLS and log-in."""
    with RecordingSmtpServer() as server:
        yield server


@pytest.fixture
def smtp(rt, sink):
    """The application sends to `sink`."""
    use_smtp(rt, sink.port)
    return sink
