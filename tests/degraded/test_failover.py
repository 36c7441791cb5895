"""PostgreSQL and Redis behind an address that leads to a standby for a while."""

from contextlib import ExitStack, closing
from itertools import takewhile

import pytest
from redis import Redis
from redis.exceptions import ReadOnlyError

from app.core.errors import ErrorCode
from app.store import postgres
from app.store import redis as redis_client
from tests.support import servers
from tests.support.factories import make_user
from tests.support.live import LiveService, eventually
from tests.support.load import load
from tests.support.moving_address import MovingAddress

pytestmark = pytest.mark.postgres

MOST_TRIES = 100


class Pair:
    """A primary and its standby behind one address."""

    def __init__(self, stack):
        folders = [stack.enter_context(servers.short_folder()) for _ in range(2)]
        self.primary = stack.enter_context(servers.PrivatePostgres(folders[0]))
        servers.migrate(self.primary.cluster.create("gatehouse"))
        self.standby = stack.enter_context(servers.StandbyPostgres(folders[1], self.primary))
        self.address = stack.enter_context(MovingAddress(self.primary.socket))

    def wait_for_standby(self):
        """Return once it has what the primary has by now."""
        # Of these servers, commits do not wait until they are written.
        written = self.primary.cluster.ask("SELECT pg_current_wal_insert_lsn()::text")
        has_it = f"SELECT pg_last_wal_replay_lsn() >= '{written}'"
        eventually(lambda: self.standby.cluster.ask(has_it), "the standby to follow")

    def url(self, options=""):
        return f"postgresql://postgres@127.0.0.1:{self.address.port}/gatehouse{options}"

    def url_of_both(self):
        """The URL that names both servers, the primary first."""
        hosts = f"{self.primary.folder},{self.standby.folder}"
        return f"postgresql://postgres@/gatehouse?host={hosts}&target_session_attrs=read-write"


@pytest.fixture
def pair():
    with ExitStack() as stack:
        yield Pair(stack)


@pytest.fixture
def serve(pair, tmp_path, live_redis_server):
    """Start the service on the pair, by default at its address."""
    with ExitStack() as stack:

        def start(url=None):
            # Redis may answer too late on a busy machine: what it did not hear of stays counted.
            many = {"LOGIN_FAILURES": "10000/300"}
            service = LiveService(tmp_path, url or pair.url(), live_redis_server, **many)
            stack.callback(service.stop)
            service.wait()
            return service

        yield start


def signing_in_and_reading(service, user):
    """Have people use the service all the time; see `load`."""

    def use(client):
        yield client.login(user).status
        for _ in range(5):
            yield client.me().status

    return load(service, use, {200, 401, 503})


def refusals(service, user):
    """Return how many sign-ins each worker refuses until one succeeds, one after the other.

    Those count that are refused for the database's sake, not because much is going on.
    """
    with service.client_on_each_worker() as clients:
        found = []
        for client in clients:
            answers = (client.login(user) for _ in range(MOST_TRIES))
            codes = [one.code for one in takewhile(lambda one: one.status != 200, answers)]
            assert len(codes) < MOST_TRIES, codes
            found.append(codes.count(ErrorCode.DATABASE_ERROR))
        return found


def wait_for_refusals(statuses):
    seen = statuses[503]
    eventually(lambda: statuses[503] > seen + 20, "people who are refused")


def test_sign_in_works_as_soon_as_the_address_is_back(pair, serve):
    service = serve()
    user = make_user(service.rt)
    with signing_in_and_reading(service, user) as statuses:
        pair.address.move(pair.standby.socket)
        wait_for_refusals(statuses)
        pair.address.move(pair.primary.socket)
        assert refusals(service, user) == [0, 0]


def test_a_standby_that_becomes_the_primary_is_used_at_once(pair, serve):
    service = serve()
    user = make_user(service.rt)
    with signing_in_and_reading(service, user) as statuses:
        eventually(lambda: statuses[200] > 20, "people who are served")
        pair.primary.stop()  # fast: what it has committed is sent to the standby first
        pair.address.move(pair.standby.socket)
        wait_for_refusals(statuses)
        pair.standby.promote()
        assert refusals(service, user) == [0, 0]


@pytest.mark.soak
def test_a_silent_server_is_passed_over_where_the_url_names_another(pair, serve):
    """As when the machine of the primary freezes: it is first in the URL, and stays there."""
    service = serve(pair.url_of_both())
    user = make_user(service.rt)
    pair.wait_for_standby()
    pair.primary.hang()
    pair.standby.promote()
    with service.client_on_each_worker() as clients:
        for client in clients:
            eventually(lambda c=client: c.login(user).status == 200, "a sign-in")
            client.login(user).ok()


def test_connections_to_a_standby_are_not_kept(pair, serve):
    """As where the URL takes any server, and connections outlive the failover."""
    service = serve(pair.url("?target_session_attrs=any"))
    user = make_user(service.rt)
    with signing_in_and_reading(service, user) as statuses:
        pair.address.move(pair.standby.socket)
        wait_for_refusals(statuses)
        pair.address.move(pair.primary.socket, cuts=False)
        assert max(refusals(service, user)) <= 1


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("postgresql://db.example/g", "read-write"),
        ("postgresql:///g?host=/run/postgresql", "read-write"),
        ("postgresql:///g", "read-write"),
        ("postgresql://db.example/g?target_session_attrs=any", "any"),
        ("postgresql://db.example/g?target_session_attrs=primary", "primary"),
        ("postgresql://a.example,b.example/g", None),
        ("postgresql:///g?host=a.example,b.example", None),
        ("postgresql:///g?hostaddr=192.0.2.1,192.0.2.2", None),
        ("postgresql://a.example,b.example/g?target_session_attrs=read-write", "read-write"),
    ],
)
def test_a_standby_is_refused_unless_the_url_says_otherwise(url, asked):
    assert postgres.connect_args(url).get("target_session_attrs") == asked


@pytest.mark.parametrize("connect", [redis_client.connect, redis_client.connect_fail_fast])
def test_connections_to_a_replica_of_redis_are_not_kept(connect):
    with ExitStack() as stack:
        primary, replica = (
            stack.enter_context(servers.PrivateValkey(stack.enter_context(servers.short_folder())))
            for _ in range(2)
        )
        with closing(Redis.from_url(replica.url)) as operator:
            operator.replicaof("127.0.0.1", "1")
        address = stack.enter_context(MovingAddress(replica.socket))
        redis = stack.enter_context(closing(connect(f"redis://127.0.0.1:{address.port}")))
        with pytest.raises(ReadOnlyError):
            redis.set("key", "value")
        address.move(primary.socket, cuts=False)
        assert redis.set("key", "value")
