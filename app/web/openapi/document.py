"""Assembles the document: routes, how a caller authenticates, and what holds for all of them."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from apispec import APISpec
from flask import Flask
from werkzeug.routing import Rule

from app import __version__
from app.core.access import PasswordChangeRequired, TokenMissing
from app.core.errors import AppError
from app.web import origin
from app.web.openapi.answers import JSON, Answers
from app.web.openapi.schemas import JsonSchema, Plugin, add_examples, headline, paragraphs
from app.web.operation import Operation, operation_of

# Its texts stand beside it: the introduction, and headers and ways to authenticate.
HERE = Path(__file__).parent
ACCOUNT_PREFIX = "/api/v1/auth/"
MAX_ABBREVIATION_LENGTH = 3  # MFA
CACHE = "gatehouse_openapi"
VARIABLE = re.compile(r"<(?:(?P<kind>\w+)(?:\([^)]*\))?:)?(?P<name>\w+)>")
KINDS: dict[str | None, JsonSchema] = {
    "int": {"type": "integer", "minimum": 0},
    "path": {"type": "string", "minLength": 1, "description": "may contain slashes"},
    "uuid": {"type": "string", "format": "uuid"},
}
# RFC 7578. Older tools recognise a file input by its `format`, newer ones by its media type.
FILE = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
FILE_FORM = {"type": "object", "required": ["file"], "properties": {"file": FILE}}


def document(app: Flask) -> str:
    """Return the description of an application as JSON text, built at the first call."""
    if CACHE not in app.extensions:
        described = _build(app)
        app.extensions[CACHE] = json.dumps(described, ensure_ascii=False, separators=(",", ":"))
    text: str = app.extensions[CACHE]
    return text


def _build(app: Flask) -> JsonSchema:
    plugin = Plugin()
    base = json.loads((HERE / "base.json").read_text("utf-8"))
    introduction = (HERE / "introduction.md").read_text("utf-8")
    spec = APISpec(
        title="Gatehouse",
        version=__version__,
        openapi_version="3.1.0",
        plugins=[plugin],
        info={"description": introduction},
        **base,
    )
    answers = Answers(spec, plugin)
    tags: dict[str, str] = {}
    # What applications call, then health, metrics and this document.
    rules = sorted(app.url_map.iter_rules(), key=lambda r: not r.rule.startswith(ACCOUNT_PREFIX))
    for rule in rules:
        view = app.view_functions[rule.endpoint]
        area = sys.modules[view.__module__.rpartition(".")[0]]
        tag = _tag(area.__name__)
        tags[tag] = headline(area)
        operations = {}
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            described = _operation(plugin, answers, rule, method, view)
            operations[method.lower()] = {**described, "tags": [tag]}
        spec.path(path=VARIABLE.sub(r"{\g<name>}", rule.rule), operations=operations)
    for tag, description in tags.items():
        spec.tag({"name": tag, "description": description})
    answers.add_error_envelope()
    whole: JsonSchema = spec.to_dict()
    add_examples(whole)
    return whole


def _tag(package: str) -> str:
    words = package.rpartition(".")[2].replace("_", " ")
    return words.upper() if len(words) <= MAX_ABBREVIATION_LENGTH else words.capitalize()


def _operation(
    plugin: Plugin, answers: Answers, rule: Rule, method: str, view: Callable[..., Any]
) -> JsonSchema:
    operation = operation_of(view)
    first, *others = view.__name__.split("_")
    name = operation.name or first + "".join(word.capitalize() for word in others)
    details = [*paragraphs(view)[1:], _access_sentence(operation)]
    described: JsonSchema = {
        "operationId": name,
        "summary": headline(view),
        "description": "\n\n".join(filter(None, details)),
        "security": _requirements(operation, method),
        "parameters": [*_parameters(plugin, operation, rule)],
        "responses": answers.of(name, operation, _refusals(operation, method)),
    }
    if operation.is_deprecated:
        described["deprecated"] = True
    if operation.body is not None:
        content = {JSON: {"schema": plugin.reference(operation.body())}}
        described["requestBody"] = {"required": True, "content": content}
    if operation.has_file:
        content = {"multipart/form-data": {"schema": FILE_FORM}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _parameters(plugin: Plugin, operation: Operation, rule: Rule) -> Iterator[JsonSchema]:
    for variable in VARIABLE.finditer(rule.rule):
        schema = dict(KINDS.get(variable["kind"], {"type": "string", "minLength": 1}))
        yield {"in": "path", "name": variable["name"], "required": True, "schema": schema}
    if operation.query is not None:
        yield from plugin.query_parameters(operation.query)


def _requirements(operation: Operation, method: str) -> list[JsonSchema]:
    """Return the alternative ways to authenticate; an empty list if anyone may call."""
    csrf: JsonSchema = {} if method in origin.SAFE_METHODS else {"csrfToken": []}
    refresh: JsonSchema = {"refreshCookie": []} if operation.reads_refresh_cookie else {}
    ways: list[JsonSchema] = [{"accessCookie": [], **csrf}, {"bearer": []}]
    if _is_for_sessions(operation):
        return [{**way, **refresh} for way in ways]
    if not refresh:
        return []
    # Refresh fails without the cookie; logout takes any credential, or none.
    is_required = TokenMissing in operation.errors
    return [{**refresh, **csrf}] if is_required else [{}, {**refresh, **csrf}, *ways]


def _refusals(operation: Operation, method: str) -> Iterator[type[AppError]]:
    """Yield an operation's errors, and those of the session guard's checks of unsafe methods."""
    yield from operation.errors
    if _is_for_sessions(operation) and method not in origin.SAFE_METHODS:
        checked = (*origin.SOURCE_ERRORS, *origin.CSRF_ERRORS)
        yield from (error for error in checked if error not in operation.errors)


def _access_sentence(operation: Operation) -> str:
    """Return a sentence that says who may call; "" for anonymous access."""
    if not _is_for_sessions(operation):
        return ""
    who = "an administrator" if operation.access == "admin" else "a signed-in account"
    if PasswordChangeRequired in operation.errors:
        return f"For {who}."
    return f"For {who}, also while a password change is due."


def _is_for_sessions(operation: Operation) -> bool:
    return operation.access in {"session", "admin"}
