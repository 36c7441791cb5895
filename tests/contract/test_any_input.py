"""No input whatever makes the service fail: a property over all routes."""

import ipaddress
import json
from functools import cache
from urllib.parse import quote, urlencode

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.web.operation import operation_of
from tests.contract.routes import routes
from tests.support import factories
from tests.support.api import ApiClient
from tests.support.strategies import CHARACTERS

ONE_RUN = settings(max_examples=150)

TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=20),
    st.text(st.characters(), max_size=5).map(lambda text: text + "\x00"),
    st.sampled_from(["", " ", "\ud800", "😀" * 30, "x" * 70_000, "a@b.c", "null", "%00", "../.."]),
)
NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, -1, 0, True, 1e308]),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
# What the path of a route may be fed with; "/" would only lead to another route.
PATH_VALUES = st.one_of(
    TEXTS.filter(lambda text: len(text) < 1000),
    st.integers().map(str),
    st.uuids().map(str),
    st.sampled_from(["0", "-1", "9" * 30, "1.5", "NaN", "others", "%2e%2e", "{", "٣"]),
).map(lambda text: quote(text.encode("utf-8", "surrogatepass"), safe=""))


def fields_of(app, route):
    schema = operation_of(app.view_functions[route.endpoint]).body
    return sorted(schema().fields) if schema else []


@cache
def bodies(*fields):
    """Return JSON texts: objects with the route's own fields, and anything else."""
    names = st.sampled_from([*fields, "another"])
    objects = st.dictionaries(names, VALUES, max_size=len(fields) + 1)
    complete = st.fixed_dictionaries(dict.fromkeys(fields, VALUES))
    return st.one_of(
        st.one_of(complete, objects, VALUES).map(lambda value: json.dumps(value).encode()),
        st.binary(max_size=50),
    )


@pytest.mark.parametrize("anonymous", [True, False], ids=["anonymous", "administrator"])
def test_any_body_and_path_get_an_enveloped_answer(app, rt, admin, anonymous):
    known = [route for route in routes(app) if route.rule.startswith("/api/v1/")]
    fields = {route.name: fields_of(app, route) for route in known}

    @ONE_RUN
    @given(st.data())
    def check(data):
        route = data.draw(st.sampled_from(known), label="route")
        path = route.path(**{name: data.draw(PATH_VALUES) for name in route.arguments})
        body = data.draw(bodies(*fields[route.name]), label="body")
        client = ApiClient(app) if anonymous else factories.bearer_of(rt, app, admin)
        # The client itself insists on envelope, headers and description.
        answer = client.call(route.method, path, body, described=path == route.path())
        # Here is no SMTP server, and codes by mail are asked for before anything else is.
        assert answer.status < 500 or answer.code == "mail.not_configured", answer

    check()


QUERY_VALUES = st.one_of(TEXTS.filter(lambda text: len(text) < 1000), NUMBERS.map(str))


def test_any_query_gets_an_enveloped_answer(app, rt, admin):
    read = [
        (route, query)
        for route in routes(app)
        if route.rule.startswith("/api/v1/admin")
        and (query := operation_of(app.view_functions[route.endpoint]).query)
    ]
    boss = factories.bearer_of(rt, app, admin)

    @ONE_RUN
    @given(st.data())
    def check(data):
        route, query = data.draw(st.sampled_from(read), label="route")
        names = [field.data_key or name for name, field in query().fields.items()]
        chosen = data.draw(st.dictionaries(st.sampled_from(names), QUERY_VALUES, max_size=4))
        text = {name: value.encode("utf-8", "surrogatepass") for name, value in chosen.items()}
        answer = boss.call(route.method, f"{route.path()}?{urlencode(text)}", described=False)
        assert answer.status < 500, answer

    check()


def test_any_set_up_body_is_refused_or_obeyed(app, rt, api):
    @ONE_RUN
    @given(bodies("username", "email", "password"))
    def check(body):
        answer = api.post("/auth/setup", body)
        assert answer.status in {201, 400}
        if answer.status == 201:
            factories.delete_all_users(rt)

    check()


NAMES_OF_HEADERS = st.sampled_from(
    [
        "Accept",
        "Authorization",
        "Content-Length",
        "Content-Type",
        "Cookie",
        "Forwarded",
        "Host",
        "If-None-Match",
        "Origin",
        "Referer",
        "Sec-Fetch-Site",
        "Transfer-Encoding",
        "User-Agent",
        "X-CSRF-Token",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Request-Start",
    ]
)
# A server hands header bytes on as latin-1 and lets no control characters through.
HEADER_TEXTS = st.one_of(
    st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")),
    st.sampled_from(
        [
            "",
            "http://[",
            "http://[::1]:99999",
            "https://localhost:0x50",
            "//",
            "t=1e400",
            "t=nan",
            "for=;;by",
            'for="[::1]:1", for=_hidden',
            "1.2.3.4, , ::1%eth0",
            "Bearer ",
            "Bearer \xff.\xff.\xff",
            "Bearer eyJhbGciOiJub25lIn0.e30.",
            "Bearer eyJhbGciOiJIUzI1NiIsImtpZCI6W119.e30.x",
            "service_access=a; service_refresh=\xff; service_csrf=\xfe",
            'service_refresh="unfinished',
            "application/json; charset=nonsense",
            "-1",
            "9" * 5000,
        ]
    ),
)


def test_any_headers_get_an_enveloped_answer(make_app):
    app = make_app(trusted_proxies=(ipaddress.ip_network("127.0.0.1"),))
    known = [route for route in routes(app) if route.rule.startswith("/api/v1/")]
    body = b'{"identifier": "a", "password": "b"}'

    @ONE_RUN
    @given(st.sampled_from(known), st.dictionaries(NAMES_OF_HEADERS, HEADER_TEXTS, max_size=4))
    def check(route, headers):
        assume(headers.get("Transfer-Encoding") is None or "Content-Length" not in headers)
        client = ApiClient(app)
        answer = client.call(route.method, route.path(), body, headers=headers, described=False)
        assert answer.status < 500, answer

    check()
