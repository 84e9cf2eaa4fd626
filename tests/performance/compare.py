#!/usr/bin/env python3
"""Compares the speed of kvlab with redis-server and redis-benchmark on this machine.

    python3 tests/performance/compare.py [client] [server] [aerospike] [memtier] [--rounds 5] [--seconds 3]

Needs the release build, redis-server, redis-benchmark and taskset, and for the part memtier a
memtier_benchmark in the PATH. The server runs on core 1, the
client on core 0 with one thread. The contestants take turns within each round, and medians over the
rounds are compared, so a machine that is slow for a while is slow for all of them. Rates are those
the tools print, but in the part memtier, where the server's own counter tells them: memtier_benchmark
can be a whole second off. Processor time per request is user + system time of the process over its requests.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KVLAB = str(ROOT / "target" / "release" / "kvlab")
SERVER_CORE, CLIENT_CORE = "1", "0"


class Server:
    """A server process pinned to its core."""

    def __init__(self, command, wait):
        self.process = subprocess.Popen(
            ["taskset", "-c", SERVER_CORE, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.ports = wait(self.process)

    def cpu_ns(self):
        """Processor time of all threads so far, in nanoseconds."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=10)


def redis_server():
    folder = tempfile.mkdtemp()
    port = 21000 + os.getpid() % 10000

    def wait(_):
        for _ in range(200):
            ping = ["redis-cli", "-p", str(port), "ping"]
            if subprocess.run(ping, capture_output=True, text=True).stdout.startswith("PONG"):
                return {"redis": port}
            time.sleep(0.02)
        raise RuntimeError("redis-server did not start")

    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
    return Server(command, wait)


def mock_server():
    ports = pathlib.Path(tempfile.mkdtemp()) / "ports"

    def wait(_):
        for _ in range(500):
            if ports.exists():
                return dict(line.split("=", 1) for line in ports.read_text().split())
            time.sleep(0.01)
        raise RuntimeError("kvlab serve did not start")

    command = [KVLAB, "serve", "--redis-port", "0", "--aerospike-port", "0", "--workers", "1"]
    return Server([*command, "--ports-file", str(ports)], wait)


def timed(command):
    """Output of a command on the client's core, and its processor time in seconds."""
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(
            ["taskset", "-c", CLIENT_CORE, *command], stdout=out, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if child.returncode != 0:
            raise RuntimeError(f"{command} ended with code {child.returncode}: {out.read()}")
        return out.read(), usage.ru_utime + usage.ru_stime


def redis_benchmark(port, operation, connections, depth, requests):
    command = ["redis-benchmark", "-p", str(port), "-t", operation, "-n", str(requests)]
    command += ["-c", str(connections), "-P", str(depth), "--csv"]
    out, cpu = timed(command)
    rate = float(re.findall(r'^"[^"]+","([0-9.]+)"', out, re.M)[-1])
    return rate, cpu / requests


def kvlab_bench(url, ratio, connections, depth, requests):
    command = [KVLAB, "bench", url, "--threads", "1", "--connections", str(connections)]
    command += ["--pipeline", str(depth), "--requests", str(requests), "--ratio", ratio]
    with tempfile.NamedTemporaryFile("r") as report:
        command += ["--keys", "1", "--value-size", "3", "--json", report.name]
        _, cpu = timed(command)
        return json.load(report)["result"]["rate_per_second"], cpu / requests


def interleave(rounds, contestants):
    """Medians of what each contestant returns, taking turns."""
    results = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            results[name].append(contestant())
    return {
        name: [statistics.median(column) for column in zip(*rows)]
        for name, rows in results.items()
    }


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def client(options):
    """Our client and redis-benchmark against the same redis-server."""
    row("GET, 50 connections", "redis-benchmark /s", "kvlab /s", "rate ratio", "CPU us", "CPU us kvlab", "CPU ratio")
    row(*["---"] * 7)
    server = redis_server()
    port = server.ports["redis"]
    for depth, per_second in ((1, 100_000), (16, 1_000_000)):
        requests = int(per_second * options.seconds)
        got = interleave(
            options.rounds,
            {
                "theirs": lambda: redis_benchmark(port, "get", 50, depth, requests),
                "ours": lambda: kvlab_bench(f"redis://127.0.0.1:{port}", "0:1", 50, depth, requests),
            },
        )
        (rate, cpu), (our_rate, our_cpu) = got["theirs"], got["ours"]
        row(
            f"pipeline {depth}", f"{rate:.0f}", f"{our_rate:.0f}", f"{our_rate / rate:.2f}",
            f"{cpu * 1e6:.2f}", f"{our_cpu * 1e6:.2f}", f"{our_cpu / cpu:.2f}",
        )
    server.stop()


def server(options):
    """The mock with one worker and redis-server, each driven by both clients."""
    row("50 connections", "client", "redis-server /s", "mock /s", "rate ratio", "CPU us", "CPU us mock", "CPU ratio")
    row(*["---"] * 8)
    servers = {"redis": redis_server(), "mock": mock_server()}

    def measured(which, drive):
        target = servers[which]
        before = target.cpu_ns()
        rate, requests = drive(target.ports["redis"])
        return rate, (target.cpu_ns() - before) / requests / 1000

    for operation, ratio in (("set", "1:0"), ("get", "0:1")):
        for depth, per_second in ((1, 100_000), (16, 1_000_000)):
            requests = int(per_second * options.seconds)

            def ours(port):
                return kvlab_bench(f"redis://127.0.0.1:{port}", ratio, 50, depth, requests)[0], requests

            def theirs(port):
                return redis_benchmark(port, operation, 50, depth, requests)[0], requests

            for name, drive in (("kvlab bench", ours), ("redis-benchmark", theirs)):
                got = interleave(
                    options.rounds,
                    {which: lambda which=which: measured(which, drive) for which in servers},
                )
                (rate, cpu), (our_rate, our_cpu) = got["redis"], got["mock"]
                row(
                    f"{operation.upper()} pipeline {depth}", name, f"{rate:.0f}", f"{our_rate:.0f}",
                    f"{our_rate / rate:.2f}", f"{cpu:.2f}", f"{our_cpu:.2f}", f"{our_cpu / cpu:.2f}",
                )
    for target in servers.values():
        target.stop()


def aerospike(options):
    """Aerospike put and get against RESP GET on the same mock."""
    row("16 connections", "requests /s", "ratio to RESP GET")
    row(*["---"] * 3)
    mock = mock_server()
    requests = int(60_000 * options.seconds)
    redis_url = f"redis://127.0.0.1:{mock.ports['redis']}"
    aerospike_url = f"aerospike://127.0.0.1:{mock.ports['aerospike']}/test/demo"
    got = interleave(
        options.rounds,
        {
            "RESP GET": lambda: kvlab_bench(redis_url, "0:1", 16, 1, requests),
            "put": lambda: kvlab_bench(aerospike_url, "1:0", 16, 1, requests),
            "get": lambda: kvlab_bench(aerospike_url, "0:1", 16, 1, requests),
        },
    )
    base = got["RESP GET"][0]
    for name, (rate, _) in got.items():
        row(name, f"{rate:.0f}", f"{rate / base:.2f}")
    mock.stop()


def commands_processed(port):
    """What the server has counted, and the moment in nanoseconds."""
    info = subprocess.run(
        ["redis-cli", "-p", str(port), "info", "stats"], capture_output=True, text=True, check=True
    )
    count = re.search(r"total_commands_processed:(\d+)", info.stdout)
    return int(count.group(1)), time.monotonic_ns()


def counted(port, command, seconds):
    """Rate by the server's counter, processor time per request and peak memory in bytes."""
    before, _ = commands_processed(port)
    child = subprocess.Popen(
        ["taskset", "-c", CLIENT_CORE, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(0.7)
    first, begun = commands_processed(port)
    time.sleep(seconds)
    last, ended = commands_processed(port)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{command} ended with code {child.returncode}")
    total, _ = commands_processed(port)
    rate = (last - first) / (ended - begun) * 1e9
    return rate, (usage.ru_utime + usage.ru_stime) / (total - before), usage.ru_maxrss * 1024


def memtier(options):
    """`kvlab memtier`, memtier_benchmark and `kvlab bench` against the same redis-server."""
    original = shutil.which("memtier_benchmark")
    if original is None:
        print("skipped: no memtier_benchmark in the PATH", file=sys.stderr)
        return
    server = redis_server()
    port = server.ports["redis"]
    whole = int(options.seconds) + 2

    def line(program, connections, depth):
        load = ["-t", "1", "-c", str(connections), "--pipeline", str(depth), "--ratio", "0:1"]
        load += ["--test-time", str(whole), "--key-maximum", "10000", "--hide-histogram"]
        command = [*program, "-s", "127.0.0.1", "-p", str(port), *load]
        return counted(port, command, options.seconds)

    def native(depth):
        command = [KVLAB, "bench", f"redis://127.0.0.1:{port}", "--threads", "1", "--connections"]
        command += ["50", "--pipeline", str(depth), "--duration", f"{whole}s", "--ratio", "0:1"]
        command += ["--keys", "10000", "--value-size", "32", "--quiet"]
        return counted(port, command, options.seconds)

    ours, theirs = [KVLAB, "memtier"], [original]
    row("GET, 50 connections", "memtier /s", "kvlab memtier /s", "rate ratio", "to kvlab bench",
        "CPU us", "CPU us kvlab", "CPU ratio")
    row(*["---"] * 8)
    for depth in (1, 16):
        got = interleave(
            options.rounds,
            {
                "theirs": lambda: line(theirs, 50, depth),
                "ours": lambda: line(ours, 50, depth),
                "bench": lambda: native(depth),
            },
        )
        (rate, cpu, _), (our_rate, our_cpu, _) = got["theirs"], got["ours"]
        row(
            f"pipeline {depth}", f"{rate:.0f}", f"{our_rate:.0f}", f"{our_rate / rate:.2f}",
            f"{our_rate / got['bench'][0]:.2f}", f"{cpu * 1e6:.2f}", f"{our_cpu * 1e6:.2f}",
            f"{our_cpu / cpu:.2f}",
        )
    memory = interleave(
        1, {"theirs": lambda: line(theirs, 2000, 1), "ours": lambda: line(ours, 2000, 1)}
    )
    (_, _, most), (_, _, our_most) = memory["theirs"], memory["ours"]
    print()
    row("2,000 connections", "memtier MB", "kvlab memtier MB", "ratio")
    row(*["---"] * 4)
    row("peak memory", f"{most / 1e6:.0f}", f"{our_most / 1e6:.0f}", f"{our_most / most:.2f}")
    server.stop()


PARTS = {"client": client, "server": server, "aerospike": aerospike, "memtier": memtier}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=3)
    chosen = options.parse_args()
    for part in chosen.parts or PARTS:
        print(f"\n{PARTS[part].__doc__}\n")
        PARTS[part](chosen)


if __name__ == "__main__":
    main()
