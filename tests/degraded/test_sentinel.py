"""Redis that is found by way of its Sentinels: real servers, whose primary dies."""

import re
import socket
import socketserver
import threading
from contextlib import ExitStack, closing

import gevent
import pytest
from redis.exceptions import RedisError

from app.installation import machine_checks
from app.store import redis as redis_client
from app.store import sentinel
from tests.support import servers
from tests.support.challenge import give_totp, verify
from tests.support.factories import make_user
from tests.support.live import LiveService, eventually, free_port
from tests.support.load import load
from tests.support.sentinel import IMPATIENT_MS, PATIENT_MS, Node, WatchedValkey

PASSWORD, AT_SENTINEL = "hunter2server", "hunter2sentinel"


@pytest.fixture
def watched():
    with servers.short_folder() as folder, WatchedValkey(folder) as pair:
        yield pair


@pytest.fixture
def redis(watched):
    with closing(redis_client.connect(watched.url, timeout_seconds=1)) as client:
        yield client


@pytest.fixture
def service(watched, tmp_path, database_url):
    many = {"LOGIN_FAILURES": "10000/300"}
    service = LiveService(tmp_path, database_url, watched.url, **many)
    with ExitStack() as stack:
        stack.callback(service.stop)
        service.wait_for_subscriptions()
        yield service


def signing_in(service, user):
    """Have people sign in all the time, as far as the second step; see `load`."""
    return load(service, lambda client: [client.login(user).status], {200, 503})


def sign_in_on_each_worker(service, user, codes):
    """Sign in with a second factor as soon as it works; each worker takes one of the codes."""
    with service.client_on_each_worker() as clients:
        for client in clients:
            code = codes.pop()

            def signs_in(client=client, code=code):
                begun = client.login(user)
                if begun.status == 503:
                    return False
                token = begun.ok()["flow_token"]
                return verify(client, token, code, "recovery_code").status == 200

            eventually(signs_in, "a second factor that is taken")


@pytest.mark.soak
@pytest.mark.parametrize("how", ["kill", "hang"])
def test_signing_in_works_again_once_sentinel_names_another_primary(watched, service, how):
    user = make_user(service.rt)
    codes = list(give_totp(service.rt, user).recovery_codes)
    with signing_in(service, user) as statuses:
        eventually(lambda: statuses[200] > 10, "people who are served")
        dead = watched.primary
        watched.fail_over_after(IMPATIENT_MS)
        getattr(dead, how)()
        watched.wait_for_failover(dead)
        sign_in_on_each_worker(service, user, codes)
        service.wait_for_subscriptions()
        watched.fail_over_after(PATIENT_MS)
        dead.start() if how == "kill" else dead.resume()
        watched.wait_for_replica()
        assert watched.primary is not dead
        sign_in_on_each_worker(service, user, codes)
    service.wait_for_subscriptions()


def test_a_primary_that_is_cut_off_but_lives_is_left(watched, service):
    user = make_user(service.rt)
    codes = list(give_totp(service.rt, user).recovery_codes)
    with signing_in(service, user) as statuses:
        eventually(lambda: statuses[200] > 10, "people who are served")
        watched.fail_over_after(IMPATIENT_MS)
        watched.wait_for_failover(watched.cut_off())
        sign_in_on_each_worker(service, user, codes)
    service.wait_for_subscriptions()


def test_without_its_sentinel_what_is_connected_goes_on(watched, redis):
    pool = redis.connection_pool
    assert redis.set("key", "value")
    watched.sentinel.kill()
    assert redis.get("key") == "value"
    taken = pool.get_connection()
    with pytest.raises(RedisError, match="no Sentinel names a primary"):
        redis.get("key")
    pool.release(taken)
    assert redis.get("key") == "value"
    taken = pool.get_connection()
    watched.sentinel.start()
    assert redis.get("key") == "value"
    pool.release(taken)


def test_nobody_gets_an_answer_that_came_too_late_for_another(watched):
    client = redis_client.connect(watched.url, timeout_seconds=1, retries=0)
    with closing(client) as impatient:
        assert impatient.mset({"one": "of one", "two": "of two"})
        watched.hang()
        with pytest.raises(RedisError):
            impatient.get("one")
        watched.resume()
        assert eventually(lambda: answer(impatient, "two"), "an answer") == "of two"


def answer(redis, key):
    try:
        return redis.get(key)
    except RedisError:
        return None


def test_an_idle_connection_to_a_former_primary_is_not_used(watched, redis):
    pool = redis.connection_pool
    taken = [pool.get_connection() for _ in range(3)]
    for connection in taken:
        pool.release(connection)
    former = watched.primary
    watched.fail_over_after(IMPATIENT_MS)
    former.hang()
    watched.wait_for_failover(former)
    eventually(lambda: is_at(redis, watched.primary), "a connection to the new primary")
    for connection in (again := [pool.get_connection() for _ in range(3)]):
        assert connection.port == watched.primary.port
    for connection in again:
        pool.release(connection)


def is_at(redis, node):
    try:
        return redis.info("server")["tcp_port"] == node.port
    except RedisError:
        return False


def test_the_next_sentinel_is_asked_if_the_first_is_dead(watched):
    url = watched.url.replace("127.0.0.1", f"127.0.0.1:{free_port()},127.0.0.1", 1)
    with closing(redis_client.connect_fail_fast(url)) as redis:
        assert redis.ping()


def test_the_next_sentinel_is_asked_if_the_first_is_none(watched):
    url = watched.url.replace("127.0.0.1", f"127.0.0.1:{watched.other.port},127.0.0.1", 1)
    with closing(redis_client.connect_fail_fast(url)) as redis:
        assert redis.ping()


def test_many_who_ask_at_once_share_few_connections(watched, redis):
    def number():
        with watched.sentinel.client() as client:
            return len(client.client_list())

    before, together = number(), threading.Barrier(50)

    def ask():
        together.wait()
        redis.get("key")

    people = [threading.Thread(target=ask) for _ in range(50)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert 0 < number() - before <= sentinel.CONNECTIONS


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b":1", "it is no Sentinel"),
        (b"*1\r\n*2\r\n$4\r\nname\r\n$9\r\ngatehouse", "it is no Sentinel"),
        (
            b"*1\r\n*8\r\n$4\r\nname\r\n$9\r\ngatehouse\r\n$5\r\nflags\r\n$6\r\nmaster"
            b"\r\n$2\r\nip\r\n$4\r\na..b\r\n$4\r\nport\r\n$1\r\n1",
            "a host that is not valid",
        ),
    ],
)
def test_whatever_a_sentinel_answers_counts_as_redis_failing(answer, said):
    class Answers(socketserver.StreamRequestHandler):
        def handle(self):
            while line := self.rfile.readline():
                if b"SETINFO" in line:
                    self.wfile.write(b"+OK\r\n")
                if b"MASTERS" in line:
                    self.wfile.write(answer + b"\r\n")

    with ExitStack() as stack:
        server = stack.enter_context(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answers))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        url = f"redis+sentinel://127.0.0.1:{server.server_address[1]}/gatehouse"
        redis = stack.enter_context(closing(redis_client.connect(url)))
        with pytest.raises(RedisError, match=said):
            redis.ping()


@pytest.fixture
def silent_dns(monkeypatch):
    """Let the DNS say nothing of any name."""
    look_up = socket.getaddrinfo

    def wait(host, *arguments, **options):
        if host in {"127.0.0.1", "localhost"}:
            return look_up(host, *arguments, **options)
        gevent.sleep(60)
        pytest.fail("it was waited for the DNS")

    monkeypatch.setattr(socket, "getaddrinfo", wait)


def test_the_next_sentinel_is_asked_if_the_dns_is_silent(watched, silent_dns):
    url = watched.url.replace("127.0.0.1", "one.example,127.0.0.1", 1)
    with closing(redis_client.connect_fail_fast(url)) as redis:
        assert redis.ping()


def test_the_dns_is_not_waited_for_if_sentinel_names_a_name(watched, silent_dns, monkeypatch):
    named = ("one.example", watched.primary.port)
    monkeypatch.setattr(sentinel.Sentinels, "find_primary", lambda _: named)
    with (
        closing(redis_client.connect_fail_fast(watched.url)) as redis,
        pytest.raises(RedisError, match="did not answer in time"),
    ):
        redis.ping()


def test_servers_and_sentinels_have_passwords_of_their_own():
    with ExitStack() as stack:
        folder = stack.enter_context(servers.short_folder())
        pair = WatchedValkey(folder, password=PASSWORD, at_sentinel=AT_SENTINEL)
        stack.enter_context(pair)
        redis = stack.enter_context(closing(redis_client.connect(pair.url)))
        assert redis.ping()
        assert "hunter2" not in repr(redis) + repr(redis.connection_pool)
        for secret in (PASSWORD, AT_SENTINEL):
            url = pair.url.replace(secret, "hunter2wrong")
            wrong = stack.enter_context(closing(redis_client.connect(url)))
            with pytest.raises(RedisError) as refused:
                wrong.ping()
            assert not re.search("hunter2", str(refused.value))


def test_tls_is_for_servers_and_sentinels():
    """Only how they are connected to: the Valkey of the suite was built without TLS."""
    url = "rediss+sentinel://me:one@a.example,b.example:1/files/2?ssl_cert_reqs=optional"
    with closing(redis_client.connect(f"{url}&sentinel_username=you")) as redis:
        connection = redis.connection_pool.make_connection()
        assert isinstance(connection, sentinel.PrimaryTLSConnection)
        assert (connection.username, connection.password, connection.db) == ("me", "one", 2)
        clients = connection._sentinels._clients
        options = [client.connection_pool.connection_kwargs for client in clients]
        assert [(one["host"], one["port"]) for one in options] == [
            ("a.example", 26379),
            ("b.example", 1),
        ]
        for client in clients:
            of_sentinel = client.connection_pool.make_connection()
            assert of_sentinel.cert_reqs == connection.cert_reqs
            assert (of_sentinel.username, of_sentinel.password) == ("you", None)


def test_the_doctor_names_a_node_of_a_cluster(make_app):
    with servers.short_folder() as folder, ExitStack() as stack:
        node = Node(folder / "node", ["cluster-enabled yes"])
        node.start()
        stack.callback(node.kill)
        url = f"redis://127.0.0.1:{node.port}"
        redis = stack.enter_context(closing(redis_client.connect(url)))
        finding = machine_checks.redis(make_app(redis=redis).extensions["gatehouse"])
    assert finding.level is machine_checks.Level.FAIL
    assert "node of a cluster" in str(finding.message)
