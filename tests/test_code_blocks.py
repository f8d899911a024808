"""What the check of the documentation's code finds, and what it lets pass."""

from __future__ import annotations

import pytest

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
