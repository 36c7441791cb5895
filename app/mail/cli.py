"""`flask mail`: the outbox, and whether mail leaves at all."""

from app.mail import models  # noqa: F401
from app.web.cli import Commands

group = Commands("mail", help="The outbox, and whether mail leaves at all.")
