"""The files an operator deploys with: nothing they refer to is missing or misspelt."""

import configparser
import re
import shutil
import subprocess
from ipaddress import ip_address, ip_network

import pytest
import yaml

from app.core.config import Config, ConfigError
from deploy.bed.proxy import find_nginx
from tests.support.servers import ROOT, NotStarted
from tests.support.smtp import HOST, Authority

DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
INSTANCES = ("app1", "app2")


def example():
    """Return the variables of the example environment, with the secret keys filled in."""
    lines = (DEPLOY / "gatehouse.env.example").read_text().splitlines()
    pairs = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    assert pairs["GATEHOUSE_SECRET_KEYS"] == "CHANGE-ME"
    return pairs | {"GATEHOUSE_SECRET_KEYS": "k1:" + "A" * 43}


def known_variables():
    """Return every variable that docs/configuration.md lists."""
    return set(
        re.findall(r"^\| `(GATEHOUSE_\w+)`", (ROOT / "docs" / "configuration.md").read_text(), re.M)
    )


def address_of(name):
    """Return the fixed IP address of a service."""
    return SERVICES[name]["networks"]["default"]["ipv4_address"]


def test_the_example_environment_is_accepted():
    assert set(example()) <= known_variables()
    config = Config.from_env(example())
    assert not config.embedded_redis
    assert config.database_url.startswith("postgresql")


def test_instances_trust_nginx_and_neither_the_gateway_nor_each_other():
    """Connections that Docker relays, for example over IPv6, come from the gateway's address."""
    [trusted] = Config.from_env(example()).trusted_proxies
    assert trusted == ip_network(address_of("nginx"))


def test_ports_are_published_where_clients_keep_their_addresses():
    [network] = COMPOSE["networks"]["default"]["ipam"]["config"]
    assert ip_network(network["subnet"]).version == 4
    hosts = [mapping.rpartition(":")[0] for mapping in SERVICES["nginx"]["ports"]]
    assert hosts == ["0.0.0.0:80", "0.0.0.0:443"]


def test_an_environment_without_keys_starts_nothing():
    """Each instance would make its own keys, and none would accept the others' sessions."""
    with pytest.raises(ConfigError, match=r"\AGATEHOUSE_SECRET_KEYS: [^\n]*\Z"):
        Config.from_env(example() | {"GATEHOUSE_SECRET_KEYS": "CHANGE-ME"})


def test_what_is_secret_is_not_committed():
    """docs/operations.md has operators create it inside the checkout."""
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"/deploy/gatehouse.env", "/deploy/postgres.env", "/deploy/tls/"} <= set(ignored)


@pytest.mark.parametrize("name", [*INSTANCES, "prepare"])
def test_containers_of_the_image_are_locked_down(name):
    service = SERVICES[name]
    assert service["read_only"]
    assert service["tmpfs"] == "/tmp"
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["env_file"] == "gatehouse.env"


def test_what_services_mount_and_wait_for_is_there():
    for service in SERVICES.values():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            if source.startswith("./") and source != "./tls":
                assert (DEPLOY / source).exists(), source
            elif not source.startswith("./"):
                assert source in COMPOSE["volumes"], source
        assert set(service.get("depends_on", ())) <= set(SERVICES)


def test_instances_start_when_the_database_is_up_to_date():
    for name in INSTANCES:
        waits = SERVICES[name]["depends_on"]
        assert waits["prepare"]["condition"] == "service_completed_successfully"
    assert SERVICES["prepare"]["command"] == ["flask", "--app", "wsgi", "prepare"]


def test_the_database_is_ready_only_where_instances_reach_it():
    """During its first set-up the image runs a server that answers on the unix socket only."""
    command = SERVICES["postgres"]["healthcheck"]["test"]
    assert command[:4] == ["CMD", "pg_isready", "-h", "127.0.0.1"]


def test_no_log_grows_without_end():
    for name, service in SERVICES.items():
        assert service["logging"] == {"driver": "local"}, name


def test_nginx_stands_before_exactly_the_instances_and_reads_their_avatars():
    text = (DEPLOY / "nginx" / "gatehouse" / "instances.conf").read_text()
    # Addresses, not names, since nginx resolves names only once.
    asked = re.findall(r"^server ([\d.]+):8000 max_fails=0;", text, re.M)
    given = [address_of(name) for name in INSTANCES]
    assert asked == given
    assert len(re.findall(r"^\s*server\b", text, re.M)) == len(given)
    [network] = COMPOSE["networks"]["default"]["ipam"]["config"]
    for address in map(ip_address, [*given, address_of("nginx")]):
        assert address in ip_network(network["subnet"])
        assert address not in ip_network(network["ip_range"]), "another container may get it"
    folder = example()["GATEHOUSE_AVATAR_DIR"]
    avatars = (DEPLOY / "nginx" / "gatehouse" / "avatars.conf").read_text()
    assert f"alias {folder}/;" in avatars
    for name in (*INSTANCES, "nginx"):
        assert any(v.split(":")[1] == folder for v in SERVICES[name]["volumes"]), name
    location = (DEPLOY / "nginx" / "conf.d" / "gatehouse.conf").read_text()
    assert f"location {example()['GATEHOUSE_AVATAR_ACCEL']}/ {{" in location
    # The group that the image creates for the service.
    assert SERVICES["nginx"]["user"].endswith(":10001")
    assert "--uid 10001" in (ROOT / "Dockerfile").read_text()


def test_nginx_takes_the_files_that_compose_mounts(tmp_path):
    """The bed writes its own gatehouse/, so no other test reads this one."""
    try:
        program = find_nginx()
    except NotStarted as reason:
        pytest.skip(str(reason))
    here = tmp_path / "nginx"
    shutil.copytree(DEPLOY / "nginx", here)
    places = {"/etc/nginx/": f"{here}/", "/tmp/": f"{tmp_path}/"}
    for file in (here / "gatehouse").iterdir():
        moved = re.sub("/etc/nginx/|/tmp/", lambda found: places[found[0]], file.read_text())
        file.write_text(moved)
    (here / "tls").mkdir()
    certificate = Authority(tmp_path).pem(HOST).read_text()
    for name in ("fullchain.pem", "privkey.pem"):
        (here / "tls" / name).write_text(certificate)
    command = [program, "-t", "-e", "stderr", "-c", str(here / "nginx.conf")]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr


def test_the_database_has_room_for_all_connections():
    config = Config.from_env(example())
    per_instance = config.workers * (2 * config.database_pool)
    setting = next(a for a in SERVICES["postgres"]["command"] if a.startswith("max_connections"))
    # During an upgrade there may be one more instance, and commands connect as well.
    assert int(setting.split("=")[1]) >= 3 * per_instance + 20


def unit():
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str
    parser.read(DEPLOY / "gatehouse@.service")
    return parser


def test_the_unit_names_variables_that_exist():
    text = (DEPLOY / "gatehouse@.service").read_text()
    assert set(re.findall(r"GATEHOUSE_\w+", text)) <= known_variables()
    assert unit()["Service"]["Type"] == "notify"
    assert unit()["Service"]["KillMode"] == "mixed"


def test_the_unit_loses_neither_lines_nor_all_workers_with_one():
    service = unit()["Service"]
    assert service["LogRateLimitIntervalSec"] == "0"
    assert service["OOMPolicy"] == "continue"


def test_the_unit_keeps_instance_folders_as_private_as_doctor_wants_them():
    assert unit()["Service"]["StateDirectoryMode"] == "0700"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_understands_the_unit_and_finds_it_well_guarded(tmp_path):
    # systemd requires that programs exist.
    text = (DEPLOY / "gatehouse@.service").read_text()
    text = text.replace("/opt/gatehouse/.venv/bin/python", "/usr/bin/env")
    (tmp_path / "gatehouse@8001.service").write_text(text)
    file = str(tmp_path / "gatehouse@8001.service")
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True, check=False
    )
    complaints = [line for line in verified.stderr.splitlines() if "gatehouse@" in line]
    assert complaints == []
    security = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert security.returncode == 0, security.stdout[-500:]
