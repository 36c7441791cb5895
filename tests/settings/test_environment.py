"""The addresses of database and Redis, as an operator may mistype them (`Config.from_env`)."""

import base64
import re
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from app.core.config import Config, ConfigError
from app.factory import create_app
from tests.support import servers

PASSWORD = "hunter2secret"


def complaint(**variables):
    """Return what the operator reads: one line."""
    with pytest.raises(ConfigError) as caught:
        Config.from_env({f"GATEHOUSE_{name}": value for name, value in variables.items()})
    text = str(caught.value)
    assert "\n" not in text
    assert PASSWORD not in text
    return text


def config(**variables):
    return Config.from_env({f"GATEHOUSE_{name}": value for name, value in variables.items()})


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{PASSWORD}@db:notaport/name",
        f"postgresql//me:{PASSWORD}@db/name",
        f"mysql://me:{PASSWORD}@db/name",
        f"://me:{PASSWORD}@db/name",
        f"postgresql://me:{PASSWORD}@[::1/name",
        "/var/lib/gatehouse.db",
    ],
)
def test_a_bad_database_url_is_one_line_without_its_password(url):
    assert complaint(DATABASE_URL=url).startswith("GATEHOUSE_DATABASE_URL: ")


@pytest.mark.parametrize(
    "url",
    [
        f"http://:{PASSWORD}@cache:6379/0",
        f"redis:/:{PASSWORD}@cache",
        f"redis://:{PASSWORD}@cache:notaport/0",
        f":{PASSWORD}@cache:6379",
        "localhost",
    ],
)
def test_a_bad_redis_url_is_one_line_without_its_password(url):
    assert complaint(REDIS_URL=url).startswith("GATEHOUSE_REDIS_URL: ")


def test_all_bad_addresses_are_named_at_once_a_line_each():
    with pytest.raises(ConfigError) as caught:
        config(DATABASE_URL="nonsense", REDIS_URL="nonsense", BIND="nonsense")
    lines = str(caught.value).splitlines()
    names = ["GATEHOUSE_BIND", "GATEHOUSE_DATABASE_URL", "GATEHOUSE_REDIS_URL"]
    assert sorted(line.partition(":")[0] for line in lines) == names


@pytest.mark.parametrize(
    "secret",
    [
        "correct horse battery staple and a good deal more of words",
        "a+b/" * 16,
        "short",
        "",
    ],
)
def test_a_secret_key_is_base64url_of_32_bytes_and_nothing_else(secret):
    assert complaint(SECRET_KEYS=f"k1:{secret}").startswith("GATEHOUSE_SECRET_KEYS: must be ID:")


@pytest.mark.parametrize("padding", ["", "="])
def test_a_secret_key_may_be_padded(padding):
    encoded = base64.urlsafe_b64encode(b"s" * 32).decode().rstrip("=")
    assert config(SECRET_KEYS=f"k1:{encoded}{padding}").secret_keys == (("k1", b"s" * 32),)


def test_a_socket_needs_a_path():
    assert complaint(BIND="unix:") == "GATEHOUSE_BIND: must be HOST:PORT or unix:PATH"
    assert config(BIND="unix:/run/gatehouse.sock").bind == "unix:/run/gatehouse.sock"


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused(url):
    assert "file" in complaint(DATABASE_URL=url)


@pytest.mark.parametrize("url", ["sqlite:///file::memory:?uri=true", "sqlite:///?mode=memory"])
def test_a_database_in_memory_by_another_name_is_none(url):
    """Either refused, or a file whose name happens to look like that."""
    try:
        url = config(DATABASE_URL=url).database_url
    except ConfigError:
        return
    assert url.startswith("sqlite:////")
    assert "?" not in url


@pytest.mark.parametrize("path", ["data/my.db", "./my.db", "my.db"])
def test_a_relative_database_file_is_found_from_everywhere(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = config(DATABASE_URL=f"sqlite:///{path}").database_url
    monkeypatch.chdir("/")
    file = Path(url.removeprefix("sqlite:///"))
    assert file == (tmp_path / path)
    assert file.is_absolute()


@pytest.mark.parametrize(
    "name", ["a%20b", "a b", "a?b=c", "a#b", "100%", "a+b", "ä:@", "a;b&c", "%2e%2e", "'\""]
)
def test_the_folder_of_an_instance_is_taken_as_it_is_written(tmp_path, name):
    file = tmp_path / name / "gatehouse.db"
    assert make_url(config(INSTANCE=str(file.parent)).database_url).database == str(file)
    file.parent.mkdir()
    sqlite3.connect(make_url(config(INSTANCE=str(file.parent)).database_url).database).close()
    assert file.exists()


def test_an_absolute_database_file_is_kept(tmp_path):
    url = f"sqlite:///{tmp_path}/my.db"
    assert config(DATABASE_URL=url).database_url == url


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg2"])
def test_postgresql_is_reached_by_the_installed_driver_whatever_it_is_called(scheme):
    rest = "me:p%40ss%2Fword@db.example:5433/gatehouse?sslmode=require"
    url = config(DATABASE_URL=f"{scheme}://{rest}").database_url
    assert url == f"postgresql://{rest}"


@pytest.mark.parametrize(
    "form",
    [
        "",
        "localhost:5433",
        "me@localhost/files?connect_timeout=10&application_name=mine",
        "one:123,two:456/files?target_session_attrs=any",
        "/files?host=localhost&port=5433",
        "[2001:db8::1234]/files",
        "%2Fvar%2Flib%2Fpostgresql/files",
        "me@localhost:5433/files?options=-c%20synchronous_commit%3Doff",
        "localhost/files?ssl=true",
        "one,two/files?hostaddr=192.0.2.1,192.0.2.2",
        "localhost/files?gssencmode=require",
    ],
)
def test_postgresqls_address_may_have_any_form_of_its_manual(form):
    assert config(DATABASE_URL=f"postgresql://{form}").database_url == f"postgresql://{form}"


@pytest.mark.parametrize(
    "form",
    [
        f"me:{PASSWORD}@localhost/files?sslmode=maybe",
        f"me:{PASSWORD}@localhost:99999/files",
        f"me:{PASSWORD}/2@localhost/files",
        f"localhost/files?{PASSWORD}=1",
        "localhost/files?connect_timeout=soon",
        "localhost/files?keepalives_idle=soon",
        "localhost/files?target_session_attrs=best",
        "localhost/files?service=nobody",
        "one:1,two:2,three:3/files?hostaddr=192.0.2.1",
        "one/files?port=1,2",
        "localhost/files?client_encoding=latin1",
        "me:%zz@localhost/files",
    ],
)
def test_what_libpq_would_refuse_at_the_first_request_stops_the_start(form):
    said = complaint(DATABASE_URL=f"postgresql://{form}")
    assert said.startswith("GATEHOUSE_DATABASE_URL: ")


def test_a_folder_is_no_database(tmp_path):
    assert "folder" in complaint(DATABASE_URL=f"sqlite:///{tmp_path}")


@pytest.mark.parametrize(
    "url",
    [
        f"http://:{PASSWORD}@cache:6379/0",
        f"redis://cache?{PASSWORD}=1",
        f"redis://:1#{PASSWORD}@cache",
        "redis://127.0.0.1:6379/0?ssl_cert_reqs=none",
        "rediss://cache?ssl_cert_reqs=maybe",
        "redis://cache?protocol=3",
        "redis://cache?retry=3",
        "redis://cache?retry_on_error=TimeoutError",
        "redis://cache?socket_read_size=10",
        "redis://cache?connection_class=x",
        "redis://cache?maint_notifications_config=x",
        "redis://cache/files",
        "redis://cache/-1",
        "redis://cache?db=-1",
        "redis://..cache",
        "unix://",
        f"unix:///{'long' * 30}",
        f"redis+sentinel://:{PASSWORD}@one:26379",
        f"redis+sentinel://:{PASSWORD}@one:26379/",
        f"redis+sentinel://:{PASSWORD}@/files",
        f"redis+sentinel://:{PASSWORD}@one,:26379/files",
        f"redis+sentinel://:{PASSWORD}@one:notaport/files",
        f"redis+sentinel://:{PASSWORD}@one:65536/files",
        f"redis+sentinel://:{PASSWORD}@..one/files",
        f"redis+sentinel://:{PASSWORD}@::1/files",
        f"redis+sentinel://me:1/{PASSWORD}@one",
        f"redis+sentinel://:{PASSWORD}@one/files/zero",
        f"redis+sentinel://:{PASSWORD}@one/files/0/0",
        f"redis+sentinel://one/files?{PASSWORD}=1",
        f"redis+sentinel://:1#{PASSWORD}@one/files",
        "redis+sentinel://one/files?ssl_cert_reqs=none",
        "rediss+sentinel://one/files?ssl_cert_reqs=maybe",
        "redis+sentinel://one/files?retry=3",
        f"sentinel://:{PASSWORD}@one/files",
    ],
)
def test_what_redis_client_would_refuse_at_the_first_request_stops_the_start(url):
    assert complaint(REDIS_URL=url).startswith("GATEHOUSE_REDIS_URL: ")


@pytest.mark.parametrize(
    "url",
    [
        f"rediss://me:{PASSWORD}@cache:6380/0",
        "rediss://cache?ssl_cert_reqs=none&ssl_check_hostname=no&ssl_ca_certs=/etc/ca.pem",
        "unix:///run/valkey.sock?db=2",
        "unix://me@/run/valkey.sock?password=x",
        "redis://[::1]:6379",
        "redis://cache?client_name=files",
        "redis:///1",
        "redis+sentinel://one/files",
        f"redis+sentinel://me:{PASSWORD}@one:26379,two,[::1]:26380/files/0?client_name=files",
        f"rediss+sentinel://one/files/1?ssl_ca_certs=/etc/ca.pem&sentinel_password={PASSWORD}",
    ],
)
def test_a_good_redis_url_is_kept_as_it_is(url):
    assert config(REDIS_URL=url).redis_url == url


@pytest.mark.parametrize("scheme", ["redis+cluster", "rediss+cluster"])
def test_a_cluster_is_refused_and_what_can_be_used_instead_is_said(scheme):
    said = complaint(REDIS_URL=f"{scheme}://:{PASSWORD}@one:6379,two:6379/0")
    assert "a Redis Cluster cannot be used" in said
    assert "redis+sentinel://" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOGIN_FAILURES", "0.5/300"),
        ("LOGIN_FAILURES", "10/0.5"),
        ("RATE_LIMIT_ANONYMOUS", "5/0.5"),
        ("ARGON2", "19456/2.5/1"),
    ],
)
def test_what_is_counted_is_a_whole_number(name, value):
    """Half an attempt would be none, and nobody could sign in; half a second no window at all."""
    assert "whole number" in complaint(**{name: value})


def test_a_refill_may_be_less_than_one_a_second():
    assert config(RATE_LIMIT_ANONYMOUS="0.5/5").anonymous_bucket.per_second == 0.5


def test_networks_of_ones_own_are_where_providers_may_be_asked(tmp_path):
    named = config(INSTANCE=str(tmp_path), PROVIDER_NETWORKS="10.0.0.0/8, fd12::/16,192.0.2.7")
    networks = [str(network) for network in named.provider_networks]
    assert networks == ["10.0.0.0/8", "fd12::/16", "192.0.2.7/32"]
    app = create_app(named)
    assert app.extensions["gatehouse"].http_client.internal == named.provider_networks
    app.extensions["gatehouse"].close()
    assert complaint(PROVIDER_NETWORKS="ten").startswith("GATEHOUSE_PROVIDER_NETWORKS: ")


# --- variables nobody reads -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("WORKER", "WORKERS"),
        ("LOGFORMAT", "LOG_FORMAT"),
        ("workers", "WORKERS"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("SECRET_KEY", "SECRET_KEYS"),
    ],
)
def test_a_misspelt_variable_is_told_with_the_nearest_one_and_without_its_value(typed, meant):
    [complaint] = config(**{typed: PASSWORD}).unknown_variables
    assert complaint.startswith(f"GATEHOUSE_{typed} is not a variable")
    assert complaint.endswith(f"; did you mean GATEHOUSE_{meant}?")
    assert PASSWORD not in complaint


def test_a_variable_that_is_like_none_is_told_too():
    [complaint] = config(XYZZY="1").unknown_variables
    assert complaint == "GATEHOUSE_XYZZY is not a variable of this version and is ignored"
    assert config(PORT="8080").unknown_variables
    assert config(XYZZY=" ").unknown_variables == ()


@pytest.mark.parametrize("name", ["AVATAR_DIR", "MAIL_DIR"])
def test_a_folder_that_a_file_is_in_the_way_of_is_refused(tmp_path, name):
    file = tmp_path / "file"
    assert config(**{name: str(file)})  # a missing one is made when it is needed
    file.touch()
    for folder in (file, file / "below"):
        assert complaint(**{name: str(folder)}) == f"GATEHOUSE_{name}: {file} is not a folder"


@pytest.mark.parametrize("service", ["", "NGINX_", "VALKEY_0_"])
def test_what_kubernetes_tells_of_services_whose_names_begin_like_ours_is_no_mistake(service):
    told = {
        "SERVICE_HOST": "10.0.0.1",
        "SERVICE_PORT": "8000",
        "SERVICE_PORT_HTTP": "8000",
        "PORT": "tcp://10.0.0.1:8000",
        "PORT_8000_TCP": "tcp://10.0.0.1:8000",
        "PORT_8000_TCP_ADDR": "10.0.0.1",
    }
    assert config(**{service + name: value for name, value in told.items()}).unknown_variables == ()
    assert config(**{f"{service}PORT": "8080"}).unknown_variables


def test_every_variable_the_product_names_is_known():
    """Those of code, scripts and deployment; a new one that is read apart must be told."""
    folders = (servers.ROOT / name for name in ("app", "bin", "deploy"))
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files = [path for path in files if path.suffix != ".pyc"]
    files += [servers.ROOT / name for name in ("gunicorn.conf.py", "wsgi.py", "Dockerfile")]
    named = set()
    for file in files:
        named |= set(re.findall(rb"GATEHOUSE_([A-Z0-9_]*[A-Z0-9])", file.read_bytes()))
    assert {b"WORKERS", b"PREPARES", b"CLIENT_SECRET"} <= named
    for name in sorted(name.decode() for name in named):
        with suppress(ConfigError):  # which is known, and 1 is no value for it
            assert config(**{name: "1"}).unknown_variables == (), name
