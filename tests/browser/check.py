#!/usr/bin/env python3
"""Opens the HTML reports in headless Chromium and checks what a reader would see.

    python3 tests/browser/check.py [--kvlab PATH]

Needs the release build of kvlab and a Chromium; playwright goes into a virtual environment under
target/browser, made here. Each page is opened wide and narrow, light and dark: its curves must be
drawn, its tables must be there, nothing may be logged as an error, nothing may be fetched, nothing
may stick out of a telephone's screen, no two labels may cover each other, and texts must have
contrast. The screenshots stay in target/browser. Without a Chromium the check is skipped and says
so; with CI=true that is a failure.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WORK = TARGET / "browser"
LIMIT = 600  # seconds for one command, an installation included
BROWSERS = ["chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"]
PLAYWRIGHT = "playwright==1.65.2"
WIDTHS = {"wide": 1280, "narrow": 375}
SCHEMES = ["light", "dark"]


class Broken(Exception):
    """Something is not as a reader should see it."""


def demand(holds, text):
    if not holds:
        raise Broken(text)


def install():
    """This program again, in an environment that has playwright."""
    python = WORK / "venv" / "bin" / "python"
    probe = [str(python), "-c", "import playwright"]
    if not python.exists() or subprocess.run(probe, stderr=subprocess.DEVNULL).returncode:
        WORK.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(WORK / "venv")], check=True, timeout=LIMIT)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, PLAYWRIGHT], check=True, timeout=LIMIT)
    os.execv(python, [str(python), *sys.argv])


def kvlab(program, *arguments):
    """Runs kvlab; a verdict is no failure here."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=LIMIT)
    demand(done.returncode in (0, 1, 3), f"kvlab {arguments}: {done.returncode} {done.stderr}")


def make_pages(program, folder):
    """The pages to be looked at: file and what it must have."""
    freeze, again = folder / "freeze.html", folder / "again.html"
    scenario = str(ROOT / "scenarios" / "freeze.toml")
    for file in (freeze, again):
        kvlab(program, "run", scenario, "--virtual", "--quiet", "--html", str(file))
    demand(freeze.read_bytes() == again.read_bytes(), "two virtual runs gave different pages")
    quickstart = folder / "quickstart.html"
    kvlab(program, "run", "--virtual", "--quiet", "--html", str(quickstart))
    return {
        "freeze": (freeze, check_freeze),
        "quickstart": (quickstart, check_quickstart),
        "bench": (bench(program, folder), check_bench),
        "memtier": (memtier(program, folder), check_memtier),
    }


def bench(program, folder):
    """A page of the load generator, in real time against a mock that freezes."""
    page = folder / "bench.html"
    load = ["--rate", "1000", "--connections", "4", "--duration", "4s", "--quiet"]
    with_mock(program, folder, lambda port: kvlab(
        program, "bench", f"redis://127.0.0.1:{port}", *load, "--html", str(page)
    ))
    return page


def memtier(program, folder):
    """The page of two runs of a memtier command line."""
    page = folder / "memtier.html"
    load = "-t 1 -c 4 -n 500 --rate-limiting 250 --ratio 1:1 -x 2".split()
    out = ["--out-file", str(folder / "memtier.txt"), "--html", str(page)]
    with_mock(program, folder, lambda port: kvlab(
        program, "memtier", "-s", "127.0.0.1", "-p", port, *load, *out
    ))
    return page


def with_mock(program, folder, run):
    """Runs something against a mock that freezes."""
    ports = folder / "ports"
    ports.unlink(missing_ok=True)
    options = ["--redis-port", "0", "--aerospike-port", "off", "--ports-file", str(ports)]
    law = ["--latency", "lognormal(p50=300us,p99=2ms)", "--freeze", "every=1s,for=100ms"]
    server = subprocess.Popen([program, "serve", *options, *law], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not ports.exists():
            demand(server.poll() is None and time.monotonic() < deadline, "no server")
            time.sleep(0.02)
        run(dict(line.split("=") for line in ports.read_text().split())["redis"])
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=20)


def check_common(page):
    """What every page must have."""
    figures = page.locator("figure.chart").all()
    demand(figures, "no chart")
    for figure in figures:
        name = figure.get_attribute("id")
        field = figure.locator("svg.field > svg").first.bounding_box()
        curves = figure.locator("path.curve").all()
        entries = figure.locator("ul.legend li line.curve").count()
        demand(curves and len(curves) == entries, f"{name}: {len(curves)} curves, {entries} named")
        for curve in curves:
            box = curve.bounding_box()
            demand(box and box["width"] > field["width"] / 2, f"{name}: a curve is not drawn: {box}")
        demand(figure.locator("svg > title").first.text_content(), f"{name}: no title")
        demand(figure.locator("svg > desc").first.text_content(), f"{name}: no description")
        demand(figure.locator("details.numbers tbody tr").count() > 1, f"{name}: no numbers")
    demand(page.locator("main table").count() > 2, "no tables")


def check_freeze(page):
    """Expected by arithmetic: see the head of scenarios/freeze.toml."""
    clients = page.locator("section.part").count()
    demand(clients >= 2, "both kinds of client: with slots to spare and with one for each connection")
    for number in range(1, clients + 1):
        client = f"s1-c{number}"
        bands = page.locator(f"#{client}-over-time g.bands rect.band").count()
        demand(bands == 10, f"{client}: {bands} freezes are marked, ten lie in 20 s")
        rows = page.locator(f"#{client}-percentiles details.numbers tbody tr")
        cells = [row.locator("th, td").all_text_contents() for row in rows.all()]
        values = {row[0]: row[1:3] for row in cells}
        for percentile, least, most in (("p99", 130, 132), ("p99.9", 148, 150)):
            for text in values[percentile]:
                demand(least <= float(text.split()[0]) <= most, f"{client} {percentile}: {text}")
    main = page.locator("main").inner_text()
    for text in ("What became of the requests", "20\u202f000", "must be exact", "every=2s,for=150ms"):
        demand(text in main, f"no {text!r}")
    good = page.locator(".title .badge.good").count()
    demand(good == 1 + clients, "not every verdict is shown")
    demand("Environment" not in main, "a virtual run tells of the machine")


def check_quickstart(page):
    demand(page.locator("section.part").count() == 4, "four clients")
    links = page.locator("nav a").all()
    demand(len(links) == 4, "four links")
    for link in links:
        demand(page.locator(link.get_attribute("href")).count() == 1, "a link leads nowhere")


def check_bench(page):
    for name in ("percentiles", "over-time", "rate"):
        demand(page.locator(f"#{name} path.curve").count() >= 1, f"no chart {name}")
    main = page.locator("main").inner_text()
    for text in ("How the requests ended", "Environment", "4\u202f000 of 4\u202f000"):
        demand(text in main, f"no {text!r}")


def check_memtier(page):
    demand(page.locator("section.part").count() == 2, "two runs")
    for number in (1, 2):
        for name in ("percentiles", "over-time", "rate"):
            curves = page.locator(f"#run-{number}-{name} path.curve").count()
            demand(curves >= 1, f"no chart {name} of run {number}")
    main = page.locator("main").inner_text()
    demand(main.count("2\u202f000 of 2\u202f000") == 2, "not all requests of both runs")


def check_layout(page):
    """Nothing sticks out, and no label covers another."""
    faults = page.evaluate(
        """() => {
        const faults = [];
        const width = document.documentElement.clientWidth;
        if (document.documentElement.scrollWidth > width)
            faults.push(`${document.documentElement.scrollWidth} of ${width} pixels wide`);
        for (const panel of document.querySelectorAll(".panel, figure, h1, h2, h3, .lead, .legend li")) {
            const box = panel.getBoundingClientRect();
            if (box.right > width + 0.5 || box.left < -0.5)
                faults.push(`sticks out: ${panel.tagName} ${panel.textContent.slice(0, 40)}`);
        }
        for (const figure of document.querySelectorAll("figure")) {
            const frame = figure.parentElement.getBoundingClientRect();
            const texts = [...figure.querySelectorAll("svg.field text")]
                .filter((text) => getComputedStyle(text).display !== "none")
                .map((text) => [text.textContent, text.getBoundingClientRect()]);
            texts.forEach(([text, box], index) => {
                if (box.left < frame.left || box.right > frame.right)
                    faults.push(`${figure.id}: label ${text} is cut off`);
                for (const [other, its] of texts.slice(index + 1))
                    if (box.left < its.right && its.left < box.right
                        && box.top + 2 < its.bottom && its.top + 2 < box.bottom)
                        faults.push(`${figure.id}: ${text} covers ${other}`);
            });
        }
        return faults;
    }"""
    )
    demand(not faults, "; ".join(faults))


def check_contrast(page):
    """At least 4.5 to 1 for texts and 3 to 1 for curves, as the WCAG ask for."""
    faults = page.evaluate(
        """() => {
        const canvas = document.createElement("canvas").getContext("2d");
        const parse = (colour) => {
            canvas.fillStyle = colour;
            const hex = canvas.fillStyle;
            const parts = hex.startsWith("#")
                ? [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16))
                : hex.match(/[\\d.]+/g).map(Number);
            return parts;
        };
        const light = (colour) => {
            const [r, g, b] = parse(colour).map((part) => {
                part /= 255;
                return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ratio = (a, b) => {
            const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
            return (high + 0.05) / (low + 0.05);
        };
        const ground = (element) => {
            for (let at = element; at; at = at.parentElement) {
                const colour = getComputedStyle(at).backgroundColor;
                if (!/, 0\\)|transparent/.test(colour)) return colour;
            }
            return "white";
        };
        const faults = [];
        const look = (selector, property, least) => {
            for (const element of document.querySelectorAll(selector)) {
                const colour = getComputedStyle(element)[property];
                const found = ratio(colour, ground(element));
                if (found < least) faults.push(`${selector}: ${found.toFixed(2)} ${colour}`);
            }
        };
        look("h1, h2, h3, h4, p, li, dt, dd, th, td, .badge, summary, a", "color", 4.5);
        look("svg.field text", "fill", 4.5);
        look("path.curve:not(.truth)", "stroke", 3);
        return [...new Set(faults)];
    }"""
    )
    demand(not faults, "; ".join(faults))


def check_readout(page):
    """The values under the focus and under the pointer."""
    figure = page.locator("figure.chart").first
    plot, readout = figure.locator(".plot"), figure.locator(".readout")
    hint = readout.inner_text()
    plot.focus()
    page.keyboard.press("End")
    demand(readout.inner_text().startswith("largest of"), readout.inner_text())
    demand(figure.locator(".pointer circle").count() >= 1, "no dots under the focus")
    page.keyboard.press("ArrowLeft")
    demand(re.match(r"p99\.\d+: .* (ms|µs)", readout.inner_text()), readout.inner_text())
    page.keyboard.press("Escape")
    demand(readout.inner_text() == hint, "the read-out stays")
    box = figure.locator("svg.field > svg").first.bounding_box()
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    demand(re.match(r"p9\d.*: ", readout.inner_text()), readout.inner_text())
    page.mouse.move(0, 0)


def look(browser, name, file, check, width, scheme):
    """One page at one width in one scheme."""
    size = {"width": WIDTHS[width], "height": 900}
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    said, fetched = [], []
    page.on("console", lambda line: said.append(f"{line.type}: {line.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(file.as_uri())
    check_common(page)
    check(page)
    check_layout(page)
    check_contrast(page)
    check_readout(page)
    page.screenshot(path=WORK / f"{name}-{width}-{scheme}.png", full_page=True)
    page.emulate_media(media="print")
    demand(not page.locator(".readout").first.is_visible(), "the read-out is printed")
    demand(not said, f"logged: {said}")
    demand(fetched == [file.as_uri()], f"fetched: {fetched}")
    context.close()


def look_without_script(browser, file, check):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    check_common(page)
    check(page)
    context.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kvlab", default=str(TARGET / "release" / "kvlab"))
    arguments = parser.parse_args()
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        print(f"skipped: none of {', '.join(BROWSERS)} is installed")
        return int(os.environ.get("CI") == "true")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        install()
    failed = 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = make_pages(arguments.kvlab, pathlib.Path(folder))
        # The sandbox of Chromium refuses to be started by root.
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=executable, args=options)
        checks = [
            (f"{name}, {width}, {scheme}", look, (browser, name, file, check, width, scheme))
            for name, (file, check) in pages.items()
            for width in WIDTHS
            for scheme in SCHEMES
        ] + [
            (f"{name}, without script", look_without_script, (browser, file, check))
            for name, (file, check) in pages.items()
        ]
        for title, function, values in checks:
            try:
                function(*values)
                print(f"ok: {title}", flush=True)
            except Broken as broken:
                failed += 1
                print(f"failed: {title}: {broken}", flush=True)
        browser.close()
    print(f"{len(checks) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
