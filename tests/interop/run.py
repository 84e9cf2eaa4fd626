#!/usr/bin/env python3
"""Drives the mock server with real, unmodified clients and checks every value they see.

    python3 tests/interop/run.py [--kvlab PATH] [--only NAME ...]

Needs the release build of kvlab, and of the clients whatever is to be had: Python packages go into
virtual environments and npm packages into a folder under target/interop, both made here. A client
that cannot be installed is skipped and said so, with the reason; with CI=true a skip is a failure.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from certificates import Certificates

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WORK = TARGET / "interop"
OWN_PORTS = ["--redis-port", "0", "--aerospike-port", "0"]
TLS_PORTS = [*OWN_PORTS, "--redis-tls-port", "0", "--aerospike-tls-port", "0"]
ONE_PORT = ["--port", "0", "--workers", "2"]  # for both protocols, on several threads
LOGIN = ["app", "s3:cret"]  # a user and the password
WITH_LOGIN = [*OWN_PORTS, "--user", ":".join(LOGIN)]
NODE = 20  # the oldest Node.js for which the clients in package.json are built
PIP_OPTIONS = ["--quiet", "--disable-pip-version-check"]
LIMIT = 900  # seconds for one command, an installation included
VERSION = "7.2.4"  # the Redis that kvlab serve says it is


class Skip(Exception):
    """A client that is not to be had here."""


class Server:
    """`kvlab serve` on free ports, stopped by its own signal."""

    def __init__(self, kvlab, options=OWN_PORTS):
        self.folder = tempfile.TemporaryDirectory()
        ports = pathlib.Path(self.folder.name) / "ports"
        command = [kvlab, "serve", "--ports-file", str(ports), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while not ports.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                self.folder.cleanup()
                raise RuntimeError("kvlab serve did not start")
            time.sleep(0.01)
        lines = dict(line.split("=", 1) for line in ports.read_text().split())
        shared = lines.get("shared")
        self.redis, self.aerospike = lines.get("redis", shared), lines.get("aerospike", shared)
        self.redis_tls, self.aerospike_tls = lines.get("redis_tls"), lines.get("aerospike_tls")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = "none: it did not stop when it was told to"
        self.folder.cleanup()
        if code != 0:
            raise RuntimeError(f"kvlab serve ended with code {code}")


def run(command, **options):
    """Runs a command within the time limit; its output is shown when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        **options,
    )
    if done.returncode != 0:
        print(done.stdout)
        raise RuntimeError(f"{command[0]} ended with code {done.returncode}")
    return done.stdout


def python_with(name, *packages):
    """The interpreter of a virtual environment that holds these packages."""
    place = WORK / f"venv-{name}"
    python = place / "bin" / "python"
    mark = place / "installed"
    wanted = " ".join(packages)
    if not mark.exists() or mark.read_text() != wanted:
        run([sys.executable, "-m", "venv", place])
        try:
            run([python, "-m", "pip", *PIP_OPTIONS, "install", "--upgrade", *packages])
        except RuntimeError as error:
            raise Skip(f"pip could not install {wanted}") from error
        mark.write_text(wanted)
    return python


def node_modules():
    """The folder from which Node.js finds the npm clients."""
    needs("node")
    needs("npm")
    version = run(["node", "--version"]).strip()
    if int(version.removeprefix("v").split(".")[0]) < NODE:
        raise Skip(f"the clients need Node.js {NODE} or newer, and this is {version}")
    place = WORK / "node"
    place.mkdir(parents=True, exist_ok=True)
    source = (HERE / "package.json").read_text()
    manifest = place / "package.json"
    if not manifest.exists() or manifest.read_text() != source or not (place / "done").exists():
        manifest.write_text(source)
        try:
            run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=place)
        except RuntimeError as error:
            raise Skip("npm could not install the clients") from error
        (place / "done").touch()
    return place


def node(script, *arguments):
    # Modules are found from the script's own folder upwards, so it runs beside them.
    place = node_modules()
    copy = place / script
    shutil.copy(HERE / "clients" / script, copy)
    print(run(["node", copy, *arguments], cwd=place), end="")


def needs(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


def redis_py(kvlab, version):
    package = f"redis=={version}" if version else "redis"
    python = python_with(f"redis-{version or 'newest'}", package)
    script = HERE / "clients" / "redis_py.py"
    for options in (OWN_PORTS, ONE_PORT):
        with Server(kvlab, options) as server:
            print(run([python, script, server.redis, VERSION]), end="")
    with Server(kvlab, WITH_LOGIN) as server:
        print(run([python, HERE / "clients" / "redis_py_login.py", server.redis, *LOGIN]), end="")


def redis_py_old(kvlab):
    redis_py(kvlab, "5.2.1")


def redis_py_newest(kvlab):
    redis_py(kvlab, None)


def ioredis(kvlab):
    with Server(kvlab) as server:
        node("ioredis.js", server.redis)
    with Server(kvlab, WITH_LOGIN) as server:
        node("ioredis_login.js", server.redis, *LOGIN)


def node_redis(kvlab):
    with Server(kvlab) as server:
        node("node_redis.js", server.redis, VERSION)
    with Server(kvlab, WITH_LOGIN) as server:
        node("node_redis_login.js", server.redis, *LOGIN)


def aerospike_python(kvlab):
    python = python_with("aerospike", "aerospike")
    script = HERE / "clients" / "aerospike_py.py"
    for options in (OWN_PORTS, ONE_PORT):
        with Server(kvlab, options) as server:
            print(run([python, script, server.aerospike]), end="")
    script = HERE / "clients" / "aerospike_py_login.py"
    with Server(kvlab, WITH_LOGIN) as server:
        print(run([python, script, server.aerospike, *LOGIN]), end="")


def aerospike_node(kvlab):
    with Server(kvlab) as server:
        node("aerospike_node.js", server.aerospike)
    with Server(kvlab, WITH_LOGIN) as server:
        node("aerospike_node_login.js", server.aerospike, *LOGIN)


def rust_crates(kvlab):
    needs("cargo")
    target = WORK / "rust"
    manifest = HERE / "rust" / "Cargo.toml"
    run(["cargo", "build", "--locked", "--manifest-path", manifest, "--target-dir", target])
    program = target / "debug" / "kvlab-interop"
    for options in (OWN_PORTS, ONE_PORT):
        with Server(kvlab, options) as server:
            print(run([program, server.redis, server.aerospike]), end="")


def redis_cli(kvlab):
    needs("redis-cli")
    with Server(kvlab) as server:
        for protocol in ("-2", "-3"):

            def cli(*words, stdin=None):
                command = ["redis-cli", protocol, "-p", server.redis, *words]
                return run(command, input=stdin).rstrip("\n")

            expect(cli("SET", "k", "v"), "OK")
            expect(cli("GET", "k"), "v")
            expect(cli("GET", "none"), "")
            expect(cli("--no-raw", "GET", "none"), "(nil)")
            expect(cli("INCR", "n" + protocol), "1")
            expect(cli("--no-raw", "EXPIRE", "k", "100"), "(integer) 1")
            expect(cli("NOSUCH", "a"), "ERR unknown command 'NOSUCH', with args beginning with: 'a' ")
            script = "MULTI\nSET m 1\nINCR m\nEXEC\n"
            expect(cli(stdin=script), "OK\nQUEUED\nQUEUED\nOK\n2")
            expect(f"redis_version:{VERSION}" in cli("INFO", "server"), True)
            expect(int(cli("COMMAND", "COUNT")) > 50, True)
            expect("summary" in cli("COMMAND", "DOCS", "get"), True)
            expect(cli("--scan", "--pattern", "k*"), "k")
        print("  redis-cli in RESP2 and RESP3")


def redis_benchmark(kvlab):
    needs("redis-benchmark")
    with Server(kvlab) as server:
        for depth in ("1", "16"):
            command = ["redis-benchmark", "-p", server.redis, "-t", "ping,set,get,incr,mset"]
            out = run([*command, "-n", "5000", "-c", "20", "-P", depth, "--csv"])
            expect("WARNING" in out, False, "a warning that CONFIG GET went wrong")
            rows = [line.split(",") for line in out.splitlines() if line.startswith('"')]
            expect(len(rows), 7, "a heading and six tests")
            expect(all(float(row[1].strip('"')) > 0 for row in rows[1:]), True)
        print("  redis-benchmark without pipeline and with 16")


@contextlib.contextmanager
def authorities():
    """Two authorities with certificates: the one that is trusted, and another."""
    needs("openssl")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        yield Certificates(folder, "trusted"), Certificates(folder, "other")


def tls_servers(kvlab):
    """TLS servers with, for clients, the authority to trust, another, and what they must show: with
    a certificate that is given, with one that the server makes, and one that asks for a certificate."""
    with authorities() as (ours, other):
        given = ["--tls-cert", ours.cert, "--tls-key", ours.key]
        asking = [*given, "--tls-client-ca", ours.ca, "--tls-client-auth", "required"]
        made = ours.folder / "self-signed"
        for options, ca, identity in (
            (given, ours.ca, []),
            (["--tls-self-signed", made], made / "ca.pem", []),
            (asking, ours.ca, [ours.client_cert, ours.client_key]),
        ):
            with Server(kvlab, [*TLS_PORTS, *map(str, options)]) as server:
                yield server, ca, other.ca, identity


def redis_cli_tls(kvlab):
    needs("redis-cli")
    for server, ca, other, identity in tls_servers(kvlab):
        command = ["redis-cli", "--tls", "-h", "localhost", "-p", server.redis_tls]
        shown = ["--cert", identity[0], "--key", identity[1]] if identity else []
        expect(run([*command, "--cacert", ca, *shown, "PING"]), "PONG\n")
        refuses([*command, "--cacert", other, *shown, "PING"], "certificate verify failed")
        # Without TLS the connection is reset.
        refuses(["redis-cli", "-p", server.redis_tls, "PING"], "reset by peer")
        command = ["redis-benchmark", "--tls", "--cacert", ca, *shown, "-p", server.redis_tls]
        for depth in ("1", "16"):
            out = run([*command, "-t", "set,get", "-n", "2000", "-c", "20", "-P", depth, "--csv"])
            expect(len([line for line in out.splitlines() if line.startswith('"')]), 3)
    print("  redis-cli and redis-benchmark")


def redis_py_tls(kvlab):
    python = python_with("redis-newest", "redis")
    script = HERE / "clients" / "redis_py_tls.py"
    for server, ca, other, identity in tls_servers(kvlab):
        print(run([python, script, server.redis_tls, ca, other, *identity]), end="")


def node_tls(kvlab):
    for server, ca, other, identity in tls_servers(kvlab):
        if not identity:
            node("ioredis_tls.js", server.redis_tls, ca, other)
            node("node_redis_tls.js", server.redis_tls, ca, other)


def aerospike_python_tls(kvlab):
    python = python_with("aerospike", "aerospike")
    script = HERE / "clients" / "aerospike_py_tls.py"
    for server, ca, other, identity in tls_servers(kvlab):
        print(run([python, script, server.aerospike_tls, ca, other, *identity]), end="")


def bench_tls(kvlab):
    """Our own client: against the mock, and against a real Redis server."""
    for server, ca, other, identity in tls_servers(kvlab):
        for url in (
            f"rediss://localhost:{server.redis_tls}",
            f"aerospikes://localhost:{server.aerospike_tls}",
        ):
            bench_over_tls(kvlab, url, ca, other, identity)
    needs("redis-server")
    with authorities() as (ours, other):
        for asks in ("no", "yes"):
            with real_redis(ours, asks) as port:
                identity = [ours.client_cert, ours.client_key] if asks == "yes" else []
                bench_over_tls(kvlab, f"rediss://localhost:{port}", ours.ca, other.ca, identity)
    print("  kvlab bench, with the mock and with redis-server")


def bench_over_tls(kvlab, url, ca, other, identity):
    load = ["--requests", "2000", "--connections", "5", "--quiet"]
    command = [kvlab, "bench", url, *load]
    shown = ["--tls-cert", identity[0], "--tls-key", identity[1]] if identity else []
    run([*command, "--tls-ca", ca, *shown])
    run([*command, "--tls-skip-verify", *shown])
    untrusted = "signed by an authority that is not trusted"
    refuses([*command, *shown], untrusted, code=4)
    refuses([*command, "--tls-ca", other, *shown], untrusted, code=4)
    name = ["--tls-server-name", "example.org"]
    refuses([*command, "--tls-ca", ca, *name, *shown], "not for example.org", code=4)
    if identity:
        wanted = "requires a certificate of the client"
        refuses([*command, "--tls-ca", ca], wanted, code=4)


@contextlib.contextmanager
def real_redis(certificates, asks):
    """redis-server with TLS on a free port, asking clients for a certificate or not."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["redis-server", "--port", "0", "--tls-port", port, "--save", ""]
    command += ["--tls-cert-file", certificates.cert, "--tls-key-file", certificates.key]
    command += ["--tls-ca-cert-file", certificates.ca, "--tls-auth-clients", asks]
    command += ["--dir", certificates.folder]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("redis-server did not start")
            time.sleep(0.01)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def refuses(command, words, code=None):
    """Runs a command that has to fail, with these words."""
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    failed = done.returncode != 0 if code is None else done.returncode == code
    if not failed or words not in done.stdout:
        print(done.stdout)
        raise RuntimeError(f"{command[0]} ended with {done.returncode}, not because of {words!r}")


def expect(found, wanted, what="value"):
    if found != wanted:
        raise RuntimeError(f"{what}: expected {wanted!r}, found {found!r}")


CLIENTS = {
    "redis-cli": redis_cli,
    "redis-benchmark": redis_benchmark,
    "redis-py-5.2.1": redis_py_old,
    "redis-py-newest": redis_py_newest,
    "ioredis": ioredis,
    "node-redis": node_redis,
    "aerospike-python": aerospike_python,
    "aerospike-node": aerospike_node,
    "rust-crates": rust_crates,
    "redis-cli-tls": redis_cli_tls,
    "redis-py-tls": redis_py_tls,
    "node-tls": node_tls,
    "aerospike-python-tls": aerospike_python_tls,
    "bench-tls": bench_tls,
}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kvlab", default=str(TARGET / "release" / "kvlab"))
    options.add_argument("--only", nargs="*", choices=list(CLIENTS), default=list(CLIENTS))
    chosen = options.parse_args()
    if not os.access(chosen.kvlab, os.X_OK):
        sys.exit(f"{chosen.kvlab} is not there: run 'cargo build --release' first")
    WORK.mkdir(parents=True, exist_ok=True)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name in chosen.only:
        start = time.monotonic()
        try:
            CLIENTS[name](chosen.kvlab)
            outcome, why = "passed", ""
        except Skip as error:
            outcome, why = "skipped", f": {error}"
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            outcome, why = "failed", f": {error}"
        counts[outcome] += 1
        print(f"{name} {outcome} in {time.monotonic() - start:.1f} s{why}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    allowed = 0 if os.environ.get("CI") == "true" else counts["skipped"]
    sys.exit(0 if counts["failed"] == 0 and counts["skipped"] == allowed else 1)


if __name__ == "__main__":
    main()
