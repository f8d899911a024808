"""Make the example in results/example and the pictures of its reports in docs/pictures.

    python docs/example.py                # measures three runtimes (about 15 minutes), then draws
    python docs/example.py --only=draw    # the pictures, from the documents that are there

Measuring: the shipped suites on the current runtime, on an older ONNX Runtime and on OpenVINO's
distribution, each in three precisions at two batch sizes. The documents are stored without what
tells this machine from others: host name, folders, build of the kernel. Drawing needs Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE, PICTURES = ROOT / "results" / "example", ROOT / "docs" / "pictures"

#: Documents by name, with what differs from the default.
RUNS: dict[str, tuple[str, ...]] = {
    "run": (),
    "onnxruntime-1.20.1": ("--ort-runtimes=onnxruntime==1.20.1",),
    "openvino": ("--ort-runtimes=onnxruntime-openvino", "--ort-providers=all"),
}
COMMON = (
    "--ort-models=builtin:gbdt,builtin:bert_tiny,builtin:mobilenet_v2",
    "--ort-precisions=fp32,fp16,int8-dynamic",
    "--ort-batch-sizes=1,8",
)
HOST = "example"
#: Pictures: page, width and height of the window, whether dark.
SHOTS: dict[str, tuple[str, int, int, bool]] = {
    "report": ("run.html", 1280, 1150, False),
    "report-dark": ("run.html", 1280, 1150, True),
    "report-narrow": ("run.html", 500, 900, False),
    "comparison": ("comparison.html", 1280, 1150, False),
}
#: Figures that are shown besides.
FIGURES = ("latency", "accuracy")
LIMIT_BYTES = 300_000
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def main() -> int:
    """Make the example; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=("measure", "draw"), help="do one half")
    parser.add_argument("--time", type=float, default=3.0, help="seconds a case (default: 3)")
    given = parser.parse_args()
    if given.only != "draw":
        for name, arguments in RUNS.items():
            measure(name, arguments, given.time)
    if given.only != "measure":
        draw()
    return 0


def measure(name: str, arguments: tuple[str, ...], time_s: float) -> None:
    """Run the suites and store the document, anonymised."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:benchmark", "-p", "no:cacheprovider"),
        *COMMON,
        *arguments,
        f"--ort-time={time_s:g}",
    ]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "run.json"
        command += ["--ort-no-results", f"--ort-json={made}"]
        say(" ".join(command[1:]))
        # A case that can't run as asked is a row of the example, and no reason to stop.
        subprocess.run(command, cwd=ROOT, check=False)
        document = json.loads(made.read_text(encoding="utf-8"))
    EXAMPLE.mkdir(parents=True, exist_ok=True)
    text = json.dumps(anonymous(document), separators=(",", ":"), ensure_ascii=False)
    refuse_traces(text)
    (EXAMPLE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def anonymous(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without what tells this machine from others of its kind."""
    host = document["machine"]["host"]
    started = document["run_id"].partition("-")[0]
    tail = document["run_id"].rpartition("-")[2]
    folders = {
        str(ROOT): "project",
        sys.prefix: "environment",
        sys.base_prefix: "python",
        str(Path.home()): "home",
        tempfile.gettempdir(): "temporary",
    }

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: HOST if key == "host" else clean(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [clean(inner) for inner in value]
        if isinstance(value, str):
            for folder in sorted(folders, key=len, reverse=True):
                value = value.replace(folder, folders[folder])
            return HOST if value == host else value
        return value

    cleaned: dict[str, Any] = clean(document)
    cleaned["run_id"] = f"{started}-{HOST}-{tail}"
    stable = cleaned["machine"]["stable"]
    stable["system"] = re.sub(r"(\d+\.\d+\.\d+)\S*", r"\1", stable.get("system", ""))
    return cleaned


def refuse_traces(text: str) -> None:
    """Stop if a folder or the name of this machine is left."""
    kept = [str(ROOT), sys.prefix, str(Path.home()), tempfile.gettempdir()]
    found = [folder for folder in kept if len(folder) > 1 and folder in text]
    host = socket.gethostname()
    found += re.findall(rf'"{re.escape(host)}"|-{re.escape(host)}-', text)
    found += re.findall(r"https?://[^\s\"]+", text)
    if found:
        raise SystemExit(f"the document still names {sorted(set(found))}")


def draw() -> None:
    """Make the pages of the stored documents and take their pictures."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise SystemExit("no Chromium was found: install it, or use --only=measure")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = [folder / f"{run}.json" for run in RUNS]
        for run in runs:
            shutil.copy(EXAMPLE / run.name, run)
        _tool(folder, "report", *runs, f"--output={folder / 'comparison.html'}")
        _tool(folder, "report", runs[0], f"--output={folder / 'run.html'}")
        _tool(folder, "plot", runs[0], f"--output={folder / 'plots'}", "--format=png")
        for shot, (page, width, height, dark) in SHOTS.items():
            taken = folder / f"{shot}.png"
            _take(browser, (folder / page).as_uri(), taken, width, height, dark=dark)
            _shrink(taken, PICTURES / f"{shot}.png")
        _draw_sheet(runs[0], folder / "one-page.png")
        _shrink(folder / "one-page.png", PICTURES / "one-page.png")
        for figure in FIGURES:
            _shrink(folder / "plots" / f"{figure}.png", PICTURES / f"figure-{figure}.png")


def _draw_sheet(run: Path, path: Path) -> None:
    """Draw the page for whoever decides as a picture, which a site can show."""
    sys.path.insert(0, str(ROOT))
    from pytest_ortbench.report.cards.sheet import run_sheet
    from pytest_ortbench.report.entries import shown_run
    from pytest_ortbench.report.figures.sheet import draw_sheet
    from pytest_ortbench.store.documents import load

    draw_sheet(run_sheet(shown_run(load(run)))).savefig(path, dpi=110)


def _tool(folder: Path, *arguments: object) -> None:
    """Call the console tool of this working copy, in a folder of its own."""
    subprocess.run(
        [sys.executable, "-m", "pytest_ortbench.cli", *map(str, arguments)],
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )


def _take(browser: str, address: str, path: Path, width: int, height: int, *, dark: bool) -> None:
    """Take a picture of what a window of that size shows first."""
    subprocess.run(
        [
            browser,
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--no-first-run", "--disable-background-networking", "--disable-sync"),
            *(["--blink-settings=preferredColorScheme=0"] if dark else []),
            f"--user-data-dir={path.with_suffix('')}",
            # The window has a frame of which the picture shows nothing.
            f"--window-size={width},{height + 100}",
            f"--screenshot={path}",
            address,
        ],
        check=True,
        timeout=120,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    from PIL import Image

    with Image.open(path) as image:
        image.crop((0, 0, width, height)).save(path)


def _shrink(taken: Path, path: Path) -> None:
    """Store a picture with as many colours as its limit of size allows."""
    from PIL import Image

    with Image.open(taken) as image:
        for colours in (256, 128, 64, 32):
            image.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(
                path, optimize=True
            )
            if path.stat().st_size < LIMIT_BYTES:
                break
    say(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


def say(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
