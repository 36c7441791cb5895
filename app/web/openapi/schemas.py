"""Marshmallow schemas as JSON Schema: exactly what validation enforces."""

from collections.abc import Callable, Iterator
from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.common import resolve_schema_cls
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import Schema, fields

from app.web.openapi.examples import TYPICAL_VALUES, JsonSchema
from app.web.openapi.texts import headline
from app.web.operation import Payload
from app.web.schema import INT64, Either, RequestSchema, Text, WholeNumber

# Of the characters no text may contain, only NUL can be excluded in every dialect of patterns: an
# unpaired surrogate is not even a character in most of them.
NO_NUL = r"^[^\u0000]*$"


class Converter(OpenAPIConverter):
    """apispec's converter, extended by the field types of our schema layer."""

    def schema2jsonschema(self, schema: Schema) -> JsonSchema:
        """Add the schema's description, and that a request may carry unknown members."""
        described: JsonSchema = super().schema2jsonschema(schema)  # type: ignore[no-untyped-call]
        # A response may gain members later: apispec would promise that it never does.
        described.pop("additionalProperties", None)
        if isinstance(schema, RequestSchema):
            described["additionalProperties"] = True
        described["description"] = headline(type(schema))
        return described

    def field2property(self, field: fields.Field[Any]) -> JsonSchema:
        """Add what apispec does not know about our own field types."""
        described: JsonSchema = super().field2property(field)
        if isinstance(field, Text):
            return {**described, **_text_rules(field, described)}
        if isinstance(field, WholeNumber):
            bounds = {"minimum": -INT64, "maximum": INT64 - 1, "format": "int64"}
            return {**bounds, "examples": [described.get("minimum", 1)], **described}
        if isinstance(field, Either):
            resolve: Callable[[type[Schema]], JsonSchema] = self.resolve_nested_schema
            shapes = [resolve(shape) for shape in field.shapes]
            nothing = [{"type": "null"}] if field.allow_none else []
            described.pop("type", None)
            return {**described, "oneOf": [*shapes, *nothing]}
        if isinstance(field, fields.Enum):
            kind = ["string", "null"] if field.allow_none else "string"
            return {"type": kind, "examples": described["enum"][:1], **described}
        return described


class Plugin(MarshmallowPlugin):
    """The marshmallow plugin with our converter."""

    Converter = Converter

    def __init__(self) -> None:
        super().__init__(schema_name_resolver=component_name)

    def reference(self, payload: Payload) -> JsonSchema:
        """Return a reference to a schema, which becomes one of the document's components.

        A field does not: its description is returned, to be used inline.
        """
        if isinstance(payload, fields.Field):
            described: JsonSchema = self._converter.field2property(payload)
            return described
        resolved: JsonSchema = self._converter.resolve_nested_schema(payload)
        return resolved

    def query_parameters(self, schema: type[Schema]) -> Iterator[JsonSchema]:
        """Describe a query schema; a query can omit a parameter, but cannot set it to null."""
        for parameter in self._converter.schema2parameters(schema, location="query"):
            described = parameter["schema"]
            if isinstance(kinds := described.get("type"), list):
                described["type"] = next(kind for kind in kinds if kind != "null")
            if described.get("default", ...) is None:
                del described["default"]
            described.pop("examples", None)
            yield parameter

    @property
    def _converter(self) -> Any:
        return self.converter


def component_name(schema: type[Schema] | Schema | str) -> str:
    """Return the name of a schema's component: `LoginSchema` becomes `LoginBody`."""
    its_class: type[Schema] = resolve_schema_cls(schema)  # type: ignore[assignment]
    name = its_class.__name__
    return f"{name.removesuffix('Schema')}Body" if issubclass(its_class, RequestSchema) else name


def payload_name(payload: Payload) -> str:
    """Return a payload's name for the name of its envelope: `SessionItem` becomes `Session`."""
    if isinstance(payload, fields.List):
        return f"{payload_name(payload.inner)}List"
    if isinstance(payload, fields.Nested):
        payload = payload.schema
    name = type(payload).__name__
    for suffix in ("Data", "Item", "Info"):
        name = name.removesuffix(suffix)
    return f"{name}List" if isinstance(payload, Schema) and payload.many else name


def _text_rules(field: Text, described: JsonSchema) -> JsonSchema:
    """Return the pattern, and an example: the field's name says more than random characters."""
    name = field.data_key or field.name or "text"
    example = str(TYPICAL_VALUES.get(name, name))[: described.get("maxLength")]
    return {"pattern": NO_NUL, "examples": [example], **described}
