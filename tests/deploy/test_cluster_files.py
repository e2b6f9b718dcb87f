"""The syntax and commands of the deploy/ files for several nodes, without an engine or a cluster."""

import os
import secrets
import shlex
import shutil
import subprocess
from pathlib import Path

import yaml

from dragoman.cli.commands import STORE_ACTIONS
from tests.bridge.guard.serving import serving

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_compose_file_defines_everything_it_names():
    compose = yaml.safe_load((DEPLOY / "compose-postgresql.yaml").read_text())
    services = compose["services"]
    assert services.keys() == {"db", "tables", "node", "proxy"}
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= compose["volumes"].keys()
        assert ("image" in service) != ("build" in service)


def read_commands():
    """Return the dragoman commands of both files."""
    compose = yaml.safe_load((DEPLOY / "compose-postgresql.yaml").read_text())
    cluster = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    yield from (compose["services"][name]["command"] for name in ("tables", "node"))
    for part in cluster:
        assert {"apiVersion", "kind", "metadata", "spec"} <= part.keys()
        if part["kind"] in ("Job", "Deployment"):
            yield from (container["command"] for container in part["spec"]["template"]["spec"]["containers"])


def test_container_commands_are_dragoman_commands(tmp_path):
    plain, shells = [], []
    for command in read_commands():
        (shells if command[0] == "sh" else plain).append(command)
    assert plain == [["dragoman", "store", "init"]] * 2
    assert "init" in STORE_ACTIONS
    token, home = secrets.token_urlsafe(32), tmp_path / ".dragoman"
    (tmp_path / "token").write_text(token)
    variables = {**os.environ, "HOME": str(tmp_path), "DRAGOMAN_HOME": str(home), "TOKEN": token}
    assert len(shells) == 2
    for _, _, script in shells:
        prepare, _, serve = script.rpartition("&&")
        words = prepare.replace("/secret/token", str(tmp_path / "token"))
        subprocess.run(["sh", "-c", words], check=True, env=variables)
        options = shlex.split(serve)[3:]
        assert shlex.split(serve)[:3] == ["exec", "dragoman", "serve"]
        with serving(home, *options) as served:
            assert served.token == token
        shutil.rmtree(home)
