"""Examples of request and response bodies, made from their schemas, so that none can go stale.

A value is the field's own example, else the usual one for its name, else the first valid one.
"""

import json
from collections.abc import Mapping
from typing import Any

JsonSchema = dict[str, Any]

# What OpenAPI 3.2 calls `itemSchema`; 3.1 has no name for one event of a stream.
ITEM_SCHEMA = "x-itemSchema"
TOKEN = "q7Yb0n4kE2mXf9sVh1cLwT6uRz8aDj3gPo5iNqKe0vM"
BASE64URL = "AQIDBAUGBwgJCgsMDQ4PEA"
TYPICAL_VALUES: dict[str, Any] = {
    "msg": "",
    "username": "ada",
    "identifier": "ada",
    "display_name": "Ada Lovelace",
    "displayName": "ada",
    "email": "ada@example.com",
    "new_email": "ada@new.example",
    "password": "correct horse battery",
    "current_password": "correct horse battery",
    "new_password": "a better horse battery",
    "flow_id": TOKEN,
    "token": f"cv_{TOKEN}",
    "setup_state": "ready",
    "name": "My phone",
    "code": "492039",
    "secret": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    "otpauth_uri": "otpauth://totp/Gatehouse:ada%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
    "&issuer=Gatehouse&algorithm=SHA1&digits=6&period=30",
    "return_path": "/files",
    "authorization_url": "https://id.example/authorize?client_id=files&state=" + BASE64URL,
    "issuer": "https://id.example",
    "subject": "248289761001",
    "key": "example",
    "provider_key": "example",
    "expires_in": 900,
    "resend_after": 60,
    "timeout": 300_000,
    "ip_address": "192.0.2.7",
    "user_agent": "Mozilla/5.0",
    "challenge": BASE64URL,
    "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0",
    "authenticatorData": BASE64URL,
    "attestationObject": BASE64URL,
    "signature": BASE64URL,
    "rawId": BASE64URL,
    "userHandle": BASE64URL,
    "rpId": "files.example",
    "userVerification": "required",
    "residentKey": "required",
    "attestation": "none",
    "alg": -7,
    "transports": ["internal"],
    "access_token_expires_at": 1_772_444_700,
    "url_512": "/auth/profile/avatar/512?v=1",
    "url_1024": "/auth/profile/avatar/1024?v=1",
    "theme_mode": "dark",
    "color_preset": "blue",
    "view_mode": "list",
    "browser_open_mode": "double_click",
    "sort_by": "name",
    "language": "en",
    "display_time_zone": "Europe/London",
    "site_urls": ["https://files.example"],
    "openapi": "3.1.0",
    "pending_email": None,
    "sort_order": "asc",
    "message": "If the account exists, a mail is on its way.",
    "icon_url": "https://id.example/icon.svg",
    "provider_icon_url": "https://id.example/icon.svg",
    "provider_display_name": "Example",
}
BY_FORMAT = {
    "date-time": "2026-03-02T09:30:00Z",
    "uuid": "3549c87c-6da7-447c-a806-f00abba7a84d",
}
BY_TYPE: dict[str, Any] = {"boolean": True, "integer": 1, "number": 1, "null": None}


def fill(document: JsonSchema) -> None:
    """Add examples to every JSON request body and every successful JSON response of a document."""
    components = document["components"]["schemas"]
    for methods in document["paths"].values():
        for operation in methods.values():
            contents = [operation.get("requestBody", {}).get("content", {})]
            contents += [
                answer.get("content", {})
                for status, answer in operation["responses"].items()
                if status.startswith("2")
            ]
            for content in contents:
                if media := content.get("application/json"):
                    media["examples"] = _examples(media["schema"], components)
                for media in content.values():
                    if event := media.get(ITEM_SCHEMA):
                        media["examples"] = {"example": {"value": _stream(event, components)}}
    # Shown where a body's schema stands alone.
    for schema in components.values():
        if schema.get("additionalProperties") is True:
            schema["examples"] = [sample(schema, components)]


def _examples(schema: JsonSchema, components: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return one example, or one for each alternative payload of an envelope."""
    envelope = _resolved(schema, components)
    shapes = envelope.get("properties", {}).get("data", {}).get("oneOf")
    if not shapes:
        return {"example": {"value": sample(schema, components)}}
    whole = sample(envelope, components)
    return {
        shape["$ref"].rpartition("/")[2]: {"value": {**whole, "data": sample(shape, components)}}
        for shape in shapes
    }


def _stream(event: JsonSchema, components: Mapping[str, JsonSchema]) -> str:
    """Return the beginning of a stream: a comment, and an event."""
    data = json.dumps(sample(event, components), separators=(",", ":"))
    return f": keep-alive\n\ndata: {data}\n\n"


def _resolved(schema: JsonSchema, components: Mapping[str, JsonSchema]) -> JsonSchema:
    return components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def sample(schema: JsonSchema, components: Mapping[str, JsonSchema], name: str = "") -> Any:
    """Return a value that `schema` allows for a member called `name`."""
    if "$ref" in schema:
        return sample(_resolved(schema, components), components, name)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return sample(schema[choice][0], components, name)
    return _of_kind(schema, components, name)


def _of_kind(schema: JsonSchema, components: Mapping[str, JsonSchema], name: str) -> Any:
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        return _object(schema, components)
    if "examples" in schema:
        return schema["examples"][0]
    if name in TYPICAL_VALUES:
        return TYPICAL_VALUES[name]
    if kind == "array":
        return [sample(schema["items"], components, name)]
    if kind == "string":
        return BY_FORMAT.get(schema.get("format", ""), name or "text")
    return BY_TYPE[kind]


def _object(schema: JsonSchema, components: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return an object with all its members; for a request body, only with the required ones."""
    members = schema.get("properties", {})
    is_body = schema.get("additionalProperties") is True
    names = (is_body and schema.get("required")) or members
    return {name: sample(members[name], components, name) for name in names}
