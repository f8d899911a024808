"""What the check of the documentation's code finds, and what it lets pass."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_site import script

CHECK = script("check_blocks")
KNOWN = CHECK.Known(
    pytest=frozenset({"--ort-models", "--junitxml"}),
    ortbench={"": frozenset({"--help"}), "show": frozenset({"--columns"})},
    keys=frozenset({"ort_models"}),
    keywords=frozenset({"models"}),
)


def faults(language: str, text: str) -> list[str]:
    page = f"words\n\n```{language}\n{text}\n```\n"
    return list(CHECK.faults_of_page(page, "page.md", KNOWN))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("console", "$ pytest m.onnx --ort-models=a   # --ort-nothing\n--ort-other of the output"),
        (
            "console",
            "$ .venv/bin/pytest \\\n    --junitxml=a.xml && ortbench show latest --columns",
        ),
        ("console", "$ kubectl wait job/ortbench --timeout=2h"),
        ("", "pytest suites --ort-models=a"),
        ("toml", '[tool.pytest]\nort_models = ["a"]'),
        ("ini", "[testenv:b]\ncommands =\n    pytest {posargs} --ort-models=a"),
        ("python", "    @pytest.mark.ortbench(models='a')\n    def test(ortbench): ..."),
        ("yaml", "- run: pytest --ort-models=${{ github.sha }}"),
        ("yaml", "script:\n  - >\n    ortbench show\n    --columns"),
    ],
)
def test_what_is_right_passes(language: str, text: str) -> None:
    assert faults(language, text) == []


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("console", "$ pytest --ort-model=a"),
        ("console", "$ true && .venv/bin/ortbench show \\\n  --sort=a"),
        ("console", "$ ortbench shown latest"),
        ("console", "$ pytest 'a"),
        ("", "ortbench show --sort=a"),
        ("toml", "[tool.pytest.ini_options]\nort_model = []"),
        ("toml", "= a"),
        ("ini", "[pytest]\nort_model = a"),
        ("ini", "[testenv]\ncommands = pytest --ort-model=a"),
        ("ini", "a = [\n["),
        ("python", "@pytest.mark.ortbench(model='a')\ndef test(ortbench): ..."),
        ("python", "def test(:"),
        ("yaml", "- run: pytest --ort-model=a"),
        ("yaml", "script: [ortbench show --sort=a]"),
        ("yaml", "a: [b"),
        ("json", "{"),
        ("cobol", "STOP RUN."),
    ],
)
def test_what_is_wrong_is_told_with_its_place(language: str, text: str) -> None:
    (fault,) = faults(language, text)
    assert fault.startswith("page.md:4: ")


def test_an_option_in_the_text_must_be_there() -> None:
    (fault,) = CHECK.faults_of_page("a\nuse `--ort-model`, not `--ort-models`\n", "p.md", KNOWN)
    assert fault.startswith("p.md:2: ")


def test_commands_of_the_console_tool_are_all_known() -> None:
    from pytest_ortbench.cli.application import COMMANDS

    known = dict(CHECK._commands())
    assert set(COMMANDS) <= set(known)
    assert all("--help" in options for options in known.values())


def _jobs(page: str) -> list[Any]:
    """The CI jobs of a page: those that check out or have a script, whole files alone."""
    text = (Path(CHECK.__file__).parent / page).read_text(encoding="utf-8")
    blocks = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.S))
    files = [block for block in blocks if isinstance(block, dict)]
    return [
        block.get("jobs", block)["gate"] for block in files if "gate" in block.get("jobs", block)
    ]


@pytest.mark.parametrize("page", ["guides/gating.md", "guides/pull-request.md"])
def test_a_job_has_one_shape_on_all_pages(page: str) -> None:
    own, first = _jobs(page), _jobs("start/ci.md")
    assert len(own) == len(first) == 2
    for job, shape in zip(own, first, strict=True):
        if "steps" in job:
            *shared, call = shape["steps"]
            assert job["steps"][: len(shared)] == shared
            assert job["steps"][len(shared)]["run"].startswith(call["run"].rstrip())
            assert job["timeout-minutes"] == shape["timeout-minutes"]
        else:
            assert {key: job[key] for key in ("image", "rules", "variables")} == {
                key: shape[key] for key in ("image", "rules", "variables")
            }
            assert job["script"][0] == shape["script"][0]
            asked, given = (set(each["script"][1].split()) for each in (shape, job))
            assert asked <= given
