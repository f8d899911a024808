"""What a large report and a large comparison cost to make, and how soon a browser shows the page.

    python benchmarks/html_report.py [--browser chromium]

Makes a document of 2,000 cases and its HTML report, lets a headless Chromium open that page five
times, and compares 50 documents of 200 cases with 3,000 durations each. Prints CPU seconds, sizes,
peak memory and the time to the first paint beside their limits; exit status 1 if one is missed.
Without a browser that line says so and is not judged.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

CASES, REPORT_CPU_S, REPORT_BYTES, PAINT_S, OPENED = 2000, 10.0, 15e6, 2.0, 5
RUNS, CASES_EACH, COMPARE_CPU_S, COMPARE_BYTES = 50, 200, 10.0, 500e6
WORKERS = 3
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
    "--window-size=1280,900",
)

#: Calls the console tool and notes what its process used. The peak is that of this program: the
#: one of getrusage() would hold what the process was before it became this program.
_MEASURED = """
import json, sys, time
from pytest_ortbench.cli.application import run
code = run(sys.argv[2:])
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) * 1024
json.dump([time.process_time(), peak], open(sys.argv[1], "w"))
sys.exit(code)
"""

#: Both paints that the browser notes, in milliseconds from the start of navigation.
_PAINTS = (
    "new Promise(done => setTimeout(() => done(JSON.stringify("
    "performance.getEntriesByType('paint').map(one => [one.name, one.startTime]))), 300))"
)


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--browser", default=next(filter(None, map(shutil.which, _BROWSERS)), ""))
    browser = parser.parse_args().browser
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = [_report(folder), _paint(browser, folder), _compare(folder)]
    return 0 if all(kept) else 1


def _report(folder: Path) -> bool:
    from pytest_ortbench.store.folder import write_document
    from tests.report.sample_runs import many_cases

    write_document(many_cases(CASES, samples=100, workers=WORKERS), folder / "run.json")
    cpu_s, peak = _ortbench("report", folder / "run.json", "--output", folder / "report.html")
    size = (folder / "report.html").stat().st_size
    print(
        f"HTML report of {CASES:,} cases: {cpu_s:.1f} s of CPU (limit {REPORT_CPU_S:g}), "
        f"{size / 1e6:.1f} MB (limit {REPORT_BYTES / 1e6:g}), peak {peak / 1e6:.0f} MB"
    )
    return cpu_s < REPORT_CPU_S and size < REPORT_BYTES


def _compare(folder: Path) -> bool:
    from pytest_ortbench.store.folder import write_document
    from tests.report.sample_runs import many_cases

    first = many_cases(CASES_EACH, samples=1000, workers=WORKERS)
    paths: list[Path] = []
    for number in range(RUNS):
        machine = dataclasses.replace(first.machine, host=f"machine-{number:02d}")
        run_id = f"20260101T{number:06d}Z-machine-{number:02d}-0000"
        paths.append(folder / f"{number}.json")
        write_document(dataclasses.replace(first, machine=machine, run_id=run_id), paths[-1])
    on_disk = sum(path.stat().st_size for path in paths)
    cpu_s, peak = _ortbench("compare", *paths)
    print(
        f"comparison of {RUNS} documents of {CASES_EACH} cases ({on_disk / 1e6:.0f} MB): "
        f"{cpu_s:.1f} s of CPU (limit {COMPARE_CPU_S:g}), peak {peak / 1e6:.0f} MB "
        f"(limit {COMPARE_BYTES / 1e6:g})"
    )
    return cpu_s < COMPARE_CPU_S and peak < COMPARE_BYTES


def _ortbench(*arguments: object) -> tuple[float, float]:
    """CPU seconds and peak bytes of one call of the console tool, in a process of its own."""
    with tempfile.NamedTemporaryFile("r") as facts:
        command = [sys.executable, "-c", _MEASURED, facts.name, *map(str, arguments)]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        cpu_s, peak = json.load(facts)
    return cpu_s, peak


def _paint(browser: str, folder: Path) -> bool:
    if not browser:
        print("first paint: not measured, no Chromium was found (name one with --browser)")
        return True
    page = folder / "report.html"
    found = [_first_paint(browser, page, folder / f"profile-{index}") for index in range(OPENED)]
    median = statistics.median(found)
    print(
        f"first paint in Chromium: {median:.2f} s, median of {OPENED} starts, "
        f"{min(found):.2f} to {max(found):.2f} s (limit {PAINT_S:g})"
    )
    return median < PAINT_S


def _first_paint(browser: str, page: Path, profile: Path) -> float:
    """Seconds from the start of navigation to the first content on the screen."""
    with _Browser(browser, profile) as opened:
        target = opened.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attach = {"targetId": target, "flatten": True}
        session = opened.call("Target.attachToTarget", attach)["sessionId"]
        opened.call("Page.navigate", {"url": page.as_uri()}, session)
        for _ in range(100):
            asked = {"expression": _PAINTS, "awaitPromise": True}
            reply = opened.call("Runtime.evaluate", asked, session)
            paints = dict(json.loads(reply["result"].get("value", "[]")))
            if "first-contentful-paint" in paints:
                return float(paints["first-contentful-paint"]) / 1e3
    raise SystemExit(f"{browser} painted nothing of {page}")


class _Browser:
    """A headless browser that is steered over two pipes (``--remote-debugging-pipe``).

    It reads from descriptor 3 and writes to 4; messages are JSON, each followed by a zero byte.
    """

    def __init__(self, browser: str, profile: Path) -> None:
        theirs_to_read, self._write = os.pipe()
        self._read, theirs_to_write = os.pipe()
        # The shell moves the two ends to where the browser looks for them.
        script = f'exec "$0" "$@" 3<&{theirs_to_read} 4>&{theirs_to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, browser, *_FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(theirs_to_read, theirs_to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_to_read)
        os.close(theirs_to_write)
        self._sent = 0
        self._left = b""

    def __enter__(self) -> _Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._write)
        self._process.terminate()
        self._process.wait(30)
        os.close(self._read)

    def call(self, method: str, parameters: dict[str, Any], session: str = "") -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._message()
            if reply.get("id") == self._sent:
                if "error" in reply:
                    raise SystemExit(f"{method}: {reply['error']['message']}")
                result: dict[str, Any] = reply["result"]
                return result

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            found = os.read(self._read, 1 << 16)
            if not found:
                raise SystemExit("the browser ended; does it start with --headless here?")
            self._left += found
        message, _, self._left = self._left.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed


if __name__ == "__main__":
    sys.exit(main())
