"""Lists are searched in any letter case, of all letters: on PostgreSQL even with the locale C."""

from urllib.parse import quote

import pytest
import sqlalchemy as sa

from app.core.access import COMMAND_LINE
from app.core.texts import folded
from app.store.search import folded_column, has_part
from app.team_admin import service as teams
from tests.support.factories import make_user

pytestmark = pytest.mark.both_databases

# A name, and what is typed to find it.
FOUND = [
    ("Ömer", "Ömer"),
    ("Ömer", "ömer"),
    ("Ömer", "ÖM"),
    ("Ömer", "O\u0308MER"),  # as macOS types it
    ("O\u0308mer", "ömer"),
    ("Straße 5", "STRASSE"),
    ("STRASSE", "straße"),
    ("Große", "GROẞE"),
    ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
    ("ДАРЬЯ", "дарья"),
    ("Eﬃe", "EFF"),
    ("李娜", "娜"),
    ("Café 100%_", "É 100%_"),
    ("crew", "CREW"),
]
NOT_FOUND = [("Ömer", "Omer"), ("Café", "%"), ("Café", "_"), ("ДАРЬЯ", "дарю"), ("Ömer", "ömers")]


@pytest.mark.sqlite
@pytest.mark.parametrize(("name", "typed"), FOUND)
def test_the_folded_form_of_a_name_has_that_of_each_part(name, typed):
    assert folded(typed) in folded(name)


@pytest.mark.sqlite
def test_a_name_that_is_folded_already_is_not_kept_twice():
    kept = [folded_column(name) for name in (None, "", "crew", "李娜", "Crew", "STRASSE")]
    assert kept == [None, None, None, None, "crew", "strasse"]


def test_databases_find_as_the_rule_says(rt):
    with rt.reading() as session:
        for name, typed, expected in (
            *((*pair, True) for pair in FOUND),
            *((*pair, False) for pair in NOT_FOUND),
        ):
            columns = sa.literal(name), sa.literal(folded_column(name), sa.Text)
            found = session.scalar(sa.select(has_part(typed, *columns)))
            assert bool(found) is expected, (name, typed)


def test_every_list_is_searched_by_it(boss, browser, rt, user):
    browser.login(user).ok()
    browser.patch("/auth/profile", {"display_name": "Ömer Große"}).ok()
    team = teams.create(rt, COMMAND_LINE, "Ärzte Süd", user.username)
    teams.create(rt, COMMAND_LINE, "Others", user.username)
    boss.patch(f"/admin/teams/{team.id}", {"description": "changed"}).ok()
    make_user(rt, username="Anna", email="anna.k@example.net")
    boss.post("/admin/users/invitations", {"email": "kim@example.org"}).ok(201)
    for path, typed, name, expected in (
        ("/admin/users", "ömer GROSSE", "id", [user.id]),
        ("/admin/users", "aNNa", "username", ["Anna"]),
        ("/admin/users", "ANNA.\u212a", "username", ["Anna"]),  # the Kelvin sign
        ("/admin/teams", "äRZTE sü", "name", ["Ärzte Süd"]),
        ("/admin/audit-logs", "äRZTE", "entity_name", ["Ärzte Süd"] * 2),
        (f"/admin/teams/{team.id}/members", user.username.upper(), "user_id", [user.id]),
        ("/admin/users/invitations", "\u212aIM", "email", ["kim@example.org"]),
    ):
        page = boss.get(f"{path}?keyword={quote(typed)}").ok()
        assert [one[name] for one in page["items"]] == expected, (path, typed)
    assert [one["name"] for one in browser.get(f"/teams?keyword={quote('ÄRZTE')}").ok()] == [
        "Ärzte Süd"
    ]
    boss.patch(f"/admin/teams/{team.id}", {"name": "Zürich"}).ok()
    assert boss.get(f"/admin/teams?keyword={quote('ÄRZTE')}").ok()["total"] == 0
    assert boss.get(f"/admin/teams?keyword={quote('ZÜRICH')}").ok()["total"] == 1
    browser.patch("/auth/profile", {"display_name": ""}).ok()
    assert boss.get(f"/admin/users?keyword={quote('ömer')}").ok()["total"] == 0


def test_the_outbox_is_searched_by_address(boss, user, api):
    api.post("/auth/password/reset/request", {"email": user.email}).ok()
    page = boss.get(f"/admin/mail/outbox?recipient={user.email.upper()}").ok()
    assert [mail["recipient"] for mail in page["items"]] == [user.email]
