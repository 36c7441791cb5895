"""An application that trusts the suite's own certificate authority, and servers to send to."""

import pytest
import sqlalchemy as sa

from app.core.smtp.mailer import Mailer
from app.mail import service
from app.mail.models import OutboxMail
from app.mail.templates import Template
from tests.support.commands import CommandLine
from tests.support.factories import configure
from tests.support.smtp import HOST, Authority, Sink

TOKEN = "cv_a-token-of-a-mail-0123456789"


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def app(make_app, authority):
    return make_app(mailer=Mailer(tls=authority.client()))


@pytest.fixture
def line(app):
    return CommandLine(app)


@pytest.fixture
def sink():
    """An SMTP server without TLS and log-in."""
    with Sink() as server:
        yield server


@pytest.fixture
def smtp(rt, sink):
    """The application sends to `sink`."""
    use(rt, sink.port)
    return sink


def use(rt, port, *, tls=False, **settings):
    """Set an SMTP server."""
    configure(
        rt,
        mail_smtp_host=HOST,
        mail_smtp_port=port,
        mail_from_address="files@files.example",
        mail_security=tls,
        **{f"mail_smtp_{name}": value for name, value in settings.items()},
    )


def queue(rt, recipient="ada@example.com", template=Template.PASSWORD_RESET, **values):
    """Put a mail into the outbox."""
    values = values or {"username": "Ada", "token": TOKEN}
    with rt.transaction() as session:
        service.queue(rt, session, template, recipient, **values)


def rows(rt):
    """Return the outbox, the oldest first."""
    statement = sa.select(*OutboxMail.__table__.columns).order_by(OutboxMail.created_at)
    with rt.reading() as connection:
        return connection.execute(statement).all()


def only_row(rt):
    [row] = rows(rt)
    return row
