"""What the version before stored of accounts and passwords is read as it was meant."""

import pytest
import sqlalchemy as sa
from flask_migrate import downgrade, upgrade

from app.core.config import MIGRATIONS
from app.settings.models import SystemConfig
from app.users.models import PasswordHashKind
from tests.support.factories import change_user, column_of, make_user

pytestmark = pytest.mark.both_databases


@pytest.fixture
def from_before(app, rt):
    """Downgrade and upgrade, with `change` made in between."""

    def go(change=""):
        with app.app_context():
            downgrade(str(MIGRATIONS), "0018")
            with rt.transaction() as session:
                if change:
                    session.execute(sa.text(change))
            upgrade(str(MIGRATIONS))

    return go


def test_who_could_use_an_account_has_proven_its_address(rt, from_before):
    unconfirmed, waiting = make_user(rt), make_user(rt, activated=False)
    for user in (unconfirmed, waiting):
        change_user(rt, user, email_verified_at=None, proven_at=None)
    from_before()
    assert column_of(rt, unconfirmed, "proven_at") is not None
    assert column_of(rt, waiting, "proven_at") is None


@pytest.mark.parametrize(
    ("before", "now"),
    [("0", "0"), ("1", "60"), ("7", "60"), ("59", "60"), ("60", "60"), ("600", "600")],
)
def test_short_confirmations_last_a_minute(boss, rt, from_before, before, now):
    config = "/admin/config/auth_confirmation_max_age_secs"
    boss.put(config, {"value": "120"}).ok()
    key = "auth_confirmation_max_age_secs"
    from_before(f"UPDATE system_config SET value = '{before}' WHERE key = '{key}'")
    with rt.reading() as session:
        stored = session.scalars(sa.select(SystemConfig.value).where(SystemConfig.key == key)).one()
    assert stored == now


@pytest.mark.parametrize(
    "damaged",
    [
        "!$ of another time",
        "$scrypt$ln=2,r=8,pm1$c2FsdHNhbHRzYWx0c2FsdA$" + "A" * 43,
        "$argon2id$v=19$m=8,t=1,p=1$!!!$???",
    ],
)
def test_a_hash_that_cannot_be_read_refuses_as_any_other(api, rt, user, from_before, damaged):
    broken = make_user(rt)
    change_user(rt, broken, password_hash=damaged)
    from_before()
    with rt.reading() as session:
        assert session.scalars(sa.select(sa.func.count()).select_from(PasswordHashKind)).one() == 2
    for who in (user, broken):
        api.login(who, "wrong password").fails(401, "auth.credentials_failed")
    api.login(user).ok()
