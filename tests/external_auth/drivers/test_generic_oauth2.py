"""Any OAuth 2 provider with a user info endpoint."""

from urllib.parse import parse_qs, urlsplit

import pytest

from app.core.texts import origin_of
from app.external_auth.drivers.driver import ExternalProfile
from app.external_auth.errors import ProviderMisconfigured, ProviderRejected
from app.external_auth.models import ProviderKind, TokenAuth
from tests.external_auth.drivers.conftest import Client
from tests.support.fake_provider import PERSON, SUBJECT, FakeProvider
from tests.support.provider_faults import FAULTS


@pytest.fixture
def generic(client, provider: FakeProvider) -> Client:
    return client(
        ProviderKind.GENERIC_OAUTH2,
        scopes="profile email",
        authorization_url=f"{provider.issuer}/authorize",
        token_url=f"{provider.issuer}/token",
        userinfo_url=f"{provider.issuer}/userinfo",
    )


def with_claims(client: Client, **names: str) -> Client:
    return client.but(**{f"{name}_claim": claim for name, claim in names.items()})


def with_userinfo(client: Client, answer: object) -> Client:
    client.provider.reply("/userinfo", answer)
    return client


def test_the_authorization_request_has_no_nonce(generic: Client):
    authorization = generic.authorize()
    query = parse_qs(urlsplit(authorization.url).query)
    assert set(query) == {
        "response_type",
        "client_id",
        "redirect_uri",
        "scope",
        "state",
        "code_challenge",
        "code_challenge_method",
    }
    assert authorization.nonce is None
    assert authorization.state.startswith("oauth2_")
    assert query["scope"] == ["profile email"]


@pytest.mark.parametrize(
    "stored",
    [
        "https://id.example.com/authorize?flag&y=a%20b&z=%7E~",
        "HTTPS://id.example.com/authorize?x=1",
        "https://id.example.com/authorize;?x=1",
    ],
)
def test_a_stored_address_and_its_query_are_kept_as_they_are(generic: Client, stored: str):
    client = generic.but(authorization_url=stored)
    assert client.authorize().url.startswith(f"{stored}&response_type=code&client_id=")


def test_no_scopes_are_a_choice(generic: Client):
    client = generic.but(scopes="")
    assert "scope" not in parse_qs(urlsplit(client.authorize().url).query)


def test_a_sign_in_says_what_the_user_info_says(generic: Client):
    assert generic.sign_in() == ExternalProfile(
        namespace=generic.provider.issuer,
        subject=SUBJECT,
        email="jane@example.com",
        email_verified=True,
        display_name="Jane Doe",
        preferred_username="jane",
    )


def test_the_secret_is_shown_in_the_form_and_only_once(generic: Client):
    generic.provider.reply("/token", {"error": "invalid_client"}, status=401)
    with pytest.raises(ProviderRejected):
        generic.sign_in()
    [request] = generic.provider.seen("/token")
    assert "Authorization" not in request.headers
    assert request.form["client_id"] == generic.config.client_id
    assert request.form["client_secret"] == generic.config.client_secret
    assert set(request.form) == {
        "grant_type",
        "code",
        "redirect_uri",
        "code_verifier",
        "client_id",
        "client_secret",
    }


@pytest.mark.parametrize("chosen", TokenAuth)
def test_how_the_secret_is_sent(generic: Client, chosen: TokenAuth):
    generic.but(token_auth=chosen).sign_in()
    [request] = generic.provider.seen("/token")
    is_basic = chosen is TokenAuth.BASIC
    assert ("Authorization" in request.headers) is is_basic
    assert ("client_secret" in request.form) is not is_basic


def test_a_public_client_shows_none(generic: Client):
    generic.but(client_secret=None).sign_in()
    [request] = generic.provider.seen("/token")
    assert "client_secret" not in request.form


def test_the_user_info_is_asked_for_with_the_token(generic: Client):
    generic.sign_in()
    [request] = generic.provider.seen("/userinfo")
    assert request.method == "GET"
    assert request.headers["Authorization"] == "Bearer an-access-token"
    assert request.headers["Accept"] == "application/json"


def test_why_the_user_info_is_refused_is_logged(generic: Client, caplog):
    challenge = 'Bearer realm="x", error_description="of Jane", error="insufficient_scope"'
    generic.provider.reply("/userinfo", b"", status=403, headers={"WWW-Authenticate": challenge})
    with pytest.raises(ProviderRejected):
        generic.sign_in()
    assert "main (generic_oauth2): status 403: insufficient_scope" in caplog.text
    assert "Jane" not in caplog.text


@pytest.mark.parametrize("kind", ["bearer", "Bearer", "BEARER", None])
def test_token_types_that_are_bearer(generic: Client, kind: str | None):
    generic.provider.token_answer["token_type"] = kind
    assert generic.sign_in()


def test_a_stored_issuer_is_the_namespace(generic: Client):
    client = generic.but(issuer_url="https://id.example.com/x")
    assert client.sign_in().namespace == "https://id.example.com/x"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://ID.Example.com/a?b", "https://id.example.com"),
        ("https://id.example.com:443/a", "https://id.example.com"),
        ("https://id.example.com:8443/a", "https://id.example.com:8443"),
        ("http://[::1]:80/a", "http://[::1]"),
    ],
)
def test_the_origin_of_a_url(url: str, expected: str):
    assert origin_of(url) == expected


@pytest.mark.parametrize(
    ("answer", "subject"),
    [
        ({"sub": " a "}, "a"),
        ({"sub": 17}, "17"),
        ({"sub": 17.0}, "17.0"),
        ({"id": 17}, "17"),
        ({"id": "x", "sub": "y"}, "y"),
        ({"id": 12345678901234567890}, "12345678901234567890"),
    ],
)
def test_the_subject_is_sub_or_else_id(generic: Client, answer: dict, subject: str):
    assert with_userinfo(generic, answer).sign_in().subject == subject


@pytest.mark.parametrize(
    ("name", "answer", "subject"),
    [
        ("uid", {"uid": 5, "id": 6}, "5"),
        ("data.uid", {"data": {"uid": "nested"}}, "nested"),
        ("data.uid", {"data.uid": "flat", "data": {"uid": "nested"}}, "flat"),
        ("/data/uid", {"data": {"uid": "nested"}}, "nested"),
        ("/ids/1", {"ids": ["a", "b"]}, "b"),
        ("/a~1b/c~0d", {"a/b": {"c~d": "escaped"}}, "escaped"),
        ("/", {"": "empty"}, "empty"),
    ],
)
def test_claim_names_are_keys_paths_or_pointers(generic: Client, name, answer, subject):
    client = with_claims(with_userinfo(generic, answer), subject=name)
    assert client.sign_in().subject == subject


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("uid", {"id": 6, "sub": "x"}),
        ("data.uid", {"data": "x"}),
        ("/ids/2", {"ids": ["a", "b"]}),
        ("/ids/01", {"ids": ["a", "b"]}),
        ("/ids/-", {"ids": ["a", "b"]}),
        ("sub", {}),
        ("sub", {"sub": True}),
        ("sub", {"sub": {"x": 1}}),
        ("sub", {"sub": 12345678901234567.0}),
        ("sub", {"sub": 17.5}),
        ("sub", {"sub": 17.5, "id": 17}),
        ("sub", {"sub": True, "id": 17}),
        ("sub", {"sub": "  "}),
        ("sub", {"sub": "x" * 256}),
        ("sub", {"sub": "a\x7fb"}),
    ],
)
def test_without_a_subject_nobody_is_signed_in(generic: Client, name: str, answer: dict):
    with pytest.raises(ProviderRejected):
        with_claims(with_userinfo(generic, answer), subject=name).sign_in()


def test_a_number_beyond_all_numbers_is_no_subject(generic: Client):
    generic.provider.reply("/userinfo", b'{"sub": 1e999}')
    with pytest.raises(ProviderRejected):
        generic.sign_in()


def test_every_claim_can_be_renamed(generic: Client):
    answer = {"u": {"id": 1, "mail": "a@example.com", "ok": "TRUE", "full": "A B", "nick": 7}}
    client = with_claims(
        with_userinfo(generic, answer),
        subject="u.id",
        email="/u/mail",
        email_verified="u.ok",
        display_name="u.full",
        username="u.nick",
    )
    assert client.sign_in() == ExternalProfile(
        generic.provider.issuer, "1", "a@example.com", True, "A B", "7"
    )


@pytest.mark.parametrize(
    ("said", "verified"),
    [(True, True), (False, False), ("true", True), ("False", False), (None, False)],
)
def test_verification_may_be_a_boolean_or_its_name(generic: Client, said, verified: bool):
    profile = with_userinfo(generic, PERSON | {"email_verified": said}).sign_in()
    assert profile.email_verified is verified


@pytest.mark.parametrize("said", ["yes", "", "1", 1, [], {}])
def test_verification_that_is_neither_is_refused(generic: Client, said):
    with pytest.raises(ProviderRejected):
        with_userinfo(generic, PERSON | {"email_verified": said}).sign_in()


def test_verification_that_is_not_told_is_none(generic: Client):
    assert with_userinfo(generic, {"sub": "x", "email": "a@example.com"}).sign_in() == (
        ExternalProfile(generic.provider.issuer, "x", "a@example.com")
    )


@pytest.mark.parametrize(
    ("answer", "members"),
    [
        (PERSON, {"status": 500}),
        (b"<html>", {}),
        ([PERSON], {}),
        (b"[" * 100_000, {}),
        (b'{"sub": ' + b"9" * 5000 + b"}", {}),
        (b'{"sub": "x"}' + b" " * 1024 * 1024, {}),
        (b"", {"status": 302, "headers": {"Location": "/elsewhere"}}),
        (PERSON | {"email": "nobody"}, {}),
    ],
)
def test_user_info_that_cannot_be_read_ends_the_sign_in(generic: Client, answer, members):
    generic.provider.reply("/userinfo", answer, **members)
    with pytest.raises(ProviderRejected):
        generic.sign_in()


ABOUT_THE_TOKEN_ENDPOINT = list(FAULTS)[list(FAULTS).index("access token missing") :]


@pytest.mark.parametrize("fault", ABOUT_THE_TOKEN_ENDPOINT)
def test_whatever_is_wrong_with_the_token_nobody_is_signed_in(generic: Client, fault: str):
    callback = generic.callback(generic.authorize())
    FAULTS[fault](generic.provider)
    with pytest.raises(ProviderRejected):
        generic.identify(callback)
    assert generic.provider.seen("/userinfo") == []


@pytest.mark.parametrize("missing", ["authorization_url", "token_url", "userinfo_url"])
def test_every_endpoint_must_be_stored(generic: Client, missing: str):
    client = generic.but(**{missing: None})
    with pytest.raises(ProviderMisconfigured):
        client.authorize()
    with pytest.raises(ProviderMisconfigured):
        client.driver.test()


def test_a_test_asks_nobody(generic: Client):
    result = generic.driver.test()
    assert result["issuer"] is None
    assert [check["name"] for check in result["checks"]] == [
        "manual_endpoints",
        "authorization_code",
    ]
    assert result["token_endpoint"] == f"{generic.provider.issuer}/token"
    assert generic.provider.requests == []


@pytest.mark.parametrize("kind", [ProviderKind.GENERIC_OAUTH2, ProviderKind.GITHUB])
@pytest.mark.parametrize(
    ("issuer_url", "named"),
    [
        (None, "https://honest.example"),
        (None, "http://127.0.0.1"),
        (None, "http://[::1"),
        (None, "http://127.0.0.1:x"),
        (None, ""),
        (None, "\ud800"),
        ("https://id.example.com/one", "https://id.example.com/two"),
        ("https://id.example.com", "https://ID.example.com"),
        ("https://id.example.com", "https://id.example.com.evil.example"),
    ],
)
def test_a_callback_of_another_provider_brings_it_no_code(
    generic, provider, kind, issuer_url, named
):
    """Mix-up (RFC 9700 §4.4): the honest provider's code must not go to the one that lured it."""
    client = generic.but(provider_kind=kind, issuer_url=issuer_url)
    with pytest.raises(ProviderRejected):
        client.sign_in(issuer=named)
    assert provider.seen("/token") == []


@pytest.mark.parametrize(
    ("issuer_url", "path"), [(None, ""), (None, "/realms/one"), ("/one", "/one"), ("/one", "/one/")]
)
def test_a_callback_may_name_this_provider(generic, provider, issuer_url, path):
    client = generic.but(issuer_url=issuer_url and provider.issuer + issuer_url)
    assert client.sign_in(issuer=provider.issuer + path).subject == SUBJECT
