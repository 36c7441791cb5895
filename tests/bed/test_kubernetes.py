"""deploy/kubernetes agrees with the product, with compose.yaml and with deploy/nginx.

bin/check holds the files against the schemas of Kubernetes.
"""

import http.client
import os
import re
import shutil
import subprocess
import threading
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import ClassVar

import pytest
import yaml

from app.core.config import Config
from deploy.bed.proxy import CONFIGURATION, find_nginx
from tests.bed.test_files import SERVICES, example, known_variables
from tests.support.live import dial, eventually, free_port
from tests.support.servers import ROOT, NotStarted

FOLDER = ROOT / "deploy" / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
FILES = [name for name in KUSTOMIZATION["resources"] if name.endswith(".yaml")]
OBJECTS = {file["kind"]: file for file in (yaml.safe_load((FOLDER / f).read_text()) for f in FILES)}
DEPLOYMENT, JOB = OBJECTS["Deployment"]["spec"], OBJECTS["Job"]["spec"]
PODS = {"Deployment": DEPLOYMENT["template"], "Job": JOB["template"]}
SPEC = PODS["Deployment"]["spec"]
PREPARE = PODS["Job"]["spec"]["containers"][0]
[APP] = SPEC["containers"]
FOLDER_MAKER, NGINX = SPEC["initContainers"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OPERATIONS, KUBERNETES = (
    (ROOT / "docs" / page).read_text() for page in ("operations.md", "kubernetes.md")
)


def variables(name):
    """Return what a file of the environment sets."""
    lines = (FOLDER / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def generated(folder):
    """Return the ConfigMaps that a kustomization makes of files, as paths by name and key."""
    text = yaml.safe_load((folder / "kustomization.yaml").read_text())
    maps = {each["name"]: each.get("files", ()) for each in text["configMapGenerator"]}
    return {
        name: {path.rpartition("/")[2]: folder / path for path in paths}
        for name, paths in maps.items()
    }


def nginx_files():
    """Return what is mounted below /etc/nginx, as the file of this tree by its path there."""
    base, own = generated(CONFIGURATION), generated(FOLDER)
    volumes = {v["name"]: v["configMap"]["name"] for v in SPEC["volumes"] if "configMap" in v}
    files = {}
    for mount in NGINX["volumeMounts"]:
        if mount["name"] in volumes:
            name = volumes[mount["name"]]
            path = mount["mountPath"].removeprefix("/etc/nginx").strip("/")
            for key, file in {**base[name], **own.get(name, {})}.items():
                files[path if "subPath" in mount else f"{path}/{key}"] = file
    return files


def test_every_file_of_the_folder_is_applied():
    there = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert sorted(FILES) == sorted(there)
    assert set(KUSTOMIZATION["resources"]) - there == {"../nginx"}
    assert set(KUSTOMIZATION) == {
        *("apiVersion", "kind", "namespace", "resources", "configMapGenerator")
    }
    assert len(OBJECTS) == len(FILES)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on the PATH")
@pytest.mark.parametrize("component", [None, "openshift"])
def test_kustomize_builds_what_the_documentation_has_operators_write(tmp_path, component):
    deploy, own = tmp_path / "gatehouse" / "deploy", tmp_path / "own"
    shutil.copytree(CONFIGURATION, deploy / "nginx")
    shutil.copytree(FOLDER, deploy / "kubernetes")
    own.mkdir()
    [text] = re.findall(r"```yaml\n(resources: .*?)```", KUBERNETES, re.DOTALL)
    if component:
        [line] = re.findall(rf"`(components: .*/{component}\])`", KUBERNETES)
        text += line
    (own / "kustomization.yaml").write_text(text)
    shutil.copy(FOLDER / "nginx" / "listen-https.conf", own)
    command = ["kubectl", "kustomize", str(own)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    objects = list(yaml.safe_load_all(built.stdout))
    for each in objects:
        assert each["metadata"]["namespace"] == "gatehouse"
    for pod in (each["spec"]["template"]["spec"] for each in objects if each["kind"] in PODS):
        assert ("fsGroup" in pod["securityContext"]) is (component is None)
        assert pod["containers"][0]["image"].startswith("registry.example.com/gatehouse:")
    maps = {e["metadata"]["name"].rpartition("-")[0]: e["data"] for e in objects if "data" in e}
    assert maps.pop("gatehouse") == variables("gatehouse.env")
    for path, file in nginx_files().items():
        folder, _, name = path.rpartition("/")
        key = f"nginx-{folder.replace('.', '-')}" if folder else "nginx"
        assert maps[key].pop(name) == file.read_text(), path
    assert not any(maps.values())


def test_the_environment_is_accepted_and_the_same_as_with_compose():
    secret, plain = variables("secret.env.example"), variables("gatehouse.env")
    assert secret["GATEHOUSE_SECRET_KEYS"] == "CHANGE-ME"
    secret |= {"GATEHOUSE_SECRET_KEYS": "k1:" + "A" * 43}
    assert set(plain) | set(secret) <= known_variables()
    assert not set(plain) & set(secret)
    config = Config.from_env(plain | secret)
    assert config.database_url.startswith("postgresql")
    assert not config.embedded_redis
    assert config.trusted_proxies == (ip_network("127.0.0.1"),)
    with_compose = Config.from_env(example())
    for name in ("avatar_dir", "avatar_accel", "workers", "database_pool", "log_format"):
        assert getattr(config, name) == getattr(with_compose, name), name
    assert "/deploy/kubernetes/secret.env" in (ROOT / ".gitignore").read_text().splitlines()
    for container in (APP, PREPARE):
        kinds = [{**source} for source in container["envFrom"]]
        assert kinds == [
            {"configMapRef": {"name": "gatehouse"}},
            {"secretRef": {"name": "gatehouse"}},
        ]


def test_ports_are_those_of_the_image_and_of_nginx():
    assert "GATEHOUSE_BIND=0.0.0.0:8000" in DOCKERFILE
    assert APP["ports"][0]["containerPort"] == 8000
    assert "server 127.0.0.1:8000 " in (FOLDER / "nginx/instances.conf").read_text()
    [listened] = re.findall(
        r"^listen (\d+) ", (FOLDER / "nginx/listen-https.conf").read_text(), re.M
    )
    [port] = OBJECTS["Service"]["spec"]["ports"]
    assert {NGINX["ports"][0]["containerPort"], port["targetPort"]} == {int(listened)}
    assert NGINX["readinessProbe"]["tcpSocket"]["port"] == int(listened)
    [path] = OBJECTS["Ingress"]["spec"]["rules"][0]["http"]["paths"]
    assert path["backend"]["service"] == {"name": "gatehouse", "port": {"name": port["name"]}}
    allowed = [rule["ports"] for rule in OBJECTS["NetworkPolicy"]["spec"]["ingress"]]
    assert allowed == [[{"port": int(listened)}], [{"port": 8000}]]


def test_probes_are_those_of_the_documentation():
    [block] = re.findall(r"```yaml\n(  startupProbe:.*?)```", OPERATIONS, re.DOTALL)
    for name, probe in yaml.safe_load(block).items():
        assert APP[name] == probe, name


def test_selectors_find_the_pods_and_the_service_does_not_find_the_job():
    labels = {kind: pod["metadata"]["labels"] for kind, pod in PODS.items()}
    selected = OBJECTS["Service"]["spec"]["selector"]
    assert selected == labels["Deployment"] != labels["Job"]
    assert DEPLOYMENT["selector"]["matchLabels"] == selected
    assert OBJECTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == selected
    [spread] = SPEC["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"] == selected
    policed = OBJECTS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"].items()
    assert all(policed <= each.items() for each in labels.values())
    target = OBJECTS["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert target["name"] == OBJECTS["Deployment"]["metadata"]["name"]


@pytest.mark.parametrize("kind", PODS)
def test_pods_are_locked_down(kind):
    pod = PODS[kind]["spec"]
    assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False
    context = pod["securityContext"]
    assert context["runAsNonRoot"]
    assert f"USER {context['runAsUser']}\n" in DOCKERFILE
    assert context["runAsUser"] == context["runAsGroup"] == context["fsGroup"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in [*pod.get("initContainers", ()), *pod["containers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"memory"} == set(container["resources"]["limits"])
        written = [m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")]
        assert "/tmp" in written
    avatars = variables("gatehouse.env")["GATEHOUSE_AVATAR_DIR"]
    assert avatars in [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]]


def test_the_instance_folder_is_made_before_gunicorn_requires_it():
    assert FOLDER_MAKER["command"][-1] == variables("gatehouse.env")["GATEHOUSE_INSTANCE"]
    assert FOLDER_MAKER["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]
    assert {"name": "tmp", "mountPath": "/tmp"} in APP["volumeMounts"]


def test_a_pod_is_no_longer_asked_before_it_stops_and_has_as_long_as_with_compose():
    [pause] = APP["lifecycle"]["preStop"]["exec"]["command"][1:]
    stop = int(SERVICES["app1"]["stop_grace_period"].removesuffix("s"))
    assert SPEC["terminationGracePeriodSeconds"] == int(pause) + stop
    # Only a container that is restarted always outlives the others.
    assert NGINX["restartPolicy"] == "Always"
    assert DEPLOYMENT["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_it_is_migrated_as_with_compose_and_by_the_same_image():
    assert PREPARE["command"] == SERVICES["prepare"]["command"]
    assert PREPARE["image"] == APP["image"] == FOLDER_MAKER["image"] == SERVICES["app1"]["image"]
    assert NGINX["image"] == SERVICES["nginx"]["image"]


def test_nginx_has_every_file_of_compose_and_only_those_of_the_place_differ():
    here = {str(path.relative_to(CONFIGURATION)) for path in CONFIGURATION.rglob("*.conf")}
    files = nginx_files()
    assert set(files) == here
    own = {path for path, file in files.items() if file.is_relative_to(FOLDER)}
    assert own == {f"gatehouse/{path.name}" for path in (FOLDER / "nginx").iterdir()}


class Instance(BaseHTTPRequestHandler):
    """Answers like an event stream, and keeps the headers of the last request."""

    told: ClassVar[dict[str, str]] = {}

    def do_GET(self):
        Instance.told = {name.lower(): value for name, value in self.headers.items()}
        self.send_response(200)
        self.send_header("X-Accel-Buffering", "no")
        self.end_headers()

    def log_message(self, *_):
        """Say nothing: nginx writes the log."""


@pytest.fixture
def instance():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Instance)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def nginx(tmp_path, instance):
    """Start the pod's nginx with this machine's ports and folders; return its port."""
    try:
        program = find_nginx()
    except NotStarted as reason:
        pytest.skip(str(reason))
    port = free_port()
    places = {
        "8080": str(port),
        "8081": str(free_port()),
        "127.0.0.1:8000": f"127.0.0.1:{instance}",
        # The test is the controller.
        "10.0.0.0/8": "127.0.0.0/8",
        "/tmp/": f"{tmp_path}/",
        "/dev/stdout": f"{tmp_path}/access.log",
        # Started as root, it would switch to a user who cannot read a private folder.
        "pid ": "user root; pid " if os.geteuid() == 0 else "pid ",
    }
    for path, file in nginx_files().items():
        text = file.read_text()
        if path.startswith("gatehouse/"):
            text = re.sub("|".join(places), lambda found: places[found[0]], text)
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    assert NGINX["command"][0] == "nginx"
    command = [program, *NGINX["command"][1:], "-c", str(tmp_path / "nginx.conf")]
    process = subprocess.Popen(command)
    try:
        eventually(lambda: process.poll() is not None or listens(port), "nginx")
        assert process.poll() is None
        yield port
    finally:
        process.terminate()
        process.wait(10)


def listens(port):
    with suppress(OSError):
        dial(port).close()
        return True
    return False


def ask(port, path, **headers):
    """Ask as a controller does; return the answer."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request("GET", path, headers={"Host": "files.example.com"} | sent)
        answer = connection.getresponse()
        answer.read()
    return answer


def test_behind_a_controller_the_pod_knows_the_client_and_holds_no_events_back(nginx, tmp_path):
    client = {"X_Forwarded_For": "203.0.113.9, 198.51.100.7", "X_Forwarded_Proto": "https"}
    answer = ask(nginx, "/api/v1/auth/events/storage?token=secret", **client)
    assert answer.status == 200
    assert answer.headers["X-Accel-Buffering"] == "no"
    told = Instance.told
    # The last address is what the controller saw; those before it are what the client says.
    assert (told["x-forwarded-for"], told["x-forwarded-proto"]) == ("198.51.100.7", "https")
    assert told["host"] == told["x-forwarded-host"] == "files.example.com"
    assert re.fullmatch(r"t=\d{10}\.\d{3}", told["x-request-start"])
    line = eventually((tmp_path / "access.log").read_text, "a line in the log")
    assert line.startswith("198.51.100.7 ")
    assert "secret" not in line


def test_behind_a_controller_plain_http_is_sent_to_https_and_metrics_stay_inside(nginx):
    answer = ask(nginx, "/login?a=b", X_Forwarded_Proto="http")
    assert answer.status == 308
    assert answer.headers["Location"] == "https://files.example.com/login?a=b"
    assert ask(nginx, "/health/metrics", X_Forwarded_Proto="https").status == 404
