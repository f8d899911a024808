"""CI files that ``ortbench init`` writes: a workflow of GitHub Actions, a job of GitLab."""

from __future__ import annotations

import json
import re

from pytest_ortbench.cli.adoption.repository import GITLAB
from pytest_ortbench.cli.adoption.suite import OPTIONS
from pytest_ortbench.core.version import VERSION

GITHUB_FILE = ".github/workflows/ortbench.yml"
GITLAB_FILE = ".gitlab-ci.yml"
#: Beside a file that is there, which has to include it.
GITLAB_INCLUDED = ".gitlab/ortbench.yml"

_PACKAGE = f"pytest-ortbench[cpu]=={VERSION}"

_GITHUB = """\
# Written by 'ortbench init'. On a pull request the models of both sides are measured, and what got
# slower, larger or less accurate fails the job and stands in a comment.
name: ortbench

on:
  pull_request:
  push:
    branches: [@BRANCH@]
  workflow_dispatch:

permissions:
  contents: read
  pull-requests: write

concurrency:
  group: ortbench-${{ github.workflow }}-${{ github.ref }}
  cancel-in-progress: true

jobs:
  linux:
    runs-on: ubuntu-latest
    timeout-minutes: @MINUTES@
    steps:
@STEPS@
@OTHERS@"""

_GITHUB_OTHER = """\

  # Not run by the authors of pytest-ortbench: they have no machine with @NAME@. It starts by hand
  # only (Actions, ortbench, Run workflow); take 'if' away once it works for you.
  @KEY@:
    if: github.event_name == 'workflow_dispatch'
    runs-on: @KEY@-latest
    timeout-minutes: @MINUTES@
    steps:
@STEPS@
"""

_GITHUB_STEPS = """\
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0  # the base of a pull request is measured, too
          lfs: @LFS@  # @WHETHER@ model file lies in Git LFS
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
          cache: pip
          cache-dependency-path: @FILE@
      - uses: actions/cache@v4
        with:
          path: ${{ runner.temp }}/ortbench-cache
          key: ortbench-${{ runner.os }}-${{ hashFiles('**/*.onnx', '**/*.ort') }}
          restore-keys: ortbench-${{ runner.os }}-
      - name: Install
        run: python -m pip install "@PACKAGE@"
      - name: Measure
        shell: bash
        env:
          BASE: ${{ github.event.pull_request.base.sha }}
          ORTBENCH_CACHE: ${{ runner.temp }}/ortbench-cache
        run: |
          gate=()
          if [ -n "$BASE" ]; then gate=("--ort-against=git:$BASE"); fi
          python -m pytest @@OPTIONS@ "${gate[@]}" \\
            --ort-summary=ortbench-summary.md --junitxml=ortbench.xml
      - name: Comment
        if: ${{ !cancelled() }}
        env:
          GITHUB_TOKEN: ${{ github.token }}
        run: ortbench comment ortbench-summary.md --key=@KEY@
      - uses: actions/upload-artifact@v4
        if: ${{ always() }}
        with:
          name: ortbench-@KEY@
          path: |
            @RESULTS@/
            ortbench.xml
          if-no-files-found: ignore"""

_GITLAB = """\
# Written by 'ortbench init'. On a merge request the models of both sides are measured, and what got
# slower, larger or less accurate fails the job.
ortbench:
  image: python:3.12
@BODY@
@OTHERS@"""

_GITLAB_OTHER = """
# Not run by the authors of pytest-ortbench: they have no machine with @NAME@. It starts by hand
# only; set the tags to those of your runner.
ortbench-@KEY@:
  tags: [@TAG@]
@IMAGE@  allow_failure: true
@BODY@
"""

_GITLAB_BODY = """\
  timeout: @MINUTES@ minutes
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"@WHEN@
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH@WHEN@
  variables:
    GIT_DEPTH: "0"  # the base of a merge request is measured, too
    PIP_CACHE_DIR: $CI_PROJECT_DIR/.cache/pip
    ORTBENCH_CACHE: $CI_PROJECT_DIR/.cache/ortbench
  cache:
    key: ortbench-@KEY@
    paths: [.cache/]
  script:
    - python -m pip install "@PACKAGE@"
@CALL@
  artifacts:
    when: always
    paths: [@RESULTS@/, ortbench-summary.md]
    reports:
      junit: ortbench.xml
      codequality: ortbench-quality.json
      metrics: ortbench-metrics.txt"""

_GITLAB_CALL = """\
    - |
      AGAINST=""
      if [ -n "$CI_MERGE_REQUEST_DIFF_BASE_SHA" ]; then
        AGAINST="--ort-against=git:$CI_MERGE_REQUEST_DIFF_BASE_SHA"
      fi
      python -m pytest @@OPTIONS@ $AGAINST \\
        --ort-summary=ortbench-summary.md --junitxml=ortbench.xml \\
        --ort-code-quality=ortbench-quality.json --ort-metrics-report=ortbench-metrics.txt"""
_GITLAB_CALL_WINDOWS = """\
    - |
      $against = @()
      if ($env:CI_MERGE_REQUEST_DIFF_BASE_SHA) {
        $against = @("--ort-against=git:$env:CI_MERGE_REQUEST_DIFF_BASE_SHA")
      }
      python -m pytest "@@OPTIONS@" @against `
        --ort-summary=ortbench-summary.md --junitxml=ortbench.xml `
        --ort-code-quality=ortbench-quality.json --ort-metrics-report=ortbench-metrics.txt"""
#: Shared runners of gitlab.com.
_GITLAB_TAGS = {"windows": "saas-windows-medium-amd64", "macos": "saas-macos-medium-m1"}
_GITLAB_IMAGES = {"windows": "", "macos": "  image: macos-14-xcode-15\n"}

#: What has a meaning in a filter of branches, and is allowed in the name of one.
_FILTER_SIGNS = re.compile(r"^!|\+")

_NAMES = {"windows": "Windows", "macos": "macOS"}


def github_workflow(
    *, branch: str, lfs: bool, results: str, minutes: int, others: bool = True
) -> str:
    """Return a workflow of GitHub Actions.

    Args:
        branch: The branch that changes go to.
        lfs: Whether models lie in Git LFS.
        results: Folder of the run documents.
        minutes: How long a job may take.
        others: Whether it has jobs for Windows and macOS, too.
    """
    values = {
        "BRANCH": _quoted(_FILTER_SIGNS.sub(r"\\\g<0>", branch)),
        "MINUTES": str(minutes),
        "LFS": "true" if lfs else "false",
        "WHETHER": "a" if lfs else "no",
        "FILE": GITHUB_FILE,
        "PACKAGE": _PACKAGE,
        "OPTIONS": OPTIONS,
        "RESULTS": results,
    }
    steps = {key: _filled(_GITHUB_STEPS, values | {"KEY": key}) for key in ("linux", *_NAMES)}
    further = "".join(
        _filled(_GITHUB_OTHER, values | {"KEY": key, "NAME": name, "STEPS": steps[key]})
        for key, name in (_NAMES if others else {}).items()
    )
    return _filled(_GITHUB, values | {"STEPS": steps["linux"], "OTHERS": further})


def gitlab_job(*, results: str, minutes: int, others: bool = True) -> str:
    """Return jobs of GitLab; arguments as of :func:`github_workflow`."""
    values = {
        "MINUTES": str(minutes),
        "PACKAGE": _PACKAGE,
        "RESULTS": results,
    }

    def body(key: str) -> str:
        call = _GITLAB_CALL_WINDOWS if key == "windows" else _GITLAB_CALL
        when = "\n      when: manual" if key in _NAMES else ""
        filled = _filled(call, {"OPTIONS": OPTIONS})
        return _filled(_GITLAB_BODY, values | {"KEY": key, "CALL": filled, "WHEN": when})

    further = "".join(
        _filled(
            _GITLAB_OTHER,
            {
                "KEY": key,
                "NAME": name,
                "TAG": _GITLAB_TAGS[key],
                "IMAGE": _GITLAB_IMAGES[key],
                "BODY": body(key),
            },
        )
        for key, name in (_NAMES if others else {}).items()
    )
    return _filled(_GITLAB, {"BODY": body("linux"), "OTHERS": further})


def ignored(*, results: str, service: str) -> tuple[str, ...]:
    """Return what a run leaves behind and git should not take, a line of ``.gitignore`` each.

    Args:
        results: Folder of the run documents.
        service: A key of what jobs can be written for; empty for none.
    """
    of_gitlab = ("/ortbench-quality.json", "/ortbench-metrics.txt") if service == GITLAB else ()
    return (f"/{results}/", "/ortbench.xml", "/ortbench-summary.md", *of_gitlab)


def _filled(template: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def _quoted(text: str) -> str:
    """A text that YAML takes for a text, whatever it looks like."""
    return json.dumps(text)
