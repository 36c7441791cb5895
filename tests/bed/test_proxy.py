"""The behaviour of nginx with the configuration of deploy/nginx."""

import http.client
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import ExitStack, closing
from urllib.parse import unquote

import pytest

from app.crypto.tokens import digest, random_hex, random_token
from app.events import messages as events
from app.events.messages import Audience, Kind, StorageEvent
from app.external_auth.queries import find_pending
from app.web.cors import EXPOSED_HEADERS
from deploy.bed.proxy import Proxy, find_nginx
from tests.support import servers
from tests.support.external import add_provider, wait_for_account
from tests.support.factories import configure
from tests.support.images import RED, headers, multipart, plain, upload
from tests.support.live import eventually, free_port, raw
from tests.support.smtp import HOST
from tests.support.streams import OpenStream

CURL = shutil.which("curl")
UNAVAILABLE = 503, "internal_server_error"
TOO_LARGE = 413, "file.too_large"
UPLOAD = "/auth/profile/avatar/upload"
MAX_REQUESTS = 100


@pytest.fixture
def client(bed, user):
    with bed.client() as client:
        client.login(user).ok()
        yield client


class Upstream:
    """Accepts requests like an instance, records them, and hangs up without an answer."""

    def __init__(self):
        self.heads: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.heads.append(connection.recv(65_536).decode())

    def close(self):
        self._listener.close()


@pytest.fixture
def alone():
    """Start an nginx in front of local ports, optionally with more in its server block."""
    try:
        find_nginx()
    except servers.NotStarted as reason:
        pytest.skip(str(reason))
    started = []
    with servers.short_folder() as folder:

        def start(*ports, more=""):
            proxy = Proxy(folder / "proxy", ports, folder)
            with (proxy.folder / "nginx/gatehouse/listen-https.conf").open("a") as file:
                file.write(more)
            proxy.start()
            started.append(proxy)
            return proxy

        yield start
        for proxy in started:
            proxy.stop()


@pytest.fixture
def broken(alone):
    """An nginx in front of two instances that hang up in the middle of every request."""
    upstreams = [Upstream(), Upstream()]
    yield alone(*(upstream.port for upstream in upstreams)), upstreams
    for upstream in upstreams:
        upstream.close()


def test_plain_http_is_sent_to_https(bed):
    connection = http.client.HTTPConnection("127.0.0.1", bed.proxy.plain_port)
    connection.request("GET", "/api/v1/docs?a=b", headers={"Host": HOST})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Location"]) == (308, f"https://{HOST}/api/v1/docs?a=b")
    connection.close()


def test_what_a_certificate_authority_asks_for_is_answered_over_plain_http(bed):
    answers = bed.proxy.folder / "acme" / ".well-known" / "acme-challenge"
    answers.mkdir(parents=True, exist_ok=True)
    (answers / "token").write_text("token.thumbprint")
    with closing(http.client.HTTPConnection("127.0.0.1", bed.proxy.plain_port)) as connection:
        for name, status in (("token", 200), ("another", 404), ("%2e%2e/%2e%2e/token", 308)):
            connection.request("GET", f"/.well-known/acme-challenge/{name}")
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Server"]) == (status, "nginx")
            assert (answer.read() == b"token.thumbprint") == (status == 200)


def test_what_password_managers_ask_for_reaches_an_instance(bed):
    with closing(bed.proxy.dial()) as connection:
        path = "/.well-known/change-password"
        head = f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        answer = connection.recv(65_536).decode()
    assert answer.startswith("HTTP/1.1 302")
    assert "/settings/security" in answer


def test_it_does_not_tell_its_version(client):
    assert client.get("/auth/me").headers["Server"] == "nginx"


def test_it_speaks_http_2(bed):
    with bed.proxy.dial(protocols=["h2", "http/1.1"]) as connection:
        assert connection.selected_alpn_protocol() == "h2"
        assert connection.version() == "TLSv1.3"


def test_of_tls_1_2_it_speaks_only_what_is_still_good(bed):
    def shake_hands(ciphers):
        context = ssl.create_default_context(cafile=bed.proxy.certificate)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(ciphers)
        with socket.create_connection(("127.0.0.1", bed.proxy.port), 10) as plain:
            context.wrap_socket(plain, server_hostname=HOST).close()

    shake_hands("ECDHE+AESGCM")
    with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"):
        shake_hands("ECDHE:!AESGCM:!CHACHA20:!AESCCM")


@pytest.mark.skipif(CURL is None, reason="curl is not on the PATH")
def test_a_request_over_http_2_is_answered(bed):
    command = [CURL, "-sS", "--http2", "--cacert", str(bed.proxy.certificate)]
    command += ["-w", " %{http_version}", "-X", "POST", f"{bed.proxy.url}/api/v1/auth/check"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    body, _, version = done.stdout.rpartition(" ")
    assert body.startswith('{"code":"success"')
    assert version == "2"


def test_what_an_instance_is_told_of_the_request(broken):
    proxy, upstreams = broken
    lies = {
        "X-Forwarded-For": "198.51.100.7",
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Host": "evil.example",
        "Forwarded": "for=198.51.100.7",
        "X-Request-Start": "t=1",
        "X_Forwarded_For": "198.51.100.7",
    }
    with proxy.client() as client:
        client.post("/auth/check", headers=lies).fails(*UNAVAILABLE)
    [head] = upstreams[0].heads + upstreams[1].heads
    sent = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    sent = {name.lower(): value for name, value in sent.items()}
    assert sent["host"] == sent["x-forwarded-host"] == f"127.0.0.1:{proxy.port}"
    assert (sent["x-forwarded-for"], sent["x-forwarded-proto"]) == ("127.0.0.1", "https")
    assert re.fullmatch(r"t=\d{10}\.\d{3}", sent["x-request-start"])
    assert "forwarded" not in sent
    assert "x_forwarded_for" not in sent


@pytest.mark.parametrize(
    ("method", "times"), [("POST", 1), ("PATCH", 1), ("PUT", 1), ("DELETE", 1), ("GET", 2)]
)
def test_what_changes_something_is_never_sent_twice(broken, method, times):
    """By default nginx retries a PUT or DELETE that was cut off on the next instance."""
    proxy, upstreams = broken
    body = None if method in {"GET", "DELETE"} else {"name": "value"}
    with proxy.client() as client:
        client.call(method, "/auth/password", body).fails(*UNAVAILABLE)
    assert len(upstreams[0].heads + upstreams[1].heads) == times


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE", "GET"])
def test_what_one_instance_does_not_take_goes_to_the_other(bed, alone, method):
    """As in an upgrade; several times, since nginx is told not to remember who refused."""
    body = None if method in {"GET", "DELETE"} else {"name": "value"}
    with alone(free_port(), bed.instances[0].port).client() as client:
        for _ in range(6):
            assert client.call(method, "/auth/me", body).status in {401, 405}


def test_an_upload_that_one_instance_does_not_take_goes_to_the_other(bed, alone, client):
    with alone(free_port(), bed.instances[0].port).client() as elsewhere:
        elsewhere.cookies = client.cookies
        for _ in range(6):
            assert upload(elsewhere, plain(RED)).ok()["applied"]


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE", "GET"])
def test_what_no_instance_takes_is_refused_in_the_envelope(alone, method):
    with alone(free_port(), free_port()).client() as client:
        body = None if method in {"GET", "DELETE"} else {"name": "value"}
        answer = client.call(method, "/auth/me", body).fails(*UNAVAILABLE)
    assert answer.retry_after == 2


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        ({"Host": "a b"}, 400, "bad_request"),
        ({"Transfer-Encoding": "nonsense"}, 400, "bad_request"),
        ({"Referer": "https://files.example/" + "x" * 20_000}, 400, "bad_request"),
        ({"Referer": "https://files.example/" + "x" * 10_000}, 401, "auth.token_missing"),
    ],
)
def test_headers_that_are_wrong_or_long(bed, sent, status, code):
    with bed.client() as client:
        client.get("/auth/me", headers=sent).fails(status, code)


def test_the_longest_way_back_from_a_provider_passes(bed, user):
    """A return_path of 2 kB, percent-encoded, beside cookies: more than nginx's default buffers."""
    path, token = "/" + "ü" * 1023, "cv_" + "0" * 32
    flow_token = wait_for_account(bed.rt, add_provider(bed.rt), path=path)
    with bed.rt.transaction() as session:
        waiting = find_pending(session, digest(flow_token))
        waiting.target_email, waiting.email_requested_at = user.email, bed.rt.clock.now()
        waiting.verification_token_digest, waiting.owner_session_version = digest(token), 1
    with bed.client() as client:
        confirm = "/auth/external-auth/email-verification/confirm"
        answer = client.post(f"{confirm}?token={token}&answer=yes")
        assert answer.status == 303
        assert unquote(answer.headers["Location"]).endswith(path)
        assert client.get("/auth/me").ok()["id"] == user.id


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("no request", 400),
        ("GET /../secret HTTP/1.1", 400),
        ("GET /%2e%2e/secret HTTP/1.1", 400),
        ("CONNECT elsewhere:25 HTTP/1.1", 400),
        (f"GET /api/v1/auth/me?{'x' * 20_000} HTTP/1.1", 400),
    ],
)
def test_what_is_no_request_is_refused_like_everything_else(bed, line, status):
    raw(bed.proxy, f"{line}\r\nHost: {HOST}\r\n\r\n".encode()).fails(status, "bad_request")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"GET /api/v1/auth/me?{'x' * 9_000} HTTP/1.1\r\n", 414),
        ("GET /api/v1/auth/me HTTP/1.1\r\n" + "".join(f"A{n}: b\r\n" for n in range(150)), 431),
    ],
)
def test_what_nginx_passes_and_gunicorn_does_not_is_refused_by_it(bed, head, status):
    """In its own words: it has no way to say them differently."""
    with bed.proxy.dial() as connection:
        connection.sendall(f"{head}Host: {HOST}\r\n\r\n".encode())
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == status


def in_chunks(body):
    return (body[at : at + 100_000] for at in range(0, len(body), 100_000))


def test_bodies_over_the_limit(client):
    client.put("/auth/password", b" " * 2**20).fails(400, "bad_request")  # not JSON
    upload(client, plain(RED).ljust(11_000_000, b"\0")).fails(400, "file.too_large")
    for form in (bytes, in_chunks):
        for method in ("PUT", "POST", "DELETE"):
            client.call(method, "/auth/password", form(b" " * (2**20 + 1))).fails(*TOO_LARGE)
        body = form(multipart(b"x" * 18_000_000))
        client.post(UPLOAD, body, headers=headers()).fails(*TOO_LARGE)


@pytest.mark.parametrize("path", ["/auth/password", UPLOAD])
def test_chunks_that_are_none_are_refused_like_everything_else(bed, path):
    for method in ("PUT", "POST", "DELETE"):
        begun = head(method, path, "Transfer-Encoding: chunked")
        raw(bed.proxy, begun + b"nonsense\r\n").fails(400, "bad_request")


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_body_that_finds_no_room_is_refused_in_the_envelope(bed, alone, method):
    proxy = alone(bed.instances[0].port)
    shutil.rmtree(proxy.folder / "client_body")
    with proxy.client() as client:
        client.call(method, "/auth/password", b" " * 100_000).fails(*UNAVAILABLE)


def head(method, path, *fields):
    """Return the head of a request whose body follows."""
    lines = [f"{method} /api/v1{path} HTTP/1.1", f"Host: {HOST}", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_strangers_upload_is_refused_before_it_has_arrived(bed):
    """Otherwise nginx would buffer it for as long as a byte arrives now and then."""
    begun = head("POST", UPLOAD, "Content-Length: 17000000") + bytes(200_000)
    raw(bed.proxy, begun).fails(401, "auth.token_missing")
    assert list((bed.proxy.folder / "client_body").iterdir()) == []


def test_an_upload_reaches_the_instance_as_it_comes(bed, client):
    """So that the instance's limits on time and concurrency apply to it."""
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    kind = f"Content-Type: {headers()['Content-Type']}"
    begun = head("POST", UPLOAD, f"Cookie: {cookie}", kind, "Content-Length: 1000000")
    # Workers that were killed in other tests of this bed may have left uploads to a later sweep.
    left = set(bed.avatars.glob("staging/*"))

    def under_way():
        return set(bed.avatars.glob("staging/*")) - left

    with bed.proxy.dial() as connection:
        connection.sendall(begun + multipart(bytes(200_000)))
        eventually(under_way, "the upload has begun")
    eventually(lambda: not under_way(), "the upload has ended")


def test_a_refusal_of_a_large_upload_arrives(bed):
    body = multipart(plain(RED).ljust(9 * 2**20, b"\0"))
    with bed.client() as stranger:
        for _ in range(5):
            stranger.post(UPLOAD, body, headers=headers()).fails(401, "auth.token_missing")


@pytest.mark.soak
def test_a_refusal_reaches_who_pauses_while_sending(bed):
    """By default nginx hangs up after 5 s, and later data then resets the connection."""
    with ExitStack() as stack:
        asked = []
        for length, status in ((17_000_000, 401), (18_000_000, 413)):
            connection = stack.enter_context(bed.proxy.dial())
            connection.sendall(head("POST", UPLOAD, f"Content-Length: {length}") + bytes(1000))
            asked.append((connection, status))
        time.sleep(5.5)
        for connection, status in asked:
            for _ in range(2):
                connection.sendall(bytes(1000))
                time.sleep(0.2)
            response = stack.enter_context(closing(http.client.HTTPResponse(connection)))
            response.begin()
            assert response.status == status


def crowd(proxy, stack, addresses):
    """Start requests from these addresses without their bodies; return once nginx counts them."""

    def begin(method, address):
        begun = head(method, "/auth/password", f"X-Client: {address}", "Content-Length: 100")
        stack.enter_context(proxy.dial()).sendall(begun + b"{")

    for number, address in enumerate(addresses):
        begin(("PUT", "POST")[number % 2], address)
    spare = iter(range(5))

    def is_full():
        if asks(proxy, addresses[0]).status == 429:
            return True
        time.sleep(0.5)
        if next(spare, None) is not None:
            begin("PUT", addresses[0])  # for one whose place the probe may have taken
        return False

    eventually(is_full, "all requests are under way")


def asks(proxy, address, method="GET", path="/auth/me"):
    """Return the answer to a client at this address."""
    return raw(proxy, head(method, path, f"X-Client: {address}", "Connection: close"))


@pytest.mark.parametrize(
    ("addresses", "same", "other"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("2001:db8:1:a00::{:x}", "2001:db8:1:a00:ffff::1", "2001:db8:1:a01::1"),
        ("::ffff:192.0.2.10", "192.0.2.10", "::ffff:192.0.2.11"),
    ],
)
def test_a_client_has_only_so_many_requests_under_way(bed, alone, addresses, same, other):
    more = "set_real_ip_from 127.0.0.1; real_ip_header X-Client;"
    proxy = alone(bed.instances[0].port, more=more)
    with ExitStack() as stack:
        crowd(proxy, stack, [addresses.format(n) for n in range(MAX_REQUESTS)])
        for method, path in (("GET", "/auth/me"), ("PUT", "/auth/password"), ("POST", UPLOAD)):
            answer = asks(proxy, same, method, path).fails(429, "rate_limited")
            assert answer.retry_after == 2
            assert asks(proxy, other, method, path).status == 401
    eventually(lambda: asks(proxy, same).status == 401, "the requests have ended")


def test_streams_are_not_counted_as_requests(bed, alone, user):
    """A whole office may share one address, and each of its open pages has a stream."""
    proxy = alone(bed.instances[0].port)
    with proxy.client() as client, ExitStack() as stack:
        client.login(user).ok()
        streams = [stack.enter_context(OpenStream(client)).opened() for _ in range(3)]
        crowd(proxy, stack, ["nobody"] * MAX_REQUESTS)
        streams.append(stack.enter_context(OpenStream(client)).opened())
        client.me().fails(429, "rate_limited")


def test_a_stream_has_no_body(client):
    client.post("/auth/events/storage", b"{}").fails(*TOO_LARGE)
    client.post("/auth/events/storage").fails(405, "endpoint.not_found")


def test_avatars_are_sent_by_nginx_with_the_headers_of_the_service(bed, client):
    upload(client, plain(RED)).ok()
    answer = client.get("/auth/profile/avatar/512")
    assert (answer.status, answer.body[8:12]) == (200, b"WEBP")
    assert answer.headers["Content-Type"] == "image/webp"
    assert answer.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    assert answer.headers["ETag"].startswith('"v1-')
    assert "X-Accel-Redirect" not in answer.headers
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    known = client.get(
        "/auth/profile/avatar/512", headers={"If-None-Match": answer.headers["ETag"]}
    )
    assert (known.status, known.body) == (304, b"")
    with bed.client() as stranger:
        stranger.get("/auth/profile/avatar/512").fails(401, "auth.token_missing")
    file = next(bed.avatars.rglob("512.webp"))
    inside = f"/internal/avatars/{file.relative_to(bed.avatars)}"
    assert get(bed, inside, client.cookies) == 404


def test_listed_pages_can_read_avatars(bed, client):
    """nginx keeps none of the service's CORS headers by itself when it sends the file."""
    page = "https://app.example"
    configure(
        bed.rt,
        cors_enabled=True,
        cors_allowed_origins=[page],
        cors_allow_credentials=True,
    )
    upload(client, plain(RED)).ok()
    expected = {
        "Access-Control-Allow-Origin": page,
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Expose-Headers": EXPOSED_HEADERS,
    }

    def are_sent():
        answer = client.get("/auth/profile/avatar/512", headers={"Origin": page})
        assert (answer.status, answer.body[8:12]) == (200, b"WEBP")
        return expected.items() <= dict(answer.headers).items()

    eventually(are_sent, "the headers, once the setting has arrived", 10)


@pytest.mark.parametrize(
    "condition", [("If-Match", '"v0"'), ("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")]
)
def test_a_condition_that_does_not_hold_is_refused_in_the_envelope(client, condition):
    upload(client, plain(RED)).ok()
    client.get("/auth/profile/avatar/512", headers=dict([condition])).fails(400, "bad_request")


def test_a_picture_that_has_just_gone_is_not_kept_by_browsers(bed, client):
    upload(client, plain(RED)).ok()
    for file in bed.avatars.rglob("*.webp"):
        file.unlink()
    client.get("/auth/profile/avatar/512").fails(404, "not_found")


@pytest.mark.parametrize("is_answered", [True, False])
def test_its_logs_repeat_no_token(bed, alone, is_answered):
    """Neither a link's in the query, an invitation's in the path, nor a page's in the Referer."""
    proxy = alone(bed.instances[0].port if is_answered else free_port())
    token, short, code = random_token(), random_hex(), "a-code-0f-6.chars"
    page = f"/invite/{token}?code={code}"
    with proxy.client() as client:
        link = client.get(f"/auth/contact-verification/confirm?token={code}")
        assert link.status == (302 if is_answered else 503)
        client.get(f"/auth/external-auth/callback?state={token}&code={code}")
        client.get(f"/auth/invitations/{token}")
        client.post(f"/auth/invitations/{token}/accept", {})
        client.post("/auth/check", headers={"Referer": f"https://files.example{page}"})
        client.get(f"/auth/%0a{token}")
        client.get(f"/auth/login%3Fflow=oev_{short}")
    plain_http = http.client.HTTPConnection("127.0.0.1", proxy.plain_port)
    plain_http.request("GET", page)
    assert plain_http.getresponse().status == 308
    plain_http.close()
    proxy.stop()
    access, errors = proxy.access_log.read_text(), proxy.error_log.read_text()
    assert access.count("\n") == 8
    assert '"GET /api/v1/auth/contact-verification/confirm" ' in access
    assert '"POST /api/v1/auth/invitations/..." ' in access
    assert '"GET /invite/..." 308 ' in access
    for secret in (token, short, code):
        assert secret not in access + errors


@pytest.mark.parametrize(
    "way",
    [
        "/health/metrics",
        "//health//metrics",
        "/health/./metrics?a",
        "/x/../health/metrics",
        "/health/%6detrics",
    ],
)
def test_metrics_stay_inside(bed, client, way):
    assert get(bed, way, client.cookies) == 404
    assert get(bed, "/health/ready", {}) == 200


def get(bed, path, cookies):
    """Return the status of a path, sent exactly as given."""
    cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
    lines = [f"GET {path} HTTP/1.1", f"Host: {HOST}", f"Cookie: {cookie}", "Connection: close"]
    with bed.proxy.dial() as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while data := connection.recv(65_536):
            answer += data
    return int(answer.split()[1])


def test_the_address_of_a_session_is_that_of_nginxs_client(client, user):
    client.post(
        "/auth/login",
        {"identifier": user.username, "password": user.password},
        headers={"X-Forwarded-For": "198.51.100.7"},
    ).ok()
    addresses = {session["ip_address"] for session in client.get("/auth/sessions").ok()}
    assert addresses == {"127.0.0.1"}


def test_an_event_passes_at_once(bed, client, user):
    with OpenStream(client) as stream:
        stream.opened()
        assert stream.headers["content-type"] == "text/event-stream"
        for number in range(3):
            event = StorageEvent(
                Kind.FILE_CREATED, {"kind": "personal"}, bed.rt.clock.now(), file_ids=(number,)
            )
            events.publish(bed.rt, Audience(user_id=user.id), event)
            assert stream.change(5)["file_ids"] == [number]
