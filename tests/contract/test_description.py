"""The API description against the views' declarations and the interface: nothing is missing."""

import fnmatch
import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from app.core.access import SessionUserMismatch
from app.core.errors import DatabaseUnavailable, RedisUnavailable
from app.factory import create_app
from app.web import origin
from app.web import runtime as web_runtime
from app.web.errors import status_of
from app.web.operation import operation_of
from tests.contract.routes import routes
from tests.support import servers
from tests.support.clock import FakeClock
from tests.support.openapi import DOCUMENT, NAME, codes_of, envelope_of, resolved

AUTH = "/api/v1/auth"
# Request bodies: every field with its JSON type; `?` where it may be left out.
BODIES = {
    "POST /auth/setup": "username:string email:string password:string",
    "POST /auth/register": "username:string email:string password:string",
    "POST /auth/register/resend": "identifier:string",
    "POST /auth/invitations/{token}/accept": "username:string password:string",
    "POST /auth/login": "identifier:string password:string remember:boolean?",
    "POST /auth/mfa/challenge/verify": "flow_token:string method:string code:string "
    "remember:boolean? remember_device:boolean?",
    "POST /auth/mfa/challenge/email-code/send": "flow_token:string",
    "POST /auth/passkeys/login/start": "identifier:string? conditional:boolean?",
    "POST /auth/passkeys/login/finish": "flow_id:string credential:object remember:boolean?",
    "POST /auth/passkeys/register/start": "name:string?",
    "POST /auth/passkeys/register/finish": "flow_id:string credential:object name:string?",
    "PATCH /auth/passkeys/{passkey_id}": "name:string",
    "POST /auth/mfa/totp/setup/finish": "flow_token:string code:string name:string?",
    "PUT /auth/password": "current_password:string new_password:string",
    "PUT /auth/profile/avatar/source": "source:string",
    "POST /admin/policy-groups/{id}/migrate-assignments": "target_group_id:integer",
}
# What answers have at least.
ANSWERS = {
    "POST /auth/check": "setup_state:string has_users:boolean allow_user_registration:boolean "
    "passkey_login_enabled:boolean password_login_enabled:boolean",
    "GET /auth/invitations/{token}": "email:string expires_at:string",
    "POST /auth/login": "status:string expires_in:integer flow_token:string methods:array "
    "remember_device_secs:integer",
    "POST /auth/mfa/challenge/email-code/send": "expires_in:integer resend_after:integer",
    "GET /auth/mfa": "enabled:boolean factors:array recovery_codes_remaining:integer",
    "POST /auth/mfa/totp/setup/start": "flow_token:string expires_in:integer secret:string "
    "otpauth_uri:string",
    "POST /auth/mfa/totp/setup/finish": "factor:object recovery_codes:array",
    "POST /auth/profile/avatar/upload": "profile:object applied:boolean",
    "POST /admin/policy-groups/{id}/migrate-assignments": "affected_teams:integer "
    "affected_users:integer migrated_assignments:integer source_group_id:integer "
    "target_group_id:integer",
}
# When which code is due.
STATED = [
    ("POST /auth/setup", 400, "validation.system_already_initialized"),
    ("POST /auth/register", 400, "validation.system_not_initialized"),
    ("POST /auth/register", 403, "auth.registration_disabled"),
    ("GET /auth/me", 400, "bad_request"),
    ("GET /auth/sessions", 403, "auth.password_change_required"),
    *[
        (operation, 400, f"auth.invitation_{state}")
        for operation in (
            "GET /auth/invitations/{token}",
            "POST /auth/invitations/{token}/accept",
        )
        for state in ("invalid", "expired", "revoked", "accepted")
    ],
    ("POST /auth/login", 401, "auth.credentials_failed"),
    ("POST /auth/login", 403, "auth.account_disabled"),
    ("POST /auth/login", 403, "auth.pending_activation"),
    ("POST /auth/login", 429, "rate_limited"),
    ("POST /auth/mfa/challenge/verify", 401, "auth.mfa_attempts_exceeded"),
    ("POST /auth/refresh", 401, "auth.refresh_token_reuse_detected"),
    ("POST /auth/refresh", 401, "auth.token_missing"),
    ("POST /auth/refresh", 403, "auth.csrf_token_invalid"),
    ("POST /auth/password/reset/confirm", 410, "auth.contact_verification_expired"),
    ("POST /auth/profile/avatar/upload", 400, "avatar.file_required"),
    ("DELETE /auth/passkeys/{passkey_id}", 409, "conflict"),
    *[
        ("POST /admin/policy-groups/{id}/migrate-assignments", status, code)
        for status, code in (
            (400, "bad_request"),
            (401, "auth.token_missing"),
            (403, "auth.admin_required"),
            (404, "not_found"),
        )
    ],
]


@pytest.fixture(scope="module")
def described_app(tmp_path_factory):
    """An application without database and Redis, neither of which the description needs."""
    folder = tmp_path_factory.mktemp("described")
    nowhere = f"sqlite:///{folder}/nothing.db", f"unix://{folder}/nothing.sock"
    app = create_app(servers.cheap_config(folder, *nowhere), clock=FakeClock())
    yield app
    app.extensions[web_runtime.EXTENSION].close()


@pytest.fixture(scope="module")
def document(described_app):
    return described_app.test_client().get(DOCUMENT).get_json()


def find(document, name):
    """Return an operation named as the interface does it."""
    method, path = name.split()
    return document["paths"][f"/api/v1{path}"][method.lower()]


def described(document):
    """Yield every operation with its name."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def codes(document, operation):
    """Return the promised (status, code) of an operation's refusals."""
    found = set()
    for status, answer in operation["responses"].items():
        if int(status) >= 400:
            found |= {(int(status), code) for code in codes_of(document, answer)}
    return found


def members(document, schema):
    """Return a schema's members by name with their type, those of all its shapes together."""
    schema = resolved(document, schema)
    found = {}
    for shape in schema.get("oneOf", []):
        found |= members(document, shape)
    for name, member in schema.get("properties", {}).items():
        kind = resolved(document, member).get("type")
        kinds = [kind] if isinstance(kind, str) else [one for one in kind or [] if one != "null"]
        found[name] = kinds[0] if kinds else None
    return found


def wanted(fields):
    """Read a line of the tables above: types by name."""
    return dict(field.rstrip("?").split(":") for field in fields.split())


# --- every error code of every operation -------------------------------------------------------


def test_every_declared_refusal_is_described_and_no_other(described_app, document):
    outages = {(503, error.code.value) for error in (DatabaseUnavailable, RedisUnavailable)}
    everywhere = {(500, "internal_server_error"), *outages}
    guard = {
        (status_of(error).value, error.code.value)
        for error in (*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS, SessionUserMismatch)
    }
    for route in routes(described_app):
        operation = operation_of(described_app.view_functions[route.endpoint])
        promised = codes(document, document["paths"][route.template][route.method.lower()])
        declared = {(status_of(error).value, error.code.value) for error in operation.errors}
        is_guarded = operation.access in {"session", "admin"} and route.method != "GET"
        assert declared <= promised, (route.name, declared - promised)
        assert promised <= declared | everywhere | (guard if is_guarded else set()), route.name
        assert (500, "internal_server_error") in promised
        if is_guarded:
            assert guard <= promised, route.name
        if operation.access and operation.is_enveloped:
            assert outages <= promised, route.name


def test_who_needs_a_session_is_told_what_a_missing_one_is_answered_with(described_app, document):
    public = {f"{r.method} {r.template}" for r in routes(described_app) if r.is_public}
    missing = {(401, f"auth.token_{why}") for why in ("missing", "invalid", "expired")}
    guarded = {
        name: operation
        for name, operation in described(document)
        if {} not in operation["security"]
        and any("accessCookie" in way for way in operation["security"])
    }
    assert len(guarded) > 25
    assert guarded.keys() & public == set()
    for name, operation in guarded.items():
        assert missing <= codes(document, operation), name


def test_what_the_interface_states_is_described(document):
    for name, status, code in STATED:
        assert (status, code) in codes(document, find(document, name)), name


# --- names that generated clients call ---------------------------------------------------------


def test_every_operation_keeps_the_name_that_generated_clients_call_it_by(document):
    """A name that changes breaks whoever calls it: add to the list, change nothing in it."""
    listed = Path(__file__).with_name("operation_ids.txt").read_text().splitlines()
    found = {f"{operation['operationId']} {name}" for name, operation in described(document)}
    assert found == set(listed)


def test_operations_are_named_as_functions_are_and_no_two_alike(document):
    names = [operation["operationId"] for _, operation in described(document)]
    assert [name for name in names if not re.fullmatch("[a-z]+([A-Z][a-z0-9]+)*", name)] == []
    assert len({name.lower() for name in names}) == len(names)


# --- every parameter, body and answer ----------------------------------------------------------


def parameters(document, route):
    """Return the parameters of a route."""
    operation = document["paths"][route.template][route.method.lower()]
    return [resolved(document, parameter) for parameter in operation["parameters"]]


def test_every_variable_of_a_path_is_a_parameter(described_app, document):
    for route in routes(described_app):
        found = {
            (p["name"], p["required"]) for p in parameters(document, route) if p["in"] == "path"
        }
        assert found == {(name, True) for name in route.arguments}, route.name


def test_whom_a_change_is_meant_for_is_a_parameter_wherever_it_is_compared(described_app, document):
    mismatch = 403, "auth.session_user_mismatch"
    for route in routes(described_app):
        promised = codes(document, document["paths"][route.template][route.method.lower()])
        named = [p for p in parameters(document, route) if p["name"] == "X-Session-User"]
        assert bool(named) == (mismatch in promised and route.method != "GET"), route.name


def test_every_field_of_a_query_is_a_parameter(described_app, document):
    for route in routes(described_app):
        schema = operation_of(described_app.view_functions[route.endpoint]).query
        found = {p["name"] for p in parameters(document, route) if p["in"] == "query"}
        fields = schema().fields if schema else {}
        assert found == {field.data_key or name for name, field in fields.items()}, route.name


def test_the_interfaces_bodies_are_described(document):
    for name, fields in BODIES.items():
        body = find(document, name)["requestBody"]
        assert body["required"] is True
        schema = resolved(document, body["content"]["application/json"]["schema"])
        assert members(document, schema) == wanted(fields), name
        required = {field.partition(":")[0] for field in fields.split() if not field.endswith("?")}
        assert set(schema.get("required", [])) == required, name


def test_the_interfaces_answers_are_described(document):
    for name, fields in ANSWERS.items():
        [success] = [a for s, a in find(document, name)["responses"].items() if s.startswith("2")]
        data = envelope_of(document, success)["data"]
        assert wanted(fields).items() <= members(document, data).items(), name


def test_every_avatar_upload_is_a_file(document):
    body = find(document, "POST /auth/profile/avatar/upload")["requestBody"]
    [(media_type, content)] = body["content"].items()
    assert (media_type, content["schema"]["required"]) == ("multipart/form-data", ["file"])


# --- examples ----------------------------------------------------------------------------------


def contents(document):
    """Yield every JSON body and answer with where it is."""
    for name, operation in described(document):
        body = operation.get("requestBody", {}).get("content", {})
        if "application/json" in body:
            yield name, ["paths", *location(name), "requestBody"], body
        for status, answer in operation["responses"].items():
            if "$ref" not in answer and "application/json" in answer.get("content", {}):
                place = ["paths", *location(name), "responses", status]
                yield f"{name} {status}", place, answer["content"]
    for component, answer in document["components"]["responses"].items():
        yield component, ["components", "responses", component], answer["content"]


def location(name):
    method, path = name.split()
    return path.replace("~", "~0").replace("/", "~1"), method.lower()


def test_every_json_body_and_answer_has_examples_that_hold(document):
    registry = Registry().with_resource(NAME, DRAFT202012.create_resource(document))
    seen = 0
    for name, place, content in contents(document):
        pointer = "/".join([*place, "content", "application~1json", "schema"])
        schema = {"$ref": f"{NAME}#/{pointer}".replace("{", "%7B").replace("}", "%7D")}
        judge = Draft202012Validator(schema, registry=registry, format_checker=FormatChecker())
        examples = content["application/json"].get("examples")
        assert examples, name
        for example in examples.values():
            value = resolved(document, example)["value"]
            complaints = [error.message for error in judge.iter_errors(value)]
            assert complaints == [], (name, example)
            seen += 1
    assert seen > 300


# --- what operations share ---------------------------------------------------------------------


def test_every_envelope_is_a_component_that_an_answer_can_be_typed_by(document):
    """A generator calls what stands inline `Login200Response`, and repeats it."""
    for name, _, content in contents(document):
        schema = content["application/json"]["schema"]
        shape = schema.get("allOf", [schema])[0]
        assert shape["$ref"].startswith("#/components/schemas/"), name


def test_every_refusal_has_a_title_of_its_own_that_its_type_is_named_after(document):
    titles = [
        schema["title"]
        for _, _, content in contents(document)
        if "allOf" in (schema := content["application/json"]["schema"])
    ]
    assert len(titles) > 80
    assert len(set(titles) | document["components"]["schemas"].keys()) == len(titles) + len(
        document["components"]["schemas"]
    )


def test_no_two_components_of_a_kind_say_the_same(document):
    for kind, components in document["components"].items():
        texts = [json.dumps(component, sort_keys=True) for component in components.values()]
        assert len(set(texts)) == len(texts), kind


def test_every_component_is_used(document):
    text = json.dumps(document)
    unused = {
        name
        for kind, components in document["components"].items()
        for name in components
        if (kind, name) != ("schemas", "ErrorCode")
        and kind != "securitySchemes"
        and f'"#/components/{kind}/{name}"' not in text
    }
    assert unused == set()


def test_a_refusal_of_one_condition_is_named_after_it(document):
    for name, operation in described(document):
        for status, answer in operation["responses"].items():
            if int(status) >= 400 and len(codes_of(document, answer)) == 1:
                examples = resolved(document, answer)["content"]["application/json"]["examples"]
                assert "$ref" in answer or len(examples) > 1, (name, status)


def test_the_error_code_is_any_that_an_operation_promises(document):
    promised = {
        code for _, operation in described(document) for _, code in codes(document, operation)
    }
    everywhere = {"endpoint.not_found"}
    assert set(document["components"]["schemas"]["ErrorCode"]["enum"]) == promised | everywhere


def test_pages_are_told_what_to_do_about_every_code(document):
    """By the table of docs/integration.md, whose last row is for what has no code."""
    page = (servers.ROOT / "docs" / "integration.md").read_text()
    rows = page.partition("### What to do with a refusal")[2].splitlines()
    cells = " ".join(row.split("|")[1] for row in rows if row.startswith("| `"))
    patterns = re.findall(r"`([a-z_]+(?:\.[a-z_*]+)?)`", cells.replace("`code`", ""))
    promised = document["components"]["schemas"]["ErrorCode"]["enum"]
    named = {code for pattern in patterns for code in fnmatch.filter(promised, pattern)}
    assert set(promised) - named == set()
    assert [pattern for pattern in patterns if not fnmatch.filter(promised, pattern)] == []


def test_no_success_is_just_anything(document):
    """What may be JSON or a file would then have no type at all."""
    for name, operation in described(document):
        for status, answer in operation["responses"].items():
            for content in answer.get("content", {}).values() if int(status) < 300 else ():
                assert content["schema"], name


def test_a_success_with_two_shapes_has_an_example_of_each(document):
    answer = find(document, "POST /auth/login")["responses"]["200"]["content"]["application/json"]
    shown = {example["value"]["data"]["status"] for example in answer["examples"].values()}
    assert shown == {"authenticated", "mfa_required"}


def test_the_example_of_a_body_is_read(api, document):
    """It may be refused for what it asks, but not for its form."""
    for name in BODIES:
        if "credential" in BODIES[name]:
            continue
        examples = find(document, name)["requestBody"]["content"]["application/json"]["examples"]
        method, path = name.split()
        body = json.dumps(examples["example"]["value"]).encode()
        answer = api.call(method, re.sub(r"\{\w+\}", "1", path), body)
        assert "invalid JSON" not in answer.json["msg"], name
