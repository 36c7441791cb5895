"""GET /auth/me."""

import uuid

import jwt
import pytest

from app.core import base64url
from tests.support.api import ApiClient
from tests.support.factories import change_user, configure, make_user, moment

BASE = {
    "id",
    "username",
    "email",
    "email_verified",
    "pending_email",
    "role",
    "status",
    "must_change_password",
    "policy_group_id",
    "created_at",
    "updated_at",
}
GROUPS = {
    "profile": {"profile"},
    "preferences": {"preferences"},
    "quota": {"storage_used", "storage_quota"},
    "session": {"access_token_expires_at"},
}
FULL = BASE.union(*GROUPS.values())


def test_the_full_model(rt, signed_in, user, clock):
    me = signed_in.me().ok()
    assert set(me) == FULL
    assert (me["id"], me["username"], me["email"]) == (user.id, user.username, user.email)
    assert (me["role"], me["status"]) == ("user", "active")
    assert me["email_verified"] is True
    assert me["pending_email"] is None
    assert me["must_change_password"] is False
    assert (me["storage_used"], me["storage_quota"]) == (0, 0)
    assert me["preferences"] is None
    assert me["profile"] == {
        "display_name": None,
        "avatar": {"source": "none", "url_512": None, "url_1024": None, "version": 0},
    }
    assert moment(me["created_at"]) == clock.now()
    assert me["access_token_expires_at"] == int(clock.now().timestamp()) + 900


def test_the_groups_asked_for_are_added_to_the_base(signed_in):
    for fields, groups in {
        "": set(GROUPS),
        " , ,, ": set(GROUPS),
        **{group: {group} for group in GROUPS},
        "profile,quota": {"profile", "quota"},
        " Session , PREFERENCES ,": {"session", "preferences"},
        "quota,quota": {"quota"},
        "profile,preferences,quota,session": set(GROUPS),
    }.items():
        me = signed_in.get("/auth/me", query_string={"fields": fields}).ok()
        assert set(me) == BASE.union(*(GROUPS[group] for group in groups)), fields


def test_an_unknown_group_is_a_bad_request(signed_in):
    unknown = ["unknown", "profile,unknown", "username", "profile;quota", "*", "\x00", "\u0661"]
    for fields in unknown:
        answer = signed_in.get("/auth/me", query_string={"fields": fields})
        assert (answer.status, answer.code) == (400, "bad_request"), fields


def test_other_parameters_are_ignored(signed_in):
    assert set(signed_in.get("/auth/me?expand=all").ok()) == FULL


def test_the_session_group_tells_of_the_presented_token(signed_in, clock):
    first = signed_in.bearer()
    expires_at = int(clock.now().timestamp()) + 900
    clock.advance(minutes=5)
    signed_in.refresh().ok()
    assert first.get("/auth/me?fields=session").ok()["access_token_expires_at"] == expires_at
    later = signed_in.get("/auth/me?fields=session").ok()["access_token_expires_at"]
    assert later == expires_at + 300


@pytest.mark.both_databases
def test_changes_are_visible_at_once(rt, signed_in, user):
    change_user(rt, user, role="admin", storage_used=2**40, pending_email="new@example.com")
    me = signed_in.me().ok()
    assert (me["role"], me["storage_used"]) == ("admin", 2**40)
    assert me["pending_email"] == "new@example.com"


def test_big_numbers_stay_whole(rt, signed_in, user):
    change_user(rt, user, storage_used=2**62 + 1, storage_quota=2**63 - 1)
    me = signed_in.me().ok()
    assert (me["storage_used"], me["storage_quota"]) == (2**62 + 1, 2**63 - 1)


def test_people_see_themselves(rt, signed_in, user):
    other = make_user(rt)
    theirs = signed_in.stranger()
    theirs.login(other).ok()
    assert theirs.me().ok()["id"] == other.id
    assert signed_in.me().ok()["id"] == user.id


# --- the access token -------------------------------------------


def test_the_token_lives_its_time_and_five_seconds(signed_in, clock):
    clock.advance(seconds=905)
    signed_in.me().ok()
    clock.advance(seconds=1)
    signed_in.me().fails(401, "auth.token_expired")


def test_a_new_lifetime_holds_for_new_tokens(rt, api, user, clock):
    configure(rt, auth_access_token_ttl_secs=60)
    assert api.login(user).ok()["expires_in"] == 60
    clock.advance(seconds=66)
    api.me().fails(401, "auth.token_expired")


def test_the_session_outlives_no_access_token(rt, api, user, clock):
    configure(rt, auth_refresh_token_ttl_secs=60)
    api.login(user).ok()
    clock.advance(seconds=60)
    api.me().fails(401, "auth.token_invalid")


def test_the_tokens_claims_are_the_documented_ones(signed_in, user, clock):
    now = int(clock.now().timestamp())
    token = signed_in.access_token
    claims = jwt.decode(token, options={"verify_signature": False})
    assert set(claims) == {"sub", "sid", "jti", "iat", "exp"}
    assert (claims["sub"], claims["iat"], claims["exp"]) == (str(user.id), now, now + 900)
    [session] = signed_in.get("/auth/sessions").ok()
    assert claims["sid"] == session["id"]
    assert set(jwt.get_unverified_header(token)) == {"alg", "typ", "kid"}


def forged(token, key=b"x" * 32, algorithm="HS256", header=None, **claims):
    known = jwt.decode(token, options={"verify_signature": False}) | claims
    known = {name: value for name, value in known.items() if value is not None}
    headers = {"kid": jwt.get_unverified_header(token)["kid"]} | (header or {})
    return jwt.encode(known, key, algorithm, headers=headers)


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
def test_a_forged_token_is_invalid(signed_in):
    for change in (
        {},
        {"algorithm": "none", "key": None},
        {"algorithm": "HS512", "key": b"x" * 64},
        {"header": {"kid": "unknown"}},
        {"header": {"kid": "../../keys.json"}},
    ):
        answer = signed_in.bearer(forged(signed_in.access_token, **change)).me()
        assert (answer.status, answer.code) == (401, "auth.token_invalid"), change


@pytest.mark.parametrize("header", ["[" * 1500, "[]", "{}", '{"kid":[]}', "nothing", ""])
def test_a_token_with_a_senseless_header_is_invalid(api, header):
    token = f"{base64url.encoded(header.encode())}.a.b"
    api.bearer(token).me().fails(401, "auth.token_invalid")


def test_a_genuine_token_with_missing_or_senseless_claims_is_invalid(rt, signed_in):
    key = rt.keyring.current().derived("access-token")
    for claims in (
        *({"sid": sid} for sid in (None, "x" * 4000, str(uuid.uuid4()))),
        *({"exp": exp} for exp in (None, "soon", [1])),
    ):
        token = forged(signed_in.access_token, key=key, **claims)
        answer = signed_in.bearer(token).me()
        assert (answer.status, answer.code) == (401, "auth.token_invalid"), claims


def test_a_token_cut_or_prolonged_is_invalid(signed_in):
    token = signed_in.access_token
    for altered in (token[:-1], f"{token[:-1]} ", f"{token}x", f"{token}."):
        answer = signed_in.bearer(altered).me()
        assert (answer.status, answer.code) == (401, "auth.token_invalid"), altered


def test_after_a_key_rotation_old_tokens_live_out_their_time(make_app, clock):
    app = make_app(secret_keys=())
    rt = app.extensions["gatehouse"]
    api = ApiClient(app)
    api.login(make_user(rt)).ok()
    old = api.bearer()
    rt.keyring.rotate()
    old.me().ok()
    api.refresh().ok()
    api.me().ok()
    clock.advance(seconds=906)
    old.me().fails(401, "auth.token_expired")
    clock.advance(days=2)
    old.me().fails(401, "auth.token_invalid")
