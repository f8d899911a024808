"""``ortbench comment``: the summary of a run as the one comment of ours on a pull request."""

from __future__ import annotations

import json
import os
import re
import shlex
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pytest_ortbench.cli.arguments import epilog
from pytest_ortbench.cli.terminal import ExitCode, say, warn
from pytest_ortbench.core.errors import UsageError

#: GitHub takes so many characters.
_LONGEST = 65_536
_TIMEOUT_S = 60

#: Only a comment of the same author is ours, whatever others write.
_COMMENTS = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      comments(first: 100, after: $after) {
        nodes { databaseId body viewerDidAuthor }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullRequest:
    """A pull request, and how its host is asked.

    Attributes:
        repository: ``owner/name``.
        number: Its number.
        token: What the host knows us by.
        api: Address of the host's REST interface.
        graphql: Address of its other one.
        run_url: Where the log of this run is; empty if unknown.
    """

    repository: str
    number: int
    token: str
    api: str
    graphql: str
    run_url: str


@click.command(
    epilog=epilog(
        "ortbench comment summary.md",
        "ortbench comment summary.md --key=linux",
    )
)
@click.argument("summary", type=click.Path(path_type=Path))
@click.option("--key", default="", help="Tells several comments on one pull request apart.")
def command(summary: Path, key: str) -> int:
    """Write SUMMARY, which pytest wrote with --ort-summary, as a comment on the pull request.

    It runs in a job of GitHub Actions on pull_request, with the job's token as GITHUB_TOKEN. The
    comment that an earlier run wrote is updated. Where it can't be written, a warning says so, and
    the summary of the job has the same text. On any other event nothing is done.
    """
    marker = first_line_of(key)
    request = _pull_request(os.environ, summary)
    if request is None:
        say("no pull request: nothing to comment on")
        return ExitCode.FINE
    try:
        say(_write(request, marker, body_of(summary, marker, request.run_url)))
    except urllib.error.HTTPError as error:
        warn(
            f"::warning title=ortbench::the comment was not written: {error.code} "
            f"{error.reason}. The job needs the permission pull-requests: write, which pull "
            "requests of forks do not have; the summary of the job has the same text"
        )
    except (OSError, ValueError) as error:
        warn(f"::warning title=ortbench::the comment was not written: {error}")
    return ExitCode.FINE


def first_line_of(key: str) -> str:
    """Return the first line of the comment.

    Raises:
        UsageError: for a key that could end the marker.
    """
    if not re.fullmatch(r"[A-Za-z0-9-]*", key):
        raise UsageError(
            f"{key!r} can't be a key: a key has only the letters a to z and A to Z, digits and '-'",
            place="--key",
            hint=f"Write e.g. --key={'-'.join(re.findall('[A-Za-z0-9]+', key)) or 'linux'}",
        )
    return f"<!-- pytest-ortbench {key} -->" if key else "<!-- pytest-ortbench -->"


def body_of(summary: Path, marker: str, run_url: str) -> str:
    """Return the comment: the summary under the marker, and where its files are."""
    end = f"\n[Log and files of this run]({run_url})\n" if run_url else ""
    text = summary.read_text(encoding="utf-8") if summary.is_file() else ""
    _, _, rest = text.partition("\n")
    if not rest.strip():
        rest = "## ❌ ONNX models: pytest ended before the run began\n"
    return f"{marker}\n{rest}"[: _LONGEST - len(end)] + end


def _pull_request(environment: Mapping[str, str], summary: Path) -> PullRequest | None:
    """The pull request that the job is about; ``None`` if it is about none.

    Args:
        environment: What GitHub tells a job.
        summary: The file to post.

    Raises:
        UsageError: outside of GitHub Actions, or without a token.
    """
    event = Path(environment.get("GITHUB_EVENT_PATH", ""))
    file = shlex.quote(str(summary))
    if not environment.get("GITHUB_REPOSITORY") or not event.is_file():
        raise UsageError(
            "this command works only in a job of GitHub Actions",
            place="comment",
            hint="Elsewhere, post the file with another program: on GitHub with 'gh pr comment "
            f"NUMBER --body-file {file}', where NUMBER is that of the pull request, on GitLab with "
            f"""'glab mr note --message "$(cat {file})"'""",
        )
    number = _number_in(event)
    if number is None:
        return None
    token = environment.get("GITHUB_TOKEN", "")
    if not token:
        raise UsageError(
            "the environment variable GITHUB_TOKEN is not set",
            place="comment",
            hint="In the workflow, add this line to the step that runs 'ortbench comment': "
            'env: {GITHUB_TOKEN: "${{ github.token }}"}',
        )
    repository = environment["GITHUB_REPOSITORY"]
    api = environment.get("GITHUB_API_URL", "https://api.github.com")
    server, run_id = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_RUN_ID")
    return PullRequest(
        repository=repository,
        number=number,
        token=token,
        api=api,
        graphql=environment.get("GITHUB_GRAPHQL_URL", f"{api}/graphql"),
        run_url=f"{server}/{repository}/actions/runs/{run_id}" if server and run_id else "",
    )


def _number_in(event: Path) -> int | None:
    """The number of the pull request in what GitHub tells a job of its event."""
    try:
        told = json.loads(event.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    request = told.get("pull_request") if isinstance(told, dict) else None
    number = request.get("number") if isinstance(request, dict) else None
    return number if isinstance(number, int) else None


def _write(request: PullRequest, marker: str, body: str) -> str:
    """Update our comment, or make it; return what was done.

    Raises:
        OSError: if the host does not answer, or refuses.
    """
    issues = f"{request.api}/repos/{request.repository}/issues"
    known = _earlier(request, marker)
    if known is None:
        _ask(request, f"{issues}/{request.number}/comments", {"body": body})
        return f"comment: written on pull request {request.number}"
    _ask(request, f"{issues}/comments/{known}", {"body": body}, method="PATCH")
    return f"comment: updated on pull request {request.number}"


def _earlier(request: PullRequest, marker: str) -> int | None:
    owner, _, name = request.repository.partition("/")
    after = None
    while True:
        variables = {"owner": owner, "name": name, "number": request.number, "after": after}
        answer = _ask(request, request.graphql, {"query": _COMMENTS, "variables": variables})
        try:
            comments = answer["data"]["repository"]["pullRequest"]["comments"]
            for comment in comments["nodes"]:
                if comment["viewerDidAuthor"] and comment["body"].startswith(marker):
                    return int(comment["databaseId"])
            page = comments["pageInfo"]
            after = page["endCursor"] if page["hasNextPage"] else None
        except (KeyError, TypeError) as error:
            raise OSError("the answer of the host contains no list of comments") from error
        if after is None:
            return None


def _ask(
    request: PullRequest, url: str, data: Mapping[str, object], method: str = "POST"
) -> dict[str, Any]:
    question = urllib.request.Request(
        url,
        data=json.dumps(data).encode(),
        method=method,
        headers={
            "Authorization": f"Bearer {request.token}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
            "User-Agent": "pytest-ortbench",
        },
    )
    with urllib.request.urlopen(question, timeout=_TIMEOUT_S) as answer:
        told = json.load(answer)
    return told if isinstance(told, dict) else {}
