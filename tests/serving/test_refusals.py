"""What gunicorn refuses before the application sees it, and what it cannot read of a body."""

import re

import pytest

from tests.support.live import raw

pytestmark = pytest.mark.postgres

GET = "GET /api/v1/auth/me HTTP/1.1\r\nHost: localhost\r\n"
POST = (
    "POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("no request\r\n\r\n", 400),
        (f"GET /api/v1/auth/me?{'x' * 9000} HTTP/1.1\r\n\r\n", 414),
        (GET + "Host: elsewhere\r\n\r\n", 400),
        (GET + "A space : b\r\n\r\n", 400),
        (GET + f"A: {'x' * 17_000}\r\n\r\n", 431),
        (GET + "Expect: nonsense\r\n\r\n", 417),
        (GET + "Transfer-Encoding: nonsense\r\n\r\n", 400),
        (GET + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_a_refusal_of_gunicorns_has_the_form_of_all_others(direct, request_, status):
    raw(direct, request_.encode()).fails(status, "bad_request")


def test_a_refusal_has_an_id_of_its_own_in_answer_and_log(direct):
    """The connection served another request before; in a proxy's pool, somebody else's."""
    before = direct.log.read_text()
    first = GET.encode() + b"\r\n"
    with direct.dial() as connection:
        connection.sendall(first + b"no request\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    ids = re.findall(rb"X-Request-ID: (\S+)", received)
    assert len(set(ids)) == 2
    [line] = re.findall(r".*Invalid request.*", direct.log.read_text().removeprefix(before))
    assert f"request_id={ids[1].decode()}" in line


@pytest.mark.parametrize("body", ["the secret word\r\n{}\r\n0\r\n\r\n", "2\r\n{}XX0\r\n\r\n"])
def test_chunks_that_are_none_are_the_clients_fault_and_not_repeated(direct, body):
    before = direct.log.read_text()
    raw(direct, (POST + body).encode()).fails(400, "bad_request")
    logged = direct.log.read_text().removeprefix(before)
    assert "POST /api/v1/auth/login 400" in logged
    assert "Traceback" not in logged
    assert "secret word" not in logged
