"""What a plain nginx in front of the service costs."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from bench.accounts import username
from bench.lab import Lab
from bench.load import Request, Run
from bench.report import Figure, Row, rates, ratio
from bench.scenarios.pages import page_request
from bench.scenarios.requests import me_request
from bench.servers import NotStarted, Running, Service, free_port, temporary_folder

LOGIN_PAGE = "/login"
CONNECTIONS_KEPT = 64
CONFIGURATION = """
{user} daemon off; pid {folder}/pid; worker_processes auto;
events {{ worker_connections 1024; }}
http {{
  access_log {folder}/access.log; {temporary}
  upstream service {{ server 127.0.0.1:{service}; keepalive {kept}; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
    }}
  }}
}}
"""


def nginx(lab: Lab) -> Iterator[Row]:
    """Ask the service and nginx in turn."""
    service = lab.service
    with ExitStack() as stack:
        proxy = _start(stack, service)
        asked = {"me": me_request(service, username(1)), LOGIN_PAGE: page_request(LOGIN_PAGE)}
        for name, request in asked.items():
            yield _beside(lab, name, request, {"direct": service, "behind nginx": proxy})


def _beside(lab: Lab, name: str, request: Request, servers: dict[str, Running]) -> Row:
    def ask(server: Running) -> Run:
        return lab.measure(server, lab.job(server, requests=[request]))

    runs = lab.in_turn({way: partial(ask, server) for way, server in servers.items()})
    direct, behind = ([run.rate for run in each] for each in runs.values())
    figures = [*rates(runs), Figure("kept behind nginx", 100 * ratio(behind, direct), "%")]
    return Row(f"nginx: {name}", lab.database, figures, [run for r in runs.values() for run in r])


def _start(stack: ExitStack, service: Service) -> Running:
    """Raises: NotStarted."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    if not (program := shutil.which("nginx", path=path)):
        raise NotStarted("nginx is not on the PATH")
    folder, port = temporary_folder(stack), free_port()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    configuration = CONFIGURATION.format(
        # Started as root, nginx would switch to a user who cannot read a private folder.
        user="user root;" if os.geteuid() == 0 else "",
        folder=folder,
        temporary=" ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds),
        service=service.port,
        kept=CONNECTIONS_KEPT,
        port=port,
    )
    (folder / "nginx.conf").write_text(configuration)
    argv = [program, "-p", str(folder), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
    proxy = Running(
        stack, argv, port, "/health", folder=folder, cwd=folder, env={}, postgres=service.postgres
    )
    proxy.parts = [proxy.server.pid, *service.parts]
    return proxy
