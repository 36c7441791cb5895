"""GitHub, Google, Microsoft and QQ, with answers shaped as theirs."""

from urllib.parse import parse_qs, urlsplit

import pytest

from app.external_auth.drivers import openid
from app.external_auth.drivers.driver import ExternalProfile
from app.external_auth.drivers.oauth2 import GithubDriver, QQDriver
from app.external_auth.errors import DiscoveryFailed, ProviderRejected
from app.external_auth.models import Provider, ProviderKind
from tests.external_auth.drivers.conftest import REDIRECT_URI, Client, driver_of
from tests.support.fake_provider import REMOVED, FakeProvider

TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
OTHER_TENANT = "f8cdef31-a31e-4b4a-93e4-5f571e91255a"

# https://docs.github.com/en/rest/users/users#get-the-authenticated-user, shortened
GITHUB_USER = {
    "login": "octocat",
    "id": 583231,
    "node_id": "MDQ6VXNlcjU4MzIzMQ==",
    "type": "User",
    "site_admin": False,
    "name": "monalisa octocat",
    "company": "GitHub",
    "email": "not-to-be-used@github.com",
    "created_at": "2008-01-14T04:33:35Z",
}
# https://docs.github.com/en/rest/users/emails#list-email-addresses-for-the-authenticated-user
GITHUB_EMAILS = [
    {
        "email": "583231+octocat@users.noreply.github.com",
        "verified": True,
        "primary": False,
        "visibility": None,
    },
    {"email": "octocat@github.com", "verified": True, "primary": True, "visibility": "private"},
]
GITHUB_TOKEN = {
    "access_token": "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "scope": "read:user,user:email",
    "token_type": "bearer",
}


@pytest.fixture
def at_github(client, provider: FakeProvider) -> Client:
    provider.token_answer.update(GITHUB_TOKEN)
    provider.reply("/user", GITHUB_USER)
    provider.reply("/user/emails", GITHUB_EMAILS)
    return client(
        ProviderKind.GITHUB,
        authorization_url=f"{provider.issuer}/login/oauth/authorize",
        token_url=f"{provider.issuer}/token",
        userinfo_url=f"{provider.issuer}/user",
    )


@pytest.fixture
def at_google(client, provider: FakeProvider) -> Client:
    provider.metadata |= {
        "id_token_signing_alg_values_supported": ["RS256"],
        "response_types_supported": ["code", "token", "id_token", "none"],
    }
    provider.claims.update(
        azp=provider.client_id,
        hd="example.com",
        at_hash="HK6E_P6Dh8Y93mRNtsDB1Q",
        picture="https://lh3.googleusercontent.com/a/x",
        given_name="Jane",
        preferred_username=REMOVED,
    )
    return client(ProviderKind.GOOGLE, issuer_url=provider.issuer)


@pytest.fixture
def at_microsoft(client, provider: FakeProvider) -> Client:
    """The alias `common`, whose document has a template instead of an issuer."""
    return _at_tenant(client, provider, "common", "{tenantid}")


def _at_tenant(client, provider: FakeProvider, tenant: str, documented: str) -> Client:
    provider.metadata |= {
        "issuer": f"{provider.issuer}/{documented}/v2.0",
        "id_token_signing_alg_values_supported": ["RS256"],
        "response_types_supported": ["code", "id_token", "code id_token", "id_token token"],
        "subject_types_supported": ["pairwise"],
    }
    provider.reply(
        f"/{tenant}/v2.0/.well-known/openid-configuration", without_removed(provider.metadata)
    )
    provider.claims.update(
        iss=f"{provider.issuer}/{TENANT}/v2.0",
        tid=TENANT,
        oid="00000000-0000-0000-66f3-3332eca7ea81",
        ver="2.0",
        email_verified=True,
    )
    return client(ProviderKind.MICROSOFT, issuer_url=f"{provider.issuer}/{tenant}/v2.0")


def without_removed(members: dict) -> dict:
    return {name: value for name, value in members.items() if value is not REMOVED}


@pytest.fixture
def at_qq(client, provider: FakeProvider) -> Client:
    provider.token_answer.update(
        access_token="FE04CCE2", expires_in="7776000", refresh_token="88E4BE14", token_type=REMOVED
    )
    provider.reply(
        "/me",
        {"client_id": provider.client_id, "openid": "A1B2C3D4E5F60718293A4B5C6D7E8F90"},
        content_type="text/html",
    )
    provider.reply(
        "/user/get_user_info",
        {
            "ret": 0,
            "msg": "",
            "is_lost": 0,
            "nickname": "企鹅",
            "figureurl_qq_1": "http://thirdqq.qlogo.cn/1",
            "gender": "女",
        },
        content_type="text/html; charset=utf-8",
    )
    return client(
        ProviderKind.QQ,
        authorization_url=f"{provider.issuer}/authorize",
        token_url=f"{provider.issuer}/token",
        userinfo_url=f"{provider.issuer}/user/get_user_info",
    )


# --- the fixed addresses -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "url", "scope"),
    [
        (ProviderKind.GITHUB, GithubDriver.fixed_endpoints[0], "read:user user:email"),
        (ProviderKind.QQ, QQDriver.fixed_endpoints[0], "get_user_info"),
    ],
)
def test_a_provider_without_addresses_uses_the_fixed_ones(rt, kind, url, scope):
    authorization = bare(rt, kind).authorize(REDIRECT_URI)
    query = parse_qs(urlsplit(authorization.url).query)
    assert authorization.url.startswith(f"{url}?")
    assert query["scope"] == [scope]
    assert query["code_challenge_method"] == ["S256"]
    assert "nonce" not in query
    assert authorization.nonce is None
    assert authorization.state.startswith("oauth2_")
    assert len(authorization.state) == 39


def bare(rt, kind=ProviderKind.MICROSOFT):
    """Return the driver of a provider with nothing but a client id."""
    return driver_of(rt, Provider(provider_kind=kind, key="main", client_id="client", options={}))


def test_the_fixed_addresses_are_the_documented_ones(rt):
    assert GithubDriver.fixed_endpoints == (
        "https://github.com/login/oauth/authorize",
        "https://github.com/login/oauth/access_token",
        "https://api.github.com/user",
    )
    assert QQDriver.fixed_endpoints == (
        "https://graph.qq.com/oauth2.0/authorize",
        "https://graph.qq.com/oauth2.0/token",
        "https://graph.qq.com/user/get_user_info",
    )
    assert openid.GOOGLE == "https://accounts.google.com"
    assert bare(rt).issuer == "https://login.microsoftonline.com/common/v2.0"


@pytest.mark.parametrize(
    ("kind", "issuer", "userinfo", "checks"),
    [
        (
            ProviderKind.GITHUB,
            None,
            GithubDriver.fixed_endpoints[2],
            ["github_endpoints", "verified_primary_email"],
        ),
        (
            ProviderKind.QQ,
            "qq:client",
            QQDriver.fixed_endpoints[2],
            ["qq_endpoints", "qq_openid"],
        ),
    ],
)
def test_a_test_of_fixed_addresses_asks_nobody(rt, kind, issuer, userinfo, checks):
    result = driver_of(
        rt, Provider(provider_kind=kind, key="main", client_id="client", options={})
    ).test()
    assert result["issuer"] == issuer
    assert (result["userinfo_endpoint"], result["jwks_key_count"]) == (userinfo, None)
    assert [check["name"] for check in result["checks"]] == checks
    assert all(check["success"] for check in result["checks"])


# --- whose people they are -----------------------------------------------------------------------


@pytest.mark.parametrize("at", ["at_github", "at_google", "at_qq"])
def test_people_are_known_as_the_driver_says(request, at: str):
    client = request.getfixturevalue(at)
    assert client.driver.namespace() == client.sign_in().namespace


def test_people_of_one_tenant_are_known_as_its_and_those_of_an_alias_as_their_tenants(
    client, provider: FakeProvider
):
    one = _at_tenant(client, provider, TENANT, TENANT)
    assert one.driver.namespace() == one.sign_in().namespace
    many = _at_tenant(client, provider, "common", "{tenantid}")
    assert many.driver.namespace() is None


# --- GitHub ---------------------------------------------------------------------------------------


def test_github_tells_the_verified_primary_address(at_github: Client):
    assert at_github.sign_in() == ExternalProfile(
        namespace="https://github.com",
        subject="583231",
        email="octocat@github.com",
        email_verified=True,
        display_name="monalisa octocat",
        preferred_username="octocat",
    )


def test_github_is_asked_as_it_documents(at_github: Client):
    at_github.sign_in()
    [token], [user], [emails] = (
        at_github.provider.seen(path) for path in ("/token", "/user", "/user/emails")
    )
    assert token.form["client_id"] == at_github.config.client_id
    assert token.form["client_secret"] == at_github.config.client_secret
    assert token.headers["Accept"] == "application/json"
    for request in (user, emails):
        assert request.headers["Authorization"] == f"Bearer {GITHUB_TOKEN['access_token']}"
        assert request.headers["User-Agent"].startswith("Gatehouse/")


@pytest.mark.parametrize(
    "emails",
    [
        [],
        [{"email": "a@example.com", "primary": True, "verified": False}],
        [{"email": "a@example.com", "primary": False, "verified": True}],
        [{"email": "a@example.com"}],
    ],
)
def test_any_other_address_of_github_does_not_count(at_github: Client, emails: list):
    at_github.provider.reply("/user/emails", emails)
    profile = at_github.sign_in()
    assert (profile.email, profile.email_verified) == (None, False)


@pytest.mark.parametrize(
    "emails",
    [
        {"message": "Not Found"},
        [{"email": "not-an-address", "primary": True, "verified": True}],
        [{"primary": True, "verified": True}],
        b"<html>",
    ],
)
def test_addresses_of_github_that_cannot_be_read_end_the_sign_in(at_github: Client, emails):
    at_github.provider.reply("/user/emails", emails)
    with pytest.raises(ProviderRejected):
        at_github.sign_in()


@pytest.mark.parametrize("path", ["/user", "/user/emails"])
def test_a_refusal_of_github_ends_the_sign_in(at_github: Client, path: str):
    at_github.provider.reply(path, {"message": "Bad credentials"}, status=401)
    with pytest.raises(ProviderRejected):
        at_github.sign_in()


@pytest.mark.parametrize("user_id", [None, True, "", [1]])
def test_github_must_tell_an_id(at_github: Client, user_id):
    at_github.provider.reply("/user", GITHUB_USER | {"id": user_id})
    with pytest.raises(ProviderRejected):
        at_github.sign_in()


# --- Google ---------------------------------------------------------------------------------------


def test_google_tells_what_its_id_token_says(at_google: Client):
    profile = at_google.sign_in()
    assert profile.namespace == at_google.provider.issuer
    assert (profile.email, profile.email_verified) == ("jane@example.com", True)
    assert (profile.display_name, profile.preferred_username) == ("Jane Doe", None)


@pytest.mark.parametrize("kind", ["at_google", "at_microsoft"])
def test_google_and_microsoft_are_not_asked_for_user_info(request, kind: str):
    """Their ID tokens have all that it has."""
    client = request.getfixturevalue(kind)
    client.provider.not_in_id_token = ("name",)
    assert client.sign_in().display_name is None
    assert client.provider.seen("/userinfo") == []


def test_google_without_a_scheme_is_refused(at_google: Client):
    at_google.provider.claims["iss"] = at_google.provider.issuer.partition("//")[2]
    with pytest.raises(ProviderRejected):
        at_google.sign_in()


def test_google_asks_for_its_scopes_by_default(at_google: Client):
    query = parse_qs(urlsplit(at_google.authorize().url).query)
    assert query["scope"] == ["openid profile email"]


# --- Microsoft ------------------------------------------------------------------------------------


def test_microsoft_is_known_by_the_concrete_tenant_and_vouches_for_no_address(
    at_microsoft: Client,
):
    profile = at_microsoft.sign_in()
    assert profile.namespace == f"{at_microsoft.provider.issuer}/{TENANT}/v2.0"
    assert (profile.email, profile.email_verified) == ("jane@example.com", False)


def test_a_text_about_verification_is_nothing_to_microsoft(at_microsoft: Client):
    at_microsoft.provider.claims["email_verified"] = "true"
    assert at_microsoft.sign_in().email_verified is False


@pytest.mark.parametrize(
    ("tenant", "documented", "signed_by", "is_believed"),
    [
        ("common", "{tenantid}", TENANT, True),
        ("common", "{tenantid}", openid.CONSUMERS, True),
        ("common", "common", TENANT, True),
        ("common", TENANT, TENANT, True),
        ("common", "{tenantid}", "common", False),
        ("common", "{tenantid}", "{tenantid}", False),
        ("common", "{tenantid}", TENANT.upper(), False),
        ("common", "{tenantid}", f"{TENANT}/x", False),
        ("organizations", "{tenantid}", TENANT, True),
        ("organizations", "{tenantid}", openid.CONSUMERS, False),
        ("consumers", openid.CONSUMERS, openid.CONSUMERS, True),
        ("consumers", openid.CONSUMERS, TENANT, False),
        (TENANT, TENANT, TENANT, True),
        (TENANT, TENANT, OTHER_TENANT, False),
    ],
)
def test_which_tenant_may_sign(
    client, provider: FakeProvider, tenant, documented, signed_by, is_believed
):
    registered = _at_tenant(client, provider, tenant, documented)
    provider.claims["iss"] = f"{provider.issuer}/{signed_by}/v2.0"
    callback = registered.callback(registered.authorize())
    if is_believed:
        assert registered.identify(callback).namespace.endswith(f"/{signed_by}/v2.0")
    else:
        with pytest.raises(ProviderRejected):
            registered.identify(callback)


@pytest.mark.parametrize(
    ("tenant", "documented"),
    [
        (TENANT, "{tenantid}"),
        (TENANT, OTHER_TENANT),
        ("organizations", openid.CONSUMERS),
        ("consumers", TENANT),
        ("common", "organizations"),
    ],
)
def test_which_tenant_may_stand_in_the_document(client, provider, tenant, documented):
    registered = _at_tenant(client, provider, tenant, documented)
    with pytest.raises(DiscoveryFailed):
        registered.authorize()


@pytest.mark.parametrize(
    "name",
    [
        f"http://login.microsoftonline.com/{TENANT}/v2.0",
        f"https://login.microsoftonline.com.evil.example/{TENANT}/v2.0",
        f"https://login.microsoftonline.com/{TENANT}",
        f"https://login.microsoftonline.com/{TENANT}/v2.0/",
        f"https://user@login.microsoftonline.com/{TENANT}/v2.0",
        "https://login.microsoftonline.com//v2.0",
    ],
)
def test_names_that_are_no_tenant_of_microsoft(rt, name: str):
    driver = bare(rt)
    assert not driver.accepts_token_issuer(name, driver.issuer)
    assert driver.accepts_token_issuer(
        f"https://login.microsoftonline.com/{TENANT}/v2.0", driver.issuer
    )


def test_another_algorithm_of_microsoft_is_refused(at_microsoft: Client):
    path = "/common/v2.0/.well-known/openid-configuration"
    provider = at_microsoft.provider
    provider.metadata["id_token_signing_alg_values_supported"] = ["RS256", "RS512"]
    provider.reply(path, provider.metadata)
    provider.algorithm = "RS512"
    with pytest.raises(ProviderRejected):
        at_microsoft.sign_in()


def test_a_stored_issuer_that_is_no_tenant_is_taken_to_the_letter(client, provider: FakeProvider):
    registered = client(ProviderKind.MICROSOFT, issuer_url=provider.issuer)
    assert registered.sign_in().namespace == provider.issuer


def test_a_tenant_wins_over_a_stored_issuer(client, provider: FakeProvider):
    options = {"microsoft": {"tenant": "consumers"}}
    registered = client(ProviderKind.MICROSOFT, issuer_url=provider.issuer, options=options)
    assert registered.driver.issuer == "https://login.microsoftonline.com/consumers/v2.0"


def test_the_issuer_of_a_callback_may_be_the_concrete_tenant(at_microsoft: Client):
    signed_by = f"{at_microsoft.provider.issuer}/{TENANT}/v2.0"
    assert at_microsoft.sign_in(issuer=signed_by)
    with pytest.raises(ProviderRejected):
        at_microsoft.sign_in(issuer="https://other.example.com")


# --- QQ -------------------------------------------------------------------------------------------


def test_qq_tells_an_openid_and_a_nickname(at_qq: Client):
    assert at_qq.sign_in() == ExternalProfile(
        namespace=f"qq:{at_qq.config.client_id}",
        subject="A1B2C3D4E5F60718293A4B5C6D7E8F90",
        display_name="企鹅",
    )


def test_qq_is_asked_by_get_and_for_json(at_qq: Client):
    authorization = at_qq.authorize()
    callback = at_qq.callback(authorization)
    at_qq.identify(callback)
    [token], [me], [info] = (
        at_qq.provider.seen(path) for path in ("/token", "/me", "/user/get_user_info")
    )
    assert token.method == "GET"
    assert token.query == {
        "grant_type": "authorization_code",
        "client_id": at_qq.config.client_id,
        "client_secret": at_qq.config.client_secret,
        "code": callback.code,
        "redirect_uri": REDIRECT_URI,
        "code_verifier": authorization.pkce_verifier,
        "fmt": "json",
    }
    assert me.query == {"access_token": "FE04CCE2", "fmt": "json"}
    assert info.query == {
        "access_token": "FE04CCE2",
        "oauth_consumer_key": at_qq.config.client_id,
        "openid": "A1B2C3D4E5F60718293A4B5C6D7E8F90",
    }
    assert "Authorization" not in token.headers


def test_a_public_client_of_qq_has_no_secret_to_show(at_qq: Client):
    at_qq.but(client_secret=None).sign_in()
    [token] = at_qq.provider.seen("/token")
    assert "client_secret" not in token.query


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/token", {"error": 100019, "error_description": "code to access token error"}),
        ("/token", {"access_token": " "}),
        ("/token", b'callback( {"error":100019} );'),
        ("/me", {"error": 100016, "error_description": "access token check failed"}),
        ("/me", {"client_id": "client", "openid": ""}),
        ("/me", {"client_id": "another", "openid": "A1"}),
        ("/me", {"ret": 1, "openid": "A1"}),
        ("/me", b'callback( {"client_id":"client","openid":"A1"} );'),
        ("/user/get_user_info", {"ret": 1002, "msg": "请先登录"}),
        ("/user/get_user_info", {"ret": "0", "nickname": "x"}),
    ],
)
def test_a_refusal_of_qq_ends_the_sign_in(at_qq: Client, path: str, answer):
    at_qq.provider.reply(path, answer)
    with pytest.raises(ProviderRejected):
        at_qq.sign_in()


@pytest.mark.parametrize(
    ("path", "answer", "word"),
    [
        ("/token", {"error": 100020, "error_description": "code is reused"}, "100020"),
        ("/me", {"error": 100016, "error_description": "check failed"}, "QQ refused: 100016"),
        ("/user/get_user_info", {"ret": 1002, "msg": "请先登录"}, "QQ refused: 1002"),
    ],
)
def test_why_qq_refused_is_logged(at_qq: Client, caplog, path: str, answer, word: str):
    at_qq.provider.reply(path, answer)
    with pytest.raises(ProviderRejected):
        at_qq.sign_in()
    assert f"main (qq): {word}" in caplog.text


def test_qq_need_not_name_the_client(at_qq: Client):
    at_qq.provider.reply("/me", {"openid": "A1"})
    assert at_qq.sign_in().subject == "A1"


def test_no_failure_of_qq_is_logged_with_a_secret(at_qq: Client, caplog):
    """Its secrets are in the URL, which the libraries like to repeat."""
    caplog.set_level("INFO")
    callback = at_qq.callback(at_qq.authorize())
    at_qq.provider.reply("/token", lambda _: 1 / 0)
    with pytest.raises(ProviderRejected):
        at_qq.identify(callback)
    assert "main (qq)" in caplog.text
    assert callback.code not in caplog.text
    assert "secret" not in caplog.text
