"""The document's opening text: what holds for every route."""

from app.web import cookies, origin
from app.web.request import JSON_BODY_LIMIT

MEBIBYTE = 1024 * 1024

INTRODUCTION = f"""\
Accounts, sessions and credentials of a file-storage product.

**Answers.** Every JSON answer is an object with exactly the members `code`, `msg`, `data` and
`error`. `code` is `success` or names the refusal, `msg` is meant for people and may change, `data`
is the payload or null, and `error` is always null. Routes that answer otherwise say so. All answers
but the bootstrap configuration and the reference page have `Cache-Control: no-store`.

**Requests.** A JSON body needs `Content-Type: application/json`, is an object, and has at most
{JSON_BODY_LIMIT // MEBIBYTE} MiB. Members that a route does not know are ignored. Texts contain
neither NUL nor unpaired surrogates, whole numbers fit in 64 bits, and nothing is converted: `"1"`
is not a number. Whatever breaks these rules is refused with 400 `bad_request`, and `msg` names
every faulty field.

**Signing in.** A login sets three cookies: `{cookies.ACCESS_COOKIE}` authenticates,
`{cookies.REFRESH_COOKIE}` is exchanged for a new pair, and `{cookies.CSRF_COOKIE}` is the one a
page reads and repeats in the `{origin.CSRF_HEADER}` header of unsafe requests. Scripts may send the
access token as a bearer token instead. Access ends as soon as its session does.

**On every route.** An unknown path is a 404, and a method that the route does not take is a 405
with `Allow`; both have the code `endpoint.not_found`. A fault of the service is a 500
`internal_server_error`, and an outage of what it depends on is a 503; `X-Request-ID` leads to the
log. Too many requests from one address are refused with 429 `rate_limited` and `Retry-After`. HEAD
works wherever GET does.
"""
