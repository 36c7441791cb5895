"""Any OpenID provider (OpenID Connect Core §3.1.3.7)."""

import threading
from urllib.parse import parse_qs, urlsplit

import pytest

from app import __version__
from app.core.http_client import ResponseLimits
from app.external_auth.drivers.driver import ExternalProfile, parse_json
from app.external_auth.errors import (
    DiscoveryFailed,
    ProviderMisconfigured,
    ProviderRejected,
)
from app.external_auth.models import TokenAuth
from tests.external_auth.drivers.conftest import IMPATIENT, REDIRECT_URI, Client
from tests.support.fake_provider import (
    DESCRIPTION,
    DISCOVERY,
    PERSON,
    REMOVED,
    SUBJECT,
    FakeProvider,
    Reply,
    Request,
    challenge,
    ec_key,
    encoded,
    public_jwk,
    rsa_key,
    signed,
)
from tests.support.provider_faults import DISCOVERY_FAULTS, FAULTS, SLOW_FAULTS


@pytest.fixture
def oidc(client, provider: FakeProvider) -> Client:
    return client(scopes="openid profile email", issuer_url=provider.issuer)


# --- the request ---------------------------------------------------------------------------------


def test_the_authorization_request_has_the_documented_parameters(oidc: Client):
    authorization = oidc.authorize()
    parts = urlsplit(authorization.url)
    query = parse_qs(parts.query)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{oidc.provider.issuer}/authorize"
    assert query == {
        "response_type": ["code"],
        "client_id": [oidc.config.client_id],
        "redirect_uri": [REDIRECT_URI],
        "scope": ["openid profile email"],
        "state": [authorization.state],
        "nonce": [authorization.nonce],
        "code_challenge": [challenge(authorization.pkce_verifier)],
        "code_challenge_method": ["S256"],
    }
    assert len(authorization.state) == len(authorization.nonce or "") == 22
    assert len(authorization.pkce_verifier) == 43


def test_every_sign_in_has_secrets_of_its_own(oidc: Client):
    first, second = oidc.authorize(), oidc.authorize()
    assert first.state != second.state
    assert first.nonce != second.nonce
    assert first.pkce_verifier != second.pkce_verifier


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("", "openid"),
        ("email", "openid email"),
        ("email openid email", "openid email"),
        ("openid  profile", "openid profile"),
    ],
)
def test_openid_comes_first_and_once(oidc: Client, stored: str, asked: str):
    client = oidc.but(scopes=stored)
    assert parse_qs(urlsplit(client.authorize().url).query)["scope"] == [asked]


def test_the_query_of_an_endpoint_is_kept(oidc: Client):
    oidc.provider.metadata["authorization_endpoint"] += "?brand=blue&empty="
    query = parse_qs(urlsplit(oidc.authorize().url).query, keep_blank_values=True)
    assert (query["brand"], query["empty"]) == (["blue"], [""])


def test_secrets_are_in_no_repr(oidc: Client):
    authorization = oidc.authorize()
    callback = oidc.callback(authorization)
    shown = f"{authorization!r} {callback!r} {oidc.driver!r}"
    secrets = (
        authorization.state,
        authorization.nonce,
        authorization.pkce_verifier,
        callback.code,
        oidc.config.client_secret,
    )
    assert [secret for secret in secrets if secret in shown] == []


# --- success -------------------------------------------------------------------------------------


def test_a_valid_sign_in_says_who_it_is(oidc: Client):
    assert oidc.sign_in() == ExternalProfile(
        namespace=oidc.provider.issuer,
        subject=SUBJECT,
        email="jane@example.com",
        email_verified=True,
        display_name="Jane Doe",
        preferred_username="jane",
    )


def test_a_confidential_client_shows_its_secret_by_http_basic(oidc: Client):
    oidc.sign_in()
    [request] = oidc.provider.seen("/token")
    assert request.method == "POST"
    assert request.headers["Authorization"].startswith("Basic ")
    assert set(request.form) == {"grant_type", "code", "redirect_uri", "code_verifier"}
    assert request.form["redirect_uri"] == REDIRECT_URI


@pytest.mark.parametrize(
    ("listed", "chosen", "sent"),
    [
        (["client_secret_post"], "auto", "form"),
        (["client_secret_post", "private_key_jwt"], "auto", "form"),
        (["client_secret_post", "client_secret_basic"], "auto", "basic"),
        (["private_key_jwt"], "auto", "basic"),
        ([], "auto", "basic"),
        ("client_secret_post", "auto", "basic"),
        (["client_secret_post"], "basic", "basic"),
        (["client_secret_basic"], "post", "form"),
    ],
)
def test_how_the_secret_is_sent(oidc: Client, listed: object, chosen: str, sent: str):
    oidc.provider.metadata["token_endpoint_auth_methods_supported"] = listed
    oidc.but(token_auth=TokenAuth(chosen)).sign_in()
    [request] = oidc.provider.seen("/token")
    basic, form = request.headers.get("Authorization"), request.form.get("client_secret")
    assert (basic is None, form is None) == (sent == "form", sent == "basic")


def test_a_public_client_sends_no_secret_in_any_way(oidc: Client):
    client = oidc.but(client_secret=None, token_auth=TokenAuth.BASIC)
    client.sign_in()
    [request] = oidc.provider.seen("/token")
    assert "Authorization" not in request.headers
    assert request.form["client_id"] == oidc.config.client_id


def test_a_public_client_only_names_itself(oidc: Client):
    client = oidc.but(client_secret=None)
    client.sign_in()
    [request] = oidc.provider.seen("/token")
    assert "Authorization" not in request.headers
    assert set(request.form) == {
        "grant_type",
        "code",
        "redirect_uri",
        "code_verifier",
        "client_id",
    }


def test_every_request_names_the_product_and_asks_for_json(oidc: Client):
    oidc.sign_in()
    assert {request.headers["User-Agent"] for request in oidc.provider.requests} == {
        f"Gatehouse/{__version__}"
    }
    assert {request.headers["Accept"] for request in oidc.provider.requests} == {"application/json"}
    assert oidc.provider.seen("/userinfo") == []


@pytest.mark.parametrize(
    "said",
    [
        {"email": REMOVED, "email_verified": REMOVED, "name": REMOVED},
        {"email": None, "email_verified": None, "name": None},
        {"email": "  ", "email_verified": False, "name": "\x00\x1f"},
    ],
)
def test_what_is_not_said_is_absent(oidc: Client, said: dict):
    oidc.provider.claims.update(said)
    profile = oidc.sign_in()
    assert (profile.email, profile.email_verified, profile.display_name) == (None, False, None)


def test_names_are_cleaned_and_cut_between_characters(oidc: Client):
    oidc.provider.claims.update(name=f" \x07Jane\ud800 {'é' * 200}", preferred_username=["jane"])
    profile = oidc.sign_in()
    assert profile.display_name == f"Jane {'é' * 125}"
    assert profile.preferred_username is None


def test_a_subject_may_have_255_bytes(oidc: Client):
    oidc.provider.claims.update(sub="é" * 127 + "x")
    assert oidc.sign_in().subject == "é" * 127 + "x"


@pytest.mark.parametrize(
    ("algorithm", "key", "jwk"),
    [
        ("RS256", rsa_key(), {}),
        ("PS384", rsa_key(), {"use": REMOVED}),
        ("RS512", rsa_key(), {"alg": "RS512", "key_ops": ["verify"]}),
        ("ES256", ec_key(), {}),
    ],
)
def test_asymmetric_algorithms_that_are_announced_are_believed(
    oidc: Client, algorithm: str, key: object, jwk: dict
):
    oidc.provider.metadata["id_token_signing_alg_values_supported"] = [algorithm]
    oidc.provider.algorithm = algorithm
    oidc.provider.signing_key = key
    oidc.provider.keys = [public_jwk(key, **jwk)]
    assert oidc.sign_in().subject == SUBJECT


@pytest.mark.parametrize("secret", [None, "short"])
def test_hs256_is_signed_with_the_client_secret(oidc: Client, secret: str | None):
    if secret:
        oidc.provider.client_secret = secret
        oidc = oidc.but(client_secret=secret)
    oidc.provider.algorithm = "HS256"
    oidc.provider.signing_key = oidc.provider.client_secret.encode()
    assert oidc.sign_in().subject == SUBJECT


def test_hs256_without_a_client_secret_is_refused(oidc: Client):
    client = oidc.but(client_secret=None)
    oidc.provider.algorithm = "HS256"
    oidc.provider.signing_key = b""
    with pytest.raises(ProviderRejected):
        client.sign_in()


def test_a_small_rsa_key_is_refused(oidc: Client):
    from cryptography.hazmat.primitives.asymmetric import rsa

    small = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    oidc.provider.keys = [public_jwk(small)]

    def sign(header: dict, claims: dict) -> str:
        return signed(header, claims, small)

    oidc.provider.sign = sign
    with pytest.raises(ProviderRejected):
        oidc.sign_in()


def test_a_token_without_kid_is_believed_when_one_key_fits(oidc: Client):
    oidc.provider.header["kid"] = REMOVED
    oidc.provider.keys = [
        public_jwk(rsa_key()),
        public_jwk(ec_key(), kid="2"),
        public_jwk(rsa_key(1), kid="3", use="enc"),
        {"kty": "new-kind", "kid": "4"},
    ]
    assert oidc.sign_in().subject == SUBJECT


def test_the_client_may_be_named_twice(oidc: Client):
    oidc.provider.claims.update(aud=[oidc.config.client_id] * 2, azp=oidc.config.client_id)
    assert oidc.sign_in().subject == SUBJECT


def test_others_may_be_named_beside_the_client_that_it_was_issued_for(oidc: Client):
    client_id = oidc.config.client_id
    oidc.provider.claims.update(aud=["a-project", client_id], azp=client_id)
    assert oidc.sign_in().subject == SUBJECT


@pytest.mark.parametrize(
    ("said", "verified"),
    [("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False)],
)
def test_email_verified_may_be_a_text(oidc: Client, said: str, verified: bool):
    oidc.provider.claims.update(email_verified=said)
    assert oidc.sign_in().email_verified is verified


def test_a_token_is_good_until_the_second_it_expires(oidc: Client, clock):
    oidc.provider.claims.update(exp=int(clock.now().timestamp()) + 1)
    assert oidc.sign_in().subject == SUBJECT


# --- user info -----------------------------------------------------------------------------------


def test_user_info_adds_what_the_id_token_does_not_say(oidc: Client):
    oidc.provider.not_in_id_token = DESCRIPTION
    assert oidc.sign_in() == ExternalProfile(
        namespace=oidc.provider.issuer,
        subject=SUBJECT,
        email="jane@example.com",
        email_verified=True,
        display_name="Jane Doe",
        preferred_username="jane",
    )
    [request] = oidc.provider.seen("/userinfo")
    assert request.method == "GET"
    assert request.headers["Authorization"] == "Bearer an-access-token"
    assert request.headers["Accept"] == "application/json"


@pytest.mark.parametrize("missing", ["email", "name"])
def test_the_id_token_prevails(oidc: Client, missing: str):
    said = {"sub": SUBJECT, "email": "other@example.com", "name": "Other", "email_verified": True}
    oidc.provider.claims["email_verified"] = False
    oidc.provider.not_in_id_token = (missing,)
    oidc.provider.reply("/userinfo", said)
    profile = oidc.sign_in()
    shown = {"email": profile.email, "name": profile.display_name}
    assert shown == {"email": "jane@example.com", "name": "Jane Doe", missing: said[missing]}
    # It is said of the address that it stands beside.
    assert profile.email_verified is (missing == "email")


@pytest.mark.parametrize(
    ("email", "verified"), [("jane@example.com", True), ("other@example.com", False)]
)
def test_user_info_may_tell_that_the_address_is_verified(oidc: Client, email: str, verified: bool):
    oidc.provider.not_in_id_token = ("email_verified",)
    oidc.provider.reply("/userinfo", {**PERSON, "email": email})
    profile = oidc.sign_in()
    assert (profile.email, profile.email_verified) == ("jane@example.com", verified)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Reply({**PERSON, "sub": "somebody else"}), "somebody else's"),
        (Reply({"email": "jane@example.com", "email_verified": True}), "the subject is missing"),
        (Reply({**PERSON, "email": "jane@localhost"}), "the e-mail address is not valid"),
        (Reply({**PERSON, "email_verified": 1}), "email_verified is not a boolean"),
        (Reply(b"eyJhbGciOiJub25lIn0.e30.", content_type="application/jwt"), "not JSON"),
        (Reply([PERSON]), "not an object"),
        (Reply({"error": "invalid_token"}, 401), "status 401: invalid_token"),
        (
            Reply(
                b"",
                403,
                {"WWW-Authenticate": 'Bearer realm="a", error="insufficient_scope"'},
            ),
            "status 403: insufficient_scope",
        ),
        (Reply(b"", 302, {"Location": "/elsewhere"}), "redirects are not followed"),
        (Reply(b"", 500), "status 500"),
    ],
)
def test_a_user_info_that_fails_is_left_out(oidc: Client, caplog, answer: Reply, told: str):
    oidc.provider.not_in_id_token = DESCRIPTION
    oidc.provider.reply("/userinfo", lambda _: answer)
    assert oidc.sign_in() == ExternalProfile(namespace=oidc.provider.issuer, subject=SUBJECT)
    assert "external provider main (oidc): user info: " in caplog.text
    assert told in caplog.text


def test_a_slow_user_info_does_not_end_the_sign_in(oidc: Client):
    callback = oidc.callback(oidc.authorize())
    oidc.provider.not_in_id_token = DESCRIPTION
    oidc.provider.reply("/userinfo", PERSON, pause=60)
    oidc.rt.http_client.limits = IMPATIENT
    assert oidc.identify(callback).subject == SUBJECT


def test_a_provider_without_user_info_is_not_asked(oidc: Client):
    oidc.provider.not_in_id_token = DESCRIPTION
    oidc.provider.metadata["userinfo_endpoint"] = REMOVED
    assert oidc.sign_in().email is None
    assert oidc.provider.seen("/userinfo") == []


# --- everything wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_is_wrong_nobody_is_signed_in(oidc: Client, fault: str):
    callback = oidc.callback(oidc.authorize())
    FAULTS[fault](oidc.provider)
    # The keys that were read at the start may be the right ones still.
    oidc.rt.clock.advance(minutes=6)
    with pytest.raises(ProviderRejected) as refused:
        oidc.identify(callback)
    assert refused.value.public_message == "The external sign-in failed."
    assert oidc.provider.seen("/token2") == []


@pytest.mark.parametrize("fault", SLOW_FAULTS)
def test_a_slow_answer_ends_in_time(oidc: Client, fault: str):
    callback = oidc.callback(oidc.authorize())
    SLOW_FAULTS[fault](oidc.provider)
    oidc.rt.http_client.limits = IMPATIENT
    with pytest.raises(ProviderRejected) as refused:
        oidc.identify(callback)
    assert "not complete in time" in refused.value.reason


@pytest.mark.parametrize(
    "wrong",
    [{"pkce_verifier": "x" * 43}, {"nonce": "another"}, {"nonce": None}, {"nonce": ""}],
)
def test_secrets_of_another_sign_in_are_refused(oidc: Client, wrong: dict):
    with pytest.raises(ProviderRejected):
        oidc.sign_in(**wrong)


def test_a_code_works_once(oidc: Client):
    callback = oidc.callback(oidc.authorize())
    oidc.identify(callback)
    with pytest.raises(ProviderRejected):
        oidc.identify(callback)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply({"error": "invalid_client"}, 401), "status 401: invalid_client"),
        (Reply({"error": "invalid_grant", "error_description": "of Jane"}, 400), "invalid_grant"),
        (Reply({"error": "bad_verification_code"}), "bad_verification_code"),
        (Reply({"error": 'a"b\\c\x1b[2Jd\u202e' + "x" * 200}, 400), "a b c [2Jd xxx"),
        (Reply({"error": {"code": 190}}, 400), "status 400"),
    ],
)
def test_why_the_provider_refused_is_logged(oidc: Client, caplog, reply: Reply, told: str):
    oidc.provider.reply("/token", lambda _: reply)
    with pytest.raises(ProviderRejected):
        oidc.sign_in()
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("external provider main (oidc): ")
    assert told in line
    assert len(line) < 170
    assert "Jane" not in line


def test_why_the_discovery_is_refused_is_logged(oidc: Client, caplog):
    oidc.provider.reply(DISCOVERY, {"error": "invalid_request"}, status=400)
    with pytest.raises(DiscoveryFailed):
        oidc.authorize()
    assert "main (oidc): status 400: invalid_request" in caplog.text


def test_an_unsupported_algorithm_is_called_unsupported(oidc: Client, caplog):
    oidc.provider.metadata["id_token_signing_alg_values_supported"] = ["RS256", "EdDSA"]
    oidc.provider.sign = lambda header, claims: f"{encoded({'alg': 'EdDSA'})}.{encoded(claims)}.eA"
    with pytest.raises(ProviderRejected):
        oidc.sign_in()
    assert "the ID token's algorithm is unsupported: EdDSA" in caplog.text


def test_a_provider_that_signs_with_nothing_supported_is_refused_at_the_start(oidc: Client):
    oidc.provider.metadata["id_token_signing_alg_values_supported"] = ["EdDSA", "none"]
    with pytest.raises(DiscoveryFailed) as failed:
        oidc.authorize()
    assert "unsupported" in failed.value.reason


def test_no_failure_is_logged_with_a_secret(oidc: Client, caplog):
    caplog.set_level("INFO")
    callback = oidc.callback(oidc.authorize())
    oidc.provider.reply("/token", {"error": "invalid\n_grant"}, status=200)
    with pytest.raises(ProviderRejected):
        oidc.identify(callback)
    oidc.provider.reply("/token", lambda _: 1 / 0)
    with pytest.raises(ProviderRejected):
        oidc.identify(callback)
    assert "main (oidc): invalid _grant" in caplog.text
    secrets = (callback.code, callback.pkce_verifier, oidc.config.client_secret)
    assert [secret for secret in secrets if secret in caplog.text] == []


# --- the issuer in the callback (RFC 9207) --------------------------------------------------------


def test_an_issuer_that_is_announced_must_be_named(oidc: Client):
    oidc.provider.metadata["authorization_response_iss_parameter_supported"] = True
    assert oidc.sign_in(issuer=oidc.provider.issuer).subject == SUBJECT
    with pytest.raises(ProviderRejected):
        oidc.sign_in(issuer=None)


@pytest.mark.parametrize("announced", [True, False])
def test_another_issuer_in_the_callback_is_refused_before_the_code_is_sent(
    oidc: Client, announced: bool
):
    oidc.provider.metadata["authorization_response_iss_parameter_supported"] = announced
    with pytest.raises(ProviderRejected):
        oidc.sign_in(issuer="https://other.example.com")
    assert oidc.provider.seen("/token") == []


# --- discovery -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", DISCOVERY_FAULTS)
def test_a_provider_that_does_not_describe_itself_cannot_be_used(oidc: Client, fault: str):
    DISCOVERY_FAULTS[fault](oidc.provider)
    with pytest.raises(DiscoveryFailed) as failed:
        oidc.authorize()
    assert failed.value.public_message == "OIDC discovery failed."


def test_a_slow_discovery_ends_in_time(oidc: Client):
    oidc.provider.reply(DISCOVERY, {}, pause=60)
    oidc.rt.http_client.limits = IMPATIENT
    with pytest.raises(DiscoveryFailed):
        oidc.authorize()


def test_who_waits_for_anothers_discovery_does_so_in_the_time_of_its_own_sign_in(oidc: Client):
    asked, goes_on = threading.Event(), threading.Event()

    def answer(_request: Request) -> Reply:
        asked.set()
        goes_on.wait(10)
        return Reply(oidc.provider.metadata)

    oidc.provider.reply(DISCOVERY, answer)
    first = threading.Thread(target=oidc.authorize)
    first.start()
    assert asked.wait(10)
    oidc.rt.http_client.limits = ResponseLimits(total_seconds=0.2)
    with pytest.raises(DiscoveryFailed) as failed:
        oidc.authorize()
    assert "waiting for another request" in failed.value.reason
    goes_on.set()
    first.join(10)
    assert len(oidc.provider.seen(DISCOVERY)) == 1
    assert oidc.authorize()


def test_a_failure_is_not_remembered(oidc: Client):
    DISCOVERY_FAULTS["another issuer"](oidc.provider)
    with pytest.raises(DiscoveryFailed):
        oidc.authorize()
    oidc.provider.metadata["issuer"] = oidc.provider.issuer
    assert oidc.authorize()


def test_documents_are_remembered_for_five_minutes(oidc: Client, clock):
    oidc.sign_in()
    clock.advance(seconds=299)
    oidc.sign_in()
    assert len(oidc.provider.seen(DISCOVERY)) == len(oidc.provider.seen("/jwks")) == 1
    clock.advance(seconds=1)
    oidc.sign_in()
    assert len(oidc.provider.seen(DISCOVERY)) == len(oidc.provider.seen("/jwks")) == 2


def test_a_new_key_is_fetched_once(oidc: Client):
    oidc.sign_in()
    oidc.provider.signing_key = rsa_key(1)
    oidc.provider.header["kid"] = "2"
    oidc.provider.keys = [public_jwk(rsa_key(1), kid="2")]
    assert oidc.sign_in().subject == SUBJECT
    assert oidc.sign_in().subject == SUBJECT
    assert len(oidc.provider.seen("/jwks")) == 2


def test_an_unknown_key_is_asked_for_once_a_sign_in(oidc: Client):
    oidc.provider.header["kid"] = "unknown"
    with pytest.raises(ProviderRejected):
        oidc.sign_in()
    assert len(oidc.provider.seen("/jwks")) == 2


def test_many_that_start_at_once_make_one_request(oidc: Client):
    started = threading.Barrier(20)
    document = dict(oidc.provider.metadata)
    from tests.support.fake_provider import Reply

    oidc.provider.reply(DISCOVERY, lambda _: Reply(document, pause=0.2))
    states: list[str] = []

    def start() -> None:
        started.wait()
        states.append(oidc.authorize().state)

    threads = [threading.Thread(target=start) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(states)) == 20
    assert len(oidc.provider.seen(DISCOVERY)) == len(oidc.provider.seen("/jwks")) == 1


def test_an_exchange_needs_a_token_endpoint(oidc: Client):
    oidc.provider.metadata["token_endpoint"] = REMOVED
    callback = oidc.callback(oidc.authorize())
    with pytest.raises(DiscoveryFailed):
        oidc.identify(callback)


def test_a_provider_may_end_its_name_in_a_slash(oidc: Client):
    oidc.provider.metadata["issuer"] = f"{oidc.provider.issuer}/"
    assert oidc.sign_in().namespace == f"{oidc.provider.issuer}/"


@pytest.mark.parametrize(("documented", "signed"), [("", "/"), ("/", ""), ("//", "//")])
def test_a_provider_has_one_name(oidc: Client, documented: str, signed: str):
    oidc.provider.metadata["issuer"] = f"{oidc.provider.issuer}{documented}"
    oidc.provider.claims["iss"] = f"{oidc.provider.issuer}{signed}"
    with pytest.raises((ProviderRejected, DiscoveryFailed)):
        oidc.sign_in()


def test_an_issuer_must_be_stored(client):
    with pytest.raises(ProviderMisconfigured):
        client().authorize()


# --- test of a provider --------------------------------------------------------------------------


def test_a_test_says_what_the_provider_cannot_do(oidc: Client):
    oidc.provider.metadata |= {
        "userinfo_endpoint": REMOVED,
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "code_challenge_methods_supported": ["plain"],
        "scopes_supported": ["openid", "email"],
    }
    checks = oidc.driver.test()["checks"]
    assert [(check["name"], check["success"]) for check in checks] == [
        ("discovery", True),
        ("jwks", True),
        ("token_auth", False),
        ("userinfo", False),
        ("pkce", False),
        ("scopes", False),
    ]
    told = {check["name"]: check["message"] for check in checks}
    assert told["scopes"] == "The scopes do not include profile."
    for client in (oidc.but(token_auth=TokenAuth.POST), oidc.but(client_secret=None)):
        found = {check["name"] for check in client.driver.test()["checks"]}
        assert "token_auth" not in found


def test_a_failed_test_knows_why(oidc: Client):
    DISCOVERY_FAULTS["no jwks_uri"](oidc.provider)
    with pytest.raises(DiscoveryFailed) as failed:
        oidc.driver.test()
    assert failed.value.reason == "jwks_uri is missing"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-32-be"])
def test_what_providers_say_is_utf_8(encoding: str):
    assert parse_json('\ufeff{"sub": "é"}'.encode()) == {"sub": "é"}
    with pytest.raises(ValueError, match=r"decode|Expecting|Extra data"):
        parse_json('{"sub": "é"}'.encode(encoding))
