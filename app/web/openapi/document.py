"""Assembles the document: routes, tags, and what holds for all of them."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from apispec import APISpec
from flask import Flask
from werkzeug.routing import Rule

from app import __version__
from app.web.openapi import examples, security
from app.web.openapi.answers import JSON, Answers
from app.web.openapi.examples import JsonSchema
from app.web.openapi.introduction import INTRODUCTION
from app.web.openapi.schemas import Plugin
from app.web.openapi.texts import camel_case, headline, paragraphs
from app.web.operation import Operation, operation_of

OPENAPI_VERSION = "3.1.0"
ACCOUNT_PREFIX = "/api/v1/auth/"
MAX_ABBREVIATION_LENGTH = 3  # MFA
CACHE = "gatehouse_openapi"
UNDESCRIBED_METHODS = {"HEAD", "OPTIONS"}
VARIABLE = re.compile(r"<(?:(?P<kind>\w+)(?:\([^)]*\))?:)?(?P<name>\w+)>")
KINDS: dict[str | None, JsonSchema] = {
    None: {"type": "string", "minLength": 1},
    "int": {"type": "integer", "minimum": 0},
    "path": {"type": "string", "minLength": 1, "description": "may contain slashes"},
    "uuid": {"type": "string", "format": "uuid"},
}
# RFC 7578. Older tools recognise a file input by its `format`, newer ones by its media type.
FILE_BODY: JsonSchema = {
    "multipart/form-data": {
        "schema": {
            "type": "object",
            "required": ["file"],
            "properties": {
                "file": {
                    "type": "string",
                    "format": "binary",
                    "contentMediaType": "application/octet-stream",
                }
            },
        }
    }
}


def document(app: Flask) -> str:
    """Return the description of an application as JSON text, built at the first call."""
    if CACHE not in app.extensions:
        described = _build(app)
        app.extensions[CACHE] = json.dumps(described, ensure_ascii=False, separators=(",", ":"))
    text: str = app.extensions[CACHE]
    return text


def _build(app: Flask) -> dict[str, Any]:
    plugin = Plugin()
    spec = APISpec(
        title="Gatehouse",
        version=__version__,
        openapi_version=OPENAPI_VERSION,
        plugins=[plugin],
        info={"description": INTRODUCTION},
    )
    for name, scheme in security.SCHEMES.items():
        spec.components.security_scheme(name, scheme)
    answers = Answers(spec, plugin)
    for rule in sorted(app.url_map.iter_rules(), key=_is_for_operators):
        view = app.view_functions[rule.endpoint]
        tag = _tag(spec, view)
        methods = sorted((rule.methods or set()) - UNDESCRIBED_METHODS)
        operations = {m.lower(): _operation(plugin, answers, rule, m, view) for m in methods}
        for operation in operations.values():
            operation["tags"] = [tag]
        spec.path(path=VARIABLE.sub(r"{\g<name>}", rule.rule), operations=operations)
    answers.add_error_envelope()
    described: dict[str, Any] = spec.to_dict()
    examples.fill(described)
    return described


def _is_for_operators(rule: Rule) -> bool:
    """Sort key: what applications call, then health, metrics and this document; else in order."""
    return not rule.rule.startswith(ACCOUNT_PREFIX)


def _operation(
    plugin: Plugin, answers: Answers, rule: Rule, method: str, view: Callable[..., Any]
) -> dict[str, Any]:
    operation = operation_of(view)
    details = [*paragraphs(view)[1:], security.access_sentence(operation)]
    name = operation.name or camel_case(view.__name__)
    described: dict[str, Any] = {
        "operationId": name,
        "summary": headline(view),
        "description": "\n\n".join(filter(None, details)),
        "security": security.requirements(operation, method),
        "parameters": [*_parameters(plugin, operation, rule)],
        "responses": answers.of(name, operation, security.refusals(operation, method)),
    }
    if operation.is_deprecated:
        described["deprecated"] = True
    if operation.body is not None:
        schema = plugin.reference(operation.body())
        described["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    if operation.has_file:
        described["requestBody"] = {"required": True, "content": FILE_BODY}
    return described


def _parameters(plugin: Plugin, operation: Operation, rule: Rule) -> Iterator[JsonSchema]:
    for variable in VARIABLE.finditer(rule.rule):
        schema = dict(KINDS.get(variable["kind"], KINDS[None]))
        yield {"in": "path", "name": variable["name"], "required": True, "schema": schema}
    if operation.query is not None:
        yield from plugin.query_parameters(operation.query)


def _tag(spec: APISpec, view: Callable[..., Any]) -> str:
    """Return the tag of the view's area, described by its package's docstring."""
    package = view.__module__.rpartition(".")[0]
    words = package.rpartition(".")[2].replace("_", " ")
    name = words.upper() if len(words) <= MAX_ABBREVIATION_LENGTH else words.capitalize()
    if all(tag["name"] != name for tag in spec._tags):
        spec.tag({"name": name, "description": headline(sys.modules[package])})
    return name
