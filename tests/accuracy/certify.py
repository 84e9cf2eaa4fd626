#!/usr/bin/env python3
"""Certifies runs against a server whose law the certifier is not told, and looks where the truth lies.

    cargo build --release
    python3 tests/accuracy/certify.py [--runs 10] [--seconds 8] [--rate 2000] [KVLAB]

For each of three laws and each run a fresh `kvlab serve --rows` is started as a process of its own and
loaded by `kvlab bench --certify --json`. The rows of the server that were read in the measured part give
the exact p50, p90 and p99 of its sojourn (written - read). Passes when, for each law, these lie within the
bounds of the service time in at least nine of ten runs, with half widths of at most max(60 us, 5 %) at p50
and max(400 us, 15 %) at p99. A quantile without a bound counts as not certified and is listed. Needs
nothing but Python, and a machine that is not busy with something else.
"""

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

LAWS = {
    "constant": "constant(1ms)",
    "lognormal": "lognormal(p50=800us,p99=5ms)",
    "two modes": "mixture(97%:uniform(600us,1ms),3%:constant(20ms))",
}
QUANTILES = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)]
# Half widths: absolute in ns, and as a share of what is reported.
LIMITS = {"p50": (60_000, 0.05), "p99": (400_000, 0.15)}


def quantile(ordered, q):
    """The sample of rank ceil(q n)."""
    rank = -(-len(ordered) * round(q * 1000) // 1000)
    return ordered[max(rank, 1) - 1]


def serve(kvlab, law, folder, seed):
    ports, rows = os.path.join(folder, "ports"), os.path.join(folder, "rows.csv")
    server = subprocess.Popen(
        [kvlab, "serve", "--redis-port", "0", "--aerospike-port", "off", "--ports-file", ports,
         "--latency", law, "--seed", str(seed), "--rows", rows],
        stdout=subprocess.DEVNULL,
    )
    until = time.monotonic() + 10
    while not os.path.exists(ports):
        if server.poll() is not None or time.monotonic() > until:
            sys.exit("the server did not start")
        time.sleep(0.01)
    with open(ports) as file:
        port = file.read().split("redis=")[1].split()[0]
    return server, port, rows


def one_run(args, law, seed):
    with tempfile.TemporaryDirectory() as folder:
        server, port, rows = serve(args.kvlab, law, folder, seed)
        try:
            command = [
                args.kvlab, "bench", f"redis://127.0.0.1:{port}", "--certify", "--quiet",
                "--json", "-", "--duration", f"{args.seconds}s", "--seed", str(seed),
                "--connections", str(args.connections), "--max-errors", "none",
            ]
            if args.rate:
                command += ["--rate", str(args.rate)]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                timeout=args.seconds + 180, check=True,
            )
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=20)
        result = json.loads(done.stdout)["result"]
        begin = result["started_unix_ns"]
        end = begin + args.seconds * 1_000_000_000
        with open(rows, newline="") as file:
            sojourns = sorted(
                int(row["written_ns"])
                for row in csv.DictReader(file)
                if row["command"] in ("get", "set") and begin <= int(row["read_unix_ns"]) < end
            )
        return result, sojourns


def judge(result, sojourns):
    """(whether all is certified and true, lines about it)."""
    certificate = result["certificate"]
    if certificate["refused"]:
        return False, [f"    no certificate: {certificate['refused']}"]
    good, lines = True, []
    for title, q in QUANTILES:
        entry = next(
            (e for e in certificate["quantiles"]
             if e["latency"] == "service" and e["title"] == title), None)
        truth = quantile(sojourns, q)
        if entry is None or entry["refused"]:
            good = False
            lines.append(f"    {title} no bound: {entry and entry['refused']}")
            continue
        low, high, half = entry["low_ns"], entry["high_ns"], entry["half_width_ns"]
        reported = entry["reported_ns"]
        inside = low <= truth <= high
        narrow = True
        if title in LIMITS:
            absolute, share = LIMITS[title]
            narrow = half <= max(absolute, share * reported)
        good &= inside and narrow
        lines.append(
            f"    {title} reported {reported / 1e3:9.1f} us, certified {entry['certified_ns'] / 1e3:9.1f}"
            f" +-{half / 1e3:6.1f}, truth {truth / 1e3:9.1f}"
            f"{'' if inside else '  OUTSIDE'}{'' if narrow else '  TOO WIDE'}")
    return good, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kvlab", nargs="?", default="target/release/kvlab")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--rate", type=int, default=2000, help="0: a closed loop")
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--law", choices=LAWS, help="one law only")
    args = parser.parse_args()
    failed = False
    for name, law in LAWS.items():
        if args.law and name != args.law:
            continue
        certified = 0
        for run in range(args.runs):
            result, sojourns = one_run(args, law, 100 + run)
            good, lines = judge(result, sojourns)
            certified += good
            print(f"{name}, run {run + 1}: {'certified and true' if good else 'NOT'},"
                  f" {len(sojourns)} requests")
            print("\n".join(lines), flush=True)
        needed = -(-args.runs * 9 // 10)
        print(f"{name}: {certified} of {args.runs} certified and true, {needed} needed\n", flush=True)
        failed |= certified < needed
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
