"""Checks answers against the published OpenAPI document."""

import re
from functools import cache
from typing import Any
from urllib.parse import quote

from flask import Flask
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

DOCUMENT = "/api/v1/openapi.json"
NAME = "urn:gatehouse"

_descriptions: dict[tuple[str, ...], "Description"] = {}


class Description:
    """The OpenAPI document, prepared to validate answers."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        resource = DRAFT202012.create_resource(document)
        self._registry = Registry().with_resource(NAME, resource)
        server = (document.get("servers") or [{"url": ""}])[0]["url"].rstrip("/")
        self._paths = [
            (re.compile(re.sub(r"\{[^}]*\}", "[^/]+", server + path)), path)
            for path in sorted(document["paths"], key=lambda path: path.count("{"))
        ]

    def find(self, method: str, path: str) -> tuple[str, dict[str, Any]] | None:
        """Return the path template and operation of a request; None if it is not described."""
        for pattern, described in self._paths:
            operation = self.document["paths"][described].get(method.lower())
            if pattern.fullmatch(path) and operation:
                return described, operation
        return None

    @cache  # noqa: B019 - lives as long as the process
    def validator(self, path: str, method: str, status: str) -> Draft202012Validator:
        """Return the validator for JSON bodies of this response."""
        steps = ["paths", path, method.lower(), "responses", status]
        response = self.document["paths"][path][method.lower()]["responses"][status]
        if "$ref" in response:
            pointer = response["$ref"].removeprefix("#/")
        else:
            pointer = "/".join(_escaped(step) for step in steps)
        pointer += "/content/" + _escaped("application/json") + "/schema"
        schema = {"$ref": f"{NAME}#/{pointer}"}
        return Draft202012Validator(schema, registry=self._registry, format_checker=FormatChecker())


def resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Return `node`, with a `$ref` followed."""
    while "$ref" in node:
        target: dict[str, Any] = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def envelope_of(document: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a JSON answer's envelope; an error's list its own codes."""
    schema = resolved(document, answer)["content"]["application/json"]["schema"]
    shapes = [resolved(document, shape) for shape in schema.get("allOf", [schema])]
    merged: dict[str, Any] = {}
    for shape in shapes:
        merged |= shape["properties"]
    return merged


def codes_of(document: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """Return the codes of an error answer."""
    codes: list[str] = envelope_of(document, answer)["code"].get("enum", [])
    return codes


def check(app: Flask, method: str, path: str, answer: Any) -> None:
    """Assert that an answer of a described operation matches it: status, code and data."""
    described = description(app)
    found = described.find(method, path)
    if found is None:
        return
    template, operation = found
    status = str(answer.status)
    assert status in operation["responses"], f"{status} is not described: {answer}"
    if answer.headers.get("Content-Type", "").startswith("application/json"):
        errors = list(described.validator(template, method, status).iter_errors(answer.json))
        assert not errors, f"{answer}\n" + "\n".join(error.message for error in errors[:3])


def description(app: Flask) -> Description:
    """Return the application's description, built once per set of routes."""
    rules = tuple(sorted(rule.rule for rule in app.url_map.iter_rules()))
    if rules not in _descriptions:
        # From an address of its own, so that it uses up no test's rate limit.
        answer = app.test_client().get(DOCUMENT, environ_base={"REMOTE_ADDR": "192.0.2.254"})
        assert answer.status_code == 200, answer.data
        _descriptions[rules] = Description(answer.get_json())
    return _descriptions[rules]


def _escaped(step: str) -> str:
    return quote(step.replace("~", "~0").replace("/", "~1"), safe="~")
