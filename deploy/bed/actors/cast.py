"""All the clients of a storm."""

from deploy.bed.actors.actor import Actor
from deploy.bed.actors.codes import MailedCodeUser, MfaUser
from deploy.bed.actors.events import Listener, Publisher
from deploy.bed.actors.pages import PageUser, Visitor
from deploy.bed.actors.people import Administrator, AvatarUser, Registrar, RegularUser
from deploy.bed.actors.programs import Program
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.factories import configure, make_user

# How long a busy machine may need after a fault until every stream has reported its gaps.
LATE_SECONDS = 15.0


def create_actors(bed: Bed, ledger: Ledger, hold: float) -> list[Actor]:
    """Return the actors of a run, with accounts of their own; no fault lasts longer than `hold`."""
    make_user(bed.rt, username="root", role="admin")
    # So that a registration also writes a token and a mail.
    configure(bed.rt, auth_register_activation_enabled="true")
    publisher = Publisher(bed, ledger)
    return [
        *(RegularUser(bed, ledger) for _ in range(3)),
        *(kind(bed, ledger) for kind in (PageUser, MfaUser, MailedCodeUser, Program)),
        *(kind(bed, ledger) for kind in (Registrar, AvatarUser, Visitor)),
        *(Administrator(bed, ledger) for _ in range(2)),
        publisher,
        *(Listener(bed, ledger, publisher, hold + LATE_SECONDS) for _ in range(2)),
    ]
