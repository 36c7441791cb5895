"""The API description: valid, complete, and nothing in it that the service does not do."""

import re

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from app.web import cookies
from app.web.operation import operation_of
from tests.contract.routes import routes
from tests.support.openapi import codes_of, envelope_of, resolved

OPENAPI = "/api/v1/openapi.json"
# Without any guard: what orchestrators, a scraper and a page's own files must reach at any rate.
UNGUARDED = {
    "/health",
    "/health/ready",
    "/health/metrics",
    "/api/v1/docs/assets/<path:name>",
    "/api/v1/docs/swagger-ui/<version>/<name>",
}
REVOKING_OTHERS = [{"accessCookie", "csrfToken", "refreshCookie"}, {"bearer", "refreshCookie"}]
LOGGING_OUT = [set(), {"refreshCookie", "csrfToken"}, {"accessCookie", "csrfToken"}, {"bearer"}]


@pytest.fixture
def document(api):
    return api.get(OPENAPI).json


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_the_document_is_valid_openapi(document):
    assert document["openapi"].startswith("3.1")
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


def test_every_route_is_described_once(app, document):
    described = {(method.upper(), path) for path, method, _ in operations(document)}
    assert described == {(route.method, route.template) for route in routes(app)}
    names = [operation["operationId"] for *_, operation in operations(document)]
    assert len(names) == len(set(names))


def test_every_operation_says_what_it_is_for_and_belongs_to_an_area(document):
    tags = {tag["name"]: tag["description"] for tag in document["tags"]}
    for path, method, operation in operations(document):
        assert operation["summary"], (method, path)
        assert tags[operation["tags"][0]], (method, path)


def test_every_view_has_a_guard_or_is_known_to_have_none(app):
    silent = {
        route.rule
        for route in routes(app)
        if operation_of(app.view_functions[route.endpoint]).access is None
    }
    assert silent == UNGUARDED


def test_each_refusal_has_an_example_with_its_own_code(document):
    for path, method, operation in operations(document):
        for status, answer in operation["responses"].items():
            response = resolved(document, answer)
            if int(status) < 400:
                continue
            examples = response["content"]["application/json"]["examples"].values()
            shown = {resolved(document, example)["value"]["code"] for example in examples}
            assert shown == set(codes_of(document, response)), (method, path, status)


def test_success_is_described_with_its_envelope(document):
    me = document["paths"]["/api/v1/auth/me"]["get"]["responses"]["200"]
    assert me["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/MeAnswer"}
    envelope = document["components"]["schemas"]["MeAnswer"]
    assert envelope["required"] == ["code", "msg", "data", "error"]
    assert envelope["properties"]["data"] == {"$ref": "#/components/schemas/MeData"}
    logout = document["paths"]["/api/v1/auth/logout"]["post"]["responses"]["200"]
    assert envelope_of(document, logout)["data"]["const"] is None


def test_a_body_is_described_as_it_is_checked(document):
    body = document["components"]["schemas"]["LoginBody"]
    assert body["additionalProperties"] is True
    assert body["required"] == ["identifier", "password"]
    assert body["properties"]["identifier"]["maxLength"] == 1024
    assert not re.fullmatch(body["properties"]["password"]["pattern"], "with\0nul")


def test_a_query_parameter_is_optional_but_never_null(document):
    [fields] = document["paths"]["/api/v1/auth/me"]["get"]["parameters"]
    assert (fields["name"], fields["in"], fields["required"]) == ("fields", "query", False)
    assert fields["schema"]["type"] == "string"


@pytest.mark.parametrize(
    ("method", "path", "schemes"),
    [
        ("post", "/auth/login", [set()]),
        ("get", "/auth/me", [{"accessCookie"}, {"bearer"}, {"accessToken"}]),
        ("put", "/auth/password", [{"accessCookie", "csrfToken"}, {"bearer"}]),
        ("post", "/auth/refresh", [{"refreshCookie", "csrfToken"}]),
        ("delete", "/auth/sessions/others", REVOKING_OTHERS),
        ("post", "/auth/logout", LOGGING_OUT),
    ],
)
def test_security_says_which_tokens_a_route_takes(document, method, path, schemes):
    security = document["paths"][f"/api/v1{path}"][method]["security"] or [{}]
    assert [set(alternative) for alternative in security] == schemes


def test_the_security_schemes_name_the_real_cookies(document):
    schemes = document["components"]["securitySchemes"]
    assert schemes["accessCookie"]["name"] == cookies.ACCESS_COOKIE
    assert schemes["refreshCookie"]["name"] == cookies.REFRESH_COOKIE


def test_health_is_described_without_an_envelope(document):
    schema = document["paths"]["/health"]["get"]["responses"]["200"]["content"]["application/json"]
    assert schema["schema"] == {"$ref": "#/components/schemas/HealthData"}
    metrics = document["paths"]["/health/metrics"]["get"]["responses"]["200"]["content"]
    assert list(metrics) == ["text/plain"]
    ready = document["paths"]["/health/ready"]["get"]["responses"]["503"]
    assert codes_of(document, ready) == ["config.error", "database.error"]
