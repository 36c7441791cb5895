"""The actors that take part in a run."""

from deploy.bed.actors.actor import Actor
from deploy.bed.actors.avatar_user import AvatarUser
from deploy.bed.actors.listener import Listener
from deploy.bed.actors.mfa_user import MfaUser
from deploy.bed.actors.publisher import Publisher
from deploy.bed.actors.registrar import Registrar
from deploy.bed.actors.regular_user import RegularUser
from deploy.bed.bed import Bed
from deploy.bed.ledger import Ledger
from tests.support.challenge import give_totp
from tests.support.factories import configure, make_user

# How long a busy machine may need after a fault until every stream has reported its gaps.
LATE_SECONDS = 15.0


def create_actors(bed: Bed, ledger: Ledger, hold: float) -> list[Actor]:
    """Return the actors of a run, with accounts of their own; no fault lasts longer than `hold`."""
    rt = bed.rt
    make_user(rt, username="root", role="admin")
    # So that a registration also writes a token and a mail.
    configure(rt, auth_register_activation_enabled="true")
    mfa_user, publisher = make_user(rt), Publisher(bed, ledger)
    patience = hold + LATE_SECONDS
    return [
        *(RegularUser(bed, ledger, make_user(rt)) for _ in range(4)),
        MfaUser(bed, ledger, mfa_user, give_totp(rt, mfa_user)),
        Registrar(bed, ledger, 1),
        AvatarUser(bed, ledger, make_user(rt)),
        publisher,
        *(Listener(bed, ledger, make_user(rt), publisher, patience) for _ in range(2)),
    ]
