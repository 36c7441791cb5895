"""Marshmallow schemas as JSON Schema, and examples made from them, so that none can go stale."""

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.common import resolve_schema_cls
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import RAISE, Schema, fields

from app.web.operation import Payload
from app.web.paging import PageQuery
from app.web.schema import INT64, Either, RequestSchema, Text, WholeNumber

JsonSchema = dict[str, Any]

# Of the characters no text may contain, only NUL can be excluded in every dialect of patterns: an
# unpaired surrogate is not even a character in most of them.
NO_NUL = r"^[^\u0000]*$"
# By the name of the member, where its own schema has no example.
TYPICAL = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))
BY_TYPE: JsonSchema = {"boolean": True, "integer": 1, "number": 1, "null": None}
BY_FORMAT = {
    "date-time": "2026-03-02T09:30:00Z",
    "uuid": "3549c87c-6da7-447c-a806-f00abba7a84d",
}


class Converter(OpenAPIConverter):
    """apispec's converter, extended by the field types of our schema layer."""

    def schema2jsonschema(self, schema: Schema) -> JsonSchema:
        """Add the schema's description, and whether a request may carry unknown members."""
        described: JsonSchema = super().schema2jsonschema(schema)  # type: ignore[no-untyped-call]
        # A response may gain members later: apispec would promise that it never does.
        described.pop("additionalProperties", None)
        if isinstance(schema, RequestSchema):
            described["additionalProperties"] = schema.unknown != RAISE
            # Shown where a body's schema stands alone.
            described["examples"] = [sample(described, self.spec.components.schemas)]
        return {**described, "description": headline(type(schema))}

    def field2property(self, field: fields.Field[Any]) -> JsonSchema:
        """Add what apispec does not know about our own field types."""
        described: JsonSchema = super().field2property(field)
        if described.get("default", ...) is None and not field.allow_none:
            del described["default"]  # what may be absent need not take null
        if isinstance(field, Text):
            name = field.data_key or field.name or "text"
            example = str(TYPICAL.get(name, name))[: described.get("maxLength")]
            return {"pattern": NO_NUL, "examples": [example], **described}
        if isinstance(field, WholeNumber):
            bounds = {"minimum": -INT64, "maximum": INT64 - 1, "format": "int64"}
            return {**bounds, "examples": [described.get("minimum", 1)], **described}
        if isinstance(field, Either):
            shapes = [self.resolve_nested_schema(shape) for shape in field.shapes]  # type: ignore[no-untyped-call]
            nothing = [{"type": "null"}] if field.allow_none else []
            described.pop("type", None)
            return {**described, "oneOf": [*shapes, *nothing]}
        if isinstance(field, fields.Enum):
            kind = ["string", "null"] if field.allow_none else "string"
            return {"type": kind, "examples": described["enum"][:1], **described}
        return described

    def schema2parameters(self, schema: Schema, **where: Any) -> list[JsonSchema]:
        """Describe a query schema; a query can omit a parameter, but cannot set it to null."""
        parameters: list[JsonSchema] = super().schema2parameters(schema, **where)
        for parameter in parameters:
            described = parameter["schema"]
            if isinstance(schema, PageQuery):
                parameter["allowEmptyValue"] = True
            if isinstance(kinds := described.get("type"), list):
                described["type"] = next(kind for kind in kinds if kind != "null")
                if "enum" in described:
                    described["enum"] = [value for value in described["enum"] if value is not None]
            if described.get("default", ...) is None:
                described.pop("default", None)
            described.pop("examples", None)
        return parameters


class Plugin(MarshmallowPlugin):
    """The marshmallow plugin with our converter."""

    Converter = Converter

    def __init__(self) -> None:
        super().__init__(schema_name_resolver=component_name)

    def reference(self, payload: Payload) -> JsonSchema:
        """Return a reference to a schema's component; a field is described inline."""
        converter: Any = self.converter
        is_field = isinstance(payload, fields.Field)
        describe = converter.field2property if is_field else converter.resolve_nested_schema
        described: JsonSchema = describe(payload)
        return described


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


def paragraphs(documented: object) -> list[str]:
    """Return the paragraphs of a docstring; none without one."""
    return [text for text in (inspect.getdoc(documented) or "").split("\n\n") if text]


def headline(documented: object) -> str:
    """Return the first paragraph as plain text on one line."""
    first = next(iter(paragraphs(documented)), "")
    return " ".join(first.replace("`", "").split()).rstrip(".")


def examples(schema: JsonSchema, components: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return one example, or one for each alternative payload of an envelope."""
    whole = sample(schema, components)
    envelope = components.get(schema.get("$ref", "").rpartition("/")[2], schema)
    shapes = envelope.get("properties", {}).get("data", {}).get("oneOf")
    if not shapes:
        return {"example": {"value": whole}}
    return {
        shape["$ref"].rpartition("/")[2]: {"value": {**whole, "data": sample(shape, components)}}
        for shape in shapes
    }


def stream_example(event: JsonSchema, components: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return the example of a stream with one such event."""
    data = json.dumps(sample(event, components), separators=(",", ":"))
    return {"example": {"value": f": keep-alive\n\ndata: {data}\n\n"}}


def sample(schema: JsonSchema, components: Mapping[str, JsonSchema], name: str = "") -> Any:
    """Return a value that `schema` allows for a member called `name`."""
    if "$ref" in schema:
        return sample(components[schema["$ref"].rpartition("/")[2]], components, name)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return sample(schema[choice][0], components, name)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        members = schema.get("properties", {})
        # Of a request body only the required members, if it has any.
        is_body = "additionalProperties" in schema
        names = (is_body and schema.get("required")) or members
        return {name: sample(members[name], components, name) for name in names}
    if "examples" in schema or name in TYPICAL:
        return schema.get("examples", [TYPICAL.get(name)])[0]
    if kind == "array":
        return [sample(schema["items"], components, name)]
    return BY_TYPE.get(kind, BY_FORMAT.get(schema.get("format", ""), name or "text"))
