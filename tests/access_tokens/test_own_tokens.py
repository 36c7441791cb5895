"""/auth/tokens: what people do with their own access tokens."""

import json

import pytest

from tests.support.factories import audit_rows, bearer_of, configure, make_user
from tests.support.mailbox import text_of
from tests.support.programs import PATH, add_token, program, row_of

pytestmark = pytest.mark.usefixtures("ready")
NEW = {"name": "Backup", "scopes": ["profile:read"], "expires_in_days": 30}


@pytest.fixture
def ready(signed_in):
    """Nothing more than a session, which is fresh."""


def created(client, **members):
    return client.post(PATH, {**NEW, **members}).ok(201)


@pytest.mark.both_databases
def test_a_token_is_made_listed_used_renamed_and_removed(app, signed_in, user, rt):
    made = created(signed_in, scopes=["files", "profile:read", "files"])
    text, info = made["token"], made["info"]
    assert info == {
        "id": info["id"],
        "name": "Backup",
        "prefix": text[:8],
        "scopes": ["profile:read", "files"],
        "created_at": info["created_at"],
        "expires_at": info["expires_at"],
        "last_used_at": None,
        "last_used_ip": None,
    }
    assert signed_in.get(PATH).ok() == [info]
    me = program(app, text).me(address="192.0.2.7").ok()
    assert me["username"] == user.username
    assert me["token"] == {"id": info["id"], "name": "Backup", "scopes": ["profile:read", "files"]}
    renamed = signed_in.patch(f"{PATH}/{info['id']}", {"name": " Nightly backup "}).ok()
    assert renamed["name"] == "Nightly backup"
    [listed] = signed_in.get(PATH).ok()
    assert (listed["last_used_ip"], listed["name"]) == ("192.0.2.7", "Nightly backup")
    assert listed["last_used_at"] is not None
    assert signed_in.delete(f"{PATH}/{info['id']}").ok() is None
    program(app, text).me().fails(401, "auth.token_invalid")
    assert signed_in.get(PATH).ok() == []
    assert row_of(rt, info["id"]) is None


def test_only_its_digest_is_stored(signed_in, rt):
    made = created(signed_in)
    row = row_of(rt, made["info"]["id"])
    assert made["token"] not in str(tuple(row))
    assert row.prefix == made["token"][:8]


def test_the_newest_comes_first_and_everybody_sees_their_own(app, rt, signed_in):
    for name in ("one", "two"):
        created(signed_in, name=name)
    assert [token["name"] for token in signed_in.get(PATH).ok()] == ["two", "one"]
    assert bearer_of(rt, app, make_user(rt)).get(PATH).ok() == []


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"name": None}, "name"),
        ({"name": 5}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": None}, "scopes"),
        ({"scopes": "profile"}, "scopes"),
        ({"scopes": ["profile", "root"]}, "scopes"),
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"expires_in_days": -1}, "expires_in_days"),
        ({"expires_in_days": "30"}, "expires_in_days"),
        ({"expires_in_days": 1.5}, "expires_in_days"),
        ({"expires_in_days": True}, "expires_in_days"),
        ({"expires_in_days": 366}, "from 1 to 365"),
        ({"expires_in_days": None}, "from 1 to 365"),
        ({"name": " "}, "64 characters"),
        ({"name": "n" * 65}, "64 characters"),
        ({"name": "new\nline"}, "control"),
    ],
)
def test_what_is_wrong_is_named(signed_in, members, says):
    answer = signed_in.post(PATH, {**NEW, **members}).fails(400, "bad_request")
    assert says in answer.json["msg"]
    assert signed_in.get(PATH).ok() == []


@pytest.mark.parametrize("name", list(NEW))
def test_every_member_must_be_given(signed_in, name):
    body = {key: value for key, value in NEW.items() if key != name}
    assert name in signed_in.post(PATH, body).fails(400, "bad_request").json["msg"]


def test_64_characters_of_any_script_are_a_name(signed_in):
    assert created(signed_in, name=" " + "ö" * 64)["info"]["name"] == "ö" * 64


def test_a_name_is_unique_whatever_its_case_and_for_each_owner(app, rt, signed_in):
    created(signed_in, name="Straße")
    answer = signed_in.post(PATH, {**NEW, "name": "STRASSE "}).fails(409, "conflict")
    assert "this name" in answer.json["msg"]
    created(bearer_of(rt, app, make_user(rt)), name="Straße")
    other = created(signed_in, name="other")["info"]["id"]
    signed_in.patch(f"{PATH}/{other}", {"name": "strasse"}).fails(409, "conflict")
    signed_in.patch(f"{PATH}/{other}", {"name": "OTHER"}).ok()


def test_fifty_are_the_most(rt, signed_in, user):
    for _ in range(49):
        add_token(rt, user, "profile")
    created(signed_in)
    answer = signed_in.post(PATH, {**NEW, "name": "51"}).fails(409, "conflict")
    assert "50" in answer.json["msg"]
    removed = signed_in.delete(PATH).ok()
    assert removed == {"removed": 50}
    created(signed_in)


def test_an_expired_one_is_listed_for_30_days_and_holds_neither_place_nor_name(
    rt, signed_in, user, clock
):
    made = created(signed_in, expires_in_days=1)["info"]
    for _ in range(49):
        add_token(rt, user, "profile")
    clock.advance(days=1)
    signed_in.login(user).ok()
    assert created(signed_in)["info"]["id"] != made["id"]
    signed_in.patch(f"{PATH}/{made['id']}", {"name": "last year's"}).ok()
    clock.advance(days=29, hours=23)
    signed_in.login(user).ok()
    assert made["id"] in [token["id"] for token in signed_in.get(PATH).ok()]
    clock.advance(hours=1)
    signed_in.login(user).ok()
    assert made["id"] not in [token["id"] for token in signed_in.get(PATH).ok()]


def test_what_the_setting_allows_concerns_new_tokens_only(app, rt, signed_in):
    text = created(signed_in, expires_in_days=365)["token"]
    configure(rt, auth_access_token_max_days=7)
    signed_in.post(PATH, {**NEW, "name": "8", "expires_in_days": 8}).fails(400, "bad_request")
    created(signed_in, name="7", expires_in_days=7)
    program(app, text).me().ok()


def test_without_a_limit_it_may_last_for_ever_or_ten_years(app, rt, signed_in):
    configure(rt, auth_access_token_max_days=0)
    made = created(signed_in, expires_in_days=None)
    assert made["info"]["expires_at"] is None
    assert program(app, made["token"]).me().ok()["access_token_expires_at"] is None
    created(signed_in, name="long", expires_in_days=3650)
    answer = signed_in.post(PATH, {**NEW, "name": "longer", "expires_in_days": 3651})
    answer.fails(400, "bad_request")


def test_ids_are_never_used_again(signed_in):
    first = created(signed_in)["info"]["id"]
    signed_in.delete(f"{PATH}/{first}").ok()
    assert created(signed_in)["info"]["id"] > first


def test_anothers_is_as_unknown_as_one_that_never_was(rt, signed_in):
    _, theirs = add_token(rt, make_user(rt), "profile")
    for token_id in (theirs, 4711, "abc", "0", "-1", 2**63):
        signed_in.patch(f"{PATH}/{token_id}", {"name": "mine"}).fails(404, "not_found")
        signed_in.delete(f"{PATH}/{token_id}").fails(404, "not_found")
    assert row_of(rt, theirs) is not None


def test_a_rename_knows_the_name_only(signed_in):
    info = created(signed_in)["info"]
    body = {"name": "x", "scopes": ["admin"], "expires_in_days": 300}
    assert signed_in.patch(f"{PATH}/{info['id']}", body).ok() == {**info, "name": "x"}
    for wrong in ({}, {"name": None}, {"name": ""}):
        signed_in.patch(f"{PATH}/{info['id']}", wrong).fails(400, "bad_request")


def test_only_a_fresh_session_makes_one_whatever_the_setting_says(rt, signed_in, clock):
    made = created(signed_in)["info"]
    clock.advance(minutes=16)
    signed_in.refresh().ok()
    signed_in.post(PATH, NEW).fails(412, "precondition_failed")
    signed_in.patch(f"{PATH}/{made['id']}", {"name": "renamed"}).ok()
    signed_in.delete(f"{PATH}/{made['id']}").ok()


def test_switched_off_nothing_is_made_or_opened_and_all_is_seen_and_ended(app, rt, signed_in):
    made = created(signed_in)
    client = program(app, made["token"])
    configure(rt, auth_access_tokens_enabled=False)
    signed_in.post(PATH, NEW).fails(403, "forbidden")
    client.me().fails(401, "auth.token_invalid")
    assert len(signed_in.get(PATH).ok()) == 1
    signed_in.patch(f"{PATH}/{made['info']['id']}", {"name": "renamed"}).ok()
    configure(rt, auth_access_tokens_enabled=True)
    client.me().ok()
    configure(rt, auth_access_tokens_enabled=False)
    signed_in.delete(f"{PATH}/{made['info']['id']}").ok()
    assert signed_in.delete(PATH).ok() == {"removed": 0}


@pytest.mark.parametrize("scope", ["admin", "admin:read"])
def test_a_scope_of_administration_is_for_administrators(rt, signed_in, browser, scope):
    body = {**NEW, "scopes": ["profile", scope]}
    signed_in.post(PATH, body).fails(403, "auth.admin_required")
    browser.login(make_user(rt, role="admin")).ok()
    assert created(browser, **body)["info"]["scopes"] == ["profile", scope]


def test_the_owner_learns_of_each_by_mail(signed_in, user, mailbox):
    created(signed_in, scopes=["files", "events"])
    [mail] = mailbox.read()
    assert mail["To"] == user.email
    text = " ".join(text_of(mail).split())
    assert "“Backup” (scopes: events, files; valid until 20" in text


def test_one_for_administration_is_told_to_every_other_active_administrator(rt, browser, mailbox):
    boss, other = make_user(rt, role="admin"), make_user(rt, role="admin")
    make_user(rt, role="admin", status="disabled", username="asleep")
    browser.login(boss).ok()
    created(browser)
    assert [mail["To"] for mail in mailbox.read()] == [boss.email]
    created(browser, name="root", scopes=["admin:read"])
    told = {mail["To"]: text_of(mail) for mail in mailbox.read() if "root" in text_of(mail)}
    assert set(told) == {boss.email, other.email, "root@example.com"}  # it set the service up
    told = " ".join(told[other.email].split())
    assert f"for {boss.username}: “root” (scopes: admin:read" in told
    assert f"by {boss.username}." in told


def test_what_is_done_is_recorded_about_the_token(signed_in, user, rt):
    info = created(signed_in)["info"]
    signed_in.patch(f"{PATH}/{info['id']}", {"name": "renamed"}).ok()
    created(signed_in, name="other")
    signed_in.delete(f"{PATH}/{info['id']}").ok()
    assert signed_in.delete(PATH).ok() == {"removed": 1}
    rows = [row for row in audit_rows(rt) if row.entity_type == "access_token"]
    assert [(row.action, row.entity_name) for row in rows] == [
        ("user_token_create", "Backup"),
        ("user_token_rename", "renamed"),
        ("user_token_create", "other"),
        ("user_token_delete", "renamed"),
        ("user_token_delete", "other"),
    ]
    assert {row.user_id for row in rows} == {user.id}
    assert [row.entity_id == info["id"] for row in rows] == [True, True, False, True, False]
    assert json.loads(rows[0].details) == {"scopes": ["profile:read"]}
    assert json.loads(rows[1].details) == {"previous_name": "Backup", "next_name": "renamed"}


def test_a_page_that_another_site_made_makes_none(signed_in):
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert signed_in.post(PATH, NEW, headers=headers).status == 403
    assert signed_in.get(PATH).ok() == []
