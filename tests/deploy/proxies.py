"""nginx and Caddy with our published configurations, except for names, ports and certificates."""

import shutil
import socket
import subprocess
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.store.certificates import Authority
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
NAME = "agents.example.lan"

GLOBAL_OF_NGINX = """
daemon off;
pid {folder}/nginx.pid;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {site}
}}
"""


def program(name):
    found = shutil.which(name, path=f"{ROOT}/.cache/postgresql/bin:/usr/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/bin")
    if found is None:
        pytest.skip(f"{name} is not here; scripts/postgresql says why")
    return found


@contextmanager
def nginx(folder, port, bridge_port):
    """Run nginx, and yield the certificate by which a client trusts it."""
    authority = Authority(folder)
    certificate, key = authority.issue("server", "localhost")
    site = _changed(
        "nginx.conf",
        {
            "listen 443": f"listen 127.0.0.1:{port}",
            "127.0.0.1:8421": f"127.0.0.1:{bridge_port}",
            f"/etc/ssl/{NAME}.crt": str(certificate),
            f"/etc/ssl/{NAME}.key": str(key),
            NAME: "localhost",
        },
    )
    configuration = folder / "nginx.conf"
    configuration.write_text(GLOBAL_OF_NGINX.format(folder=folder, site=site))
    command = [program("nginx"), "-p", str(folder), "-e", str(folder / "errors"), "-c", str(configuration)]
    with _running(command, port, {}):
        yield authority.certificate


@contextmanager
def caddy(folder, port, bridge_port):
    """Run Caddy, and yield the certificate of its authority."""
    site = _changed(
        "Caddyfile", {"127.0.0.1:8421": f"127.0.0.1:{bridge_port}", f"\n{NAME} {{": f"\nlocalhost:{port} {{"}
    )
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n"
    (folder / "Caddyfile").write_text(options + site)
    command = [program("caddy"), "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    root = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
    with _running(command, port, {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}):
        wait_until(root.exists)
        yield root


def _changed(name, changes):
    """Return a configuration with its example names replaced. Each name must occur."""
    text = (DEPLOY / name).read_text()
    text = "\n" + "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@contextmanager
def _running(command, port, variables):
    log = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=log, stderr=subprocess.STDOUT, text=True, env={"PATH": "/usr/bin:/bin", **variables}
    ) as process:
        try:
            wait_until(lambda: process.poll() is not None or _listens(port))
            assert process.poll() is None, process.stdout.read()
            yield
        finally:
            process.terminate()


def _listens(port):
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
