"""A load made of what production reported: ``from:FILE`` becomes ``server:RATE:LATENCY``."""

from __future__ import annotations

import hashlib
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from pathlib import Path

import msgspec

from pytest_ortbench.core.errors import UsageError, first_line, says, why_unreadable
from pytest_ortbench.core.extras import refuse_without
from pytest_ortbench.core.home_folder import in_home
from pytest_ortbench.core.option_text import exists
from pytest_ortbench.core.units import significant
from pytest_ortbench.passes.load.facts import TOKEN_LIMITS, LoadOrigin
from pytest_ortbench.passes.load.numbers.counters import (
    CounterSeries,
    NamedMetrics,
    bucket_names,
)
from pytest_ortbench.passes.load.numbers.reported import ReportedRequests, latency_bound, reported
from pytest_ortbench.passes.load.numbers.spec import (
    FASTEST_PER_S,
    origin_text,
    parse_load,
    read_latency,
    read_percentile,
)

#: What such a load begins with.
FROM = "from:"
_FILE = "metrics.txt"
#: What may stand behind the file, by the name of its field.
_SETTINGS = {
    "model": "model",
    "metric": "metric",
    "latency": "latency limit",
    "percent": "percentile",
}
#: A scrape of thousands of series has a megabyte.
_MOST_BYTES = 32 << 20
#: When a service of ours was scraped.
_SCRAPE_TIME = "ortbench_serve_time_seconds"
#: The percentile of a limit where nobody says another one.
_PERCENT = "p99"
#: What the name of a load may hold of the name of a file.
_UNNAMED = re.compile(r"[^A-Za-z0-9._+-]")
_LONGEST_NAME = 60
#: The drive of a path of Windows.
_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/])")
#: What a line of Prometheus' text format begins with.
_NAMES = re.compile(r"^[ \t]*([A-Za-z_:][\w:]*)", re.MULTILINE)
#: A query whose answer can be read, and what to save of an answer.
_RATE_QUERY = "sum(rate(http_requests_total[1h]))"
_SAVE_ANSWER = 'Save the whole answer to /api/v1/query, which begins with {"status":'
#: An address in place of a file, up to a colon behind its path.
_ADDRESS = re.compile(r"https?:(?:[^/:]|//[^/]*/?)[^:]*", re.IGNORECASE)


def resolved_load(text: str, *, base: Path, place: str) -> str:
    """Return a load as it is written, one that names a file as what the file says.

    Args:
        text: As written.
        base: Folder that relative paths start at.
        place: Where it is written, for messages.

    Raises:
        UsageError: where the file can't be read, or doesn't tell what a load takes.
    """
    if "@" in text and not text.startswith(FROM):
        raise UsageError(
            f"{text!r} has an @, which is no part of a load",
            place=place,
            hint="Leave out the @ and what follows. To make a load from a file of metrics, write "
            f"e.g. {FROM}{_FILE}",
        )
    if not text.startswith(FROM):
        return text
    asked = _asked(text, place)
    paths = _paths(asked.file, base, text, place)
    contents = [_content(path, place) for path in paths]
    where = f"{place}: {' and '.join(map(str, paths))}"
    is_answer = len(contents) == 1 and contents[0].lstrip()[:1] in (b"{", b"[")
    if is_answer:
        series = _of_answer(contents[0], where)
    else:
        scrapes = [_of_text(content, where) for content in contents]
        if len(scrapes) > 1:
            _refuse_other_order(scrapes, asked.file, text, where)
            _refuse_other_buckets(scrapes, paths, asked.metric, place)
        series = _joined(scrapes, where)
    file = NamedMetrics(where, asked.without_limit, bool(asked.latency))
    found = reported(series, model=asked.model, metric=asked.metric, file=file)
    if found.rate_per_s > FASTEST_PER_S:
        raise UsageError(
            f"the file has a rate of {significant(found.rate_per_s, 4)} requests a second, but a "
            f"load has at most {FASTEST_PER_S:.0f}",
            place=where,
            hint=f"Query the rate of a counter of requests, e.g. {_RATE_QUERY}"
            if is_answer
            else "Check that the counter counts requests",
        )
    return _written(found, asked, paths, contents, file)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is written behind ``from:``."""

    file: str
    model: str
    metric: str
    latency: str
    percent: str

    @property
    def without_limit(self) -> str:
        """The load as it was written, but for a limit."""
        named = {"model": self.model, "metric": self.metric}
        return f"{FROM}{self.file}" + "".join(f":{x}={named[x]}" for x in named if named[x])


def _asked(text: str, place: str) -> _Asked:
    written = text.removeprefix(FROM).strip()
    drive = _DRIVE.match(written)
    start = drive[0] if drive else ""
    file, *parts = (part.strip() for part in written.removeprefix(start).split(":"))
    file = start + file
    if not file:
        raise UsageError(f"{text!r} names no file", place=place, hint=_form(_FILE))
    address = _ADDRESS.match(text.removeprefix(FROM).strip())
    if address is not None:
        raise UsageError(
            f"{text!r} has an address, but metrics are read from files only",
            place=place,
            hint=f"Save the metrics, e.g. 'curl -o {_FILE} {address[0]}', and write "
            f"{FROM}{_FILE}{address.string[address.end() :]}",
        )
    settings = dict.fromkeys(_SETTINGS, "")
    for part in parts:
        name, is_named, value = part.partition("=")
        if not is_named:
            name, value = "percent" if part[:1] in ("p", "P") else "latency", part
        if settings.get(name):
            raise UsageError(
                f"{part!r} in {text!r} is a second {_SETTINGS[name]}",
                place=place,
                hint=f"Keep one of them, e.g. {_without(text, part)}",
            )
        if not part:
            raise UsageError(
                f"{text!r} has nothing behind one of its colons",
                place=place,
                hint=f"Write {FROM}{':'.join(filter(None, (file, *parts)))}",
            )
        if name.strip().lower() in TOKEN_LIMITS:
            raise UsageError(
                f"{text!r} has {part!r}, but a load from a file has no limits on tokens",
                place=place,
                hint="Write the number of requests a second yourself, e.g. "
                f"server:2:{part if value else f'{part}2s'}",
            )
        if name not in settings:
            raise UsageError(
                f"{part!r} in {text!r} has no meaning there", place=place, hint=_form(file)
            )
        if not value:
            raise UsageError(
                f"{part!r} in {text!r} has no value",
                place=place,
                hint=f"Write the name of the {_SETTINGS[name]} behind the ="
                if name in ("model", "metric")
                else f"Write the {_SETTINGS[name]} without a name, e.g. "
                f"{_without(text, part)}:{_PERCENT if name == 'percent' else '50ms'}",
            )
        settings[name] = value
    if settings["percent"]:
        read_percentile(settings["percent"], text, place)
    if settings["latency"]:
        read_latency(settings["latency"], text, place)
    return _Asked(file=file, **settings)


def _form(file: str) -> str:
    """Return how a load is written that is made from a file."""
    return (
        f"Write e.g. {FROM}{file}, or {FROM}{file}:50ms:p99 with a latency limit of your own. If "
        "the file has several models or metrics, add :model=NAME or :metric=NAME"
    )


def _without(text: str, part: str) -> str:
    """Return a load without the last of its parts that is so written."""
    before, _, after = text.rpartition(part)
    return before.rstrip(" :") + after


def _paths(file: str, base: Path, text: str, place: str) -> list[Path]:
    """Return the file, or the two that a plus joins."""
    paths = [base / in_home(file)]
    if not exists(paths[0]) and file.count("+") == 1 and not file.startswith("+"):
        paths = [base / in_home(part) for part in file.split("+")]
    for path in paths:
        if "\0" not in file and path.is_dir():
            raise UsageError(
                f"{str(path)!r} of {text!r} is a folder",
                place=place,
                hint=f"Name a file of metrics, e.g. {FROM}"
                f"{f'{file}/' if len(paths) == 1 else ''}{_FILE}",
            )
        if "\0" in file or not path.is_file():
            raise UsageError(
                f"the file {str(path)!r} of {text!r} does not exist",
                place=place,
                hint="Correct the path. It can't contain a colon or a comma",
            )
    return paths


def _content(path: Path, place: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        what, hint = why_unreadable(error)
        raise UsageError(f"{str(path)!r} {what}", place=place, hint=hint) from None
    if len(content) > _MOST_BYTES:
        raise UsageError(
            f"{str(path)!r} has more than {_MOST_BYTES >> 20} MiB, the most that is read",
            place=place,
            hint="Save one metric for a short time only: Prometheus' answer to the query "
            "NAME_count[1h], where NAME is your metric",
        )
    return content


def _of_text(content: bytes, place: str) -> list[CounterSeries]:
    """Read Prometheus' text format; each counter has one point."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise UsageError(
            "the file is in UTF-16, but metrics are in UTF-8",
            place=place,
            hint="In PowerShell, save them without >, e.g. with "
            f"'curl.exe -o {_FILE} ADDRESS', where ADDRESS is that of the metrics",
        )
    refuse_without("prometheus_client", "prometheus", place=place)
    from prometheus_client.parser import text_string_to_metric_families

    try:
        text = content.decode("utf-8")
        families = list(text_string_to_metric_families(text))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unreadable(error, "prometheus_client", place) from None
    written = set(_NAMES.findall(text))
    samples = [
        # The parser adds the ending to a counter that is declared without it, as Triton's are.
        sample if sample.name in written else sample._replace(name=family.name)
        for family in families
        for sample in family.samples
    ]
    scraped_s = next((sample.value for sample in samples if sample.name == _SCRAPE_TIME), None)
    return [
        CounterSeries(
            sample.name,
            sample.labels,
            ((scraped_s if sample.timestamp is None else float(sample.timestamp), sample.value),),
        )
        for sample in samples
    ]


def _joined(scrapes: Sequence[Sequence[CounterSeries]], place: str) -> list[CounterSeries]:
    """Join the points of the same counter of several scrapes, in the order of these."""

    def key(entry: CounterSeries) -> tuple[str, list[tuple[str, str]]]:
        return entry.name, sorted(entry.labels.items())

    joined = []
    for _, same in groupby(sorted((s for scrape in scrapes for s in scrape), key=key), key=key):
        entries = list(same)
        if len(entries) > len(scrapes):
            raise UsageError(
                f"{'the file' if len(scrapes) == 1 else 'one of the files'} has "
                f"{entries[0].name[:40]!r} more than once with the same labels",
                place=place,
                hint="Save one answer of /metrics in each file",
            )
        points = tuple(point for entry in entries for point in entry.points)
        joined.append(CounterSeries(entries[0].name, entries[0].labels, points))
    return joined


def _refuse_other_order(
    scrapes: Sequence[Sequence[CounterSeries]], file: str, text: str, place: str
) -> None:
    """Refuse two scrapes of which the second is not the later one.

    Raises:
        UsageError: with the load as it is written with both in their order.
    """
    before, after = (
        max((time_s for entry in scrape for time_s, _ in entry.points if time_s), default=None)
        for scrape in scrapes
    )
    if before is None or after is None or before < after:
        return
    if before == after:
        raise UsageError(
            "both files have the metrics of the same time",
            place=place,
            hint="Save the metrics twice, some minutes apart",
        )
    first, _, second = file.partition("+")
    raise UsageError(
        "the second of the two files is the earlier one",
        place=place,
        hint=f"Write the earlier one first: {text.replace(file, f'{second}+{first}', 1)}",
    )


def _refuse_other_buckets(
    scrapes: Sequence[Sequence[CounterSeries]], paths: Sequence[Path], metric: str, place: str
) -> None:
    """Refuse two scrapes between which nothing can be counted by the times of requests.

    Raises:
        UsageError: if a histogram of both has other buckets in the one than in the other.
    """
    before, after = (_bounds(scrape, bucket_names(metric)) for scrape in scrapes)
    for counted in before.keys() & after.keys():
        if before[counted] != after[counted]:
            name = counted[0].removesuffix("_bucket")[:_LONGEST_NAME]
            raise UsageError(
                f"the histograms {name} of {str(paths[0])!r} and {str(paths[1])!r} have different "
                "buckets",
                place=place,
                hint="Save both files again, and don't restart or update the service in between",
            )


def _bounds(
    scrape: Sequence[CounterSeries], names: frozenset[str]
) -> dict[tuple[str, frozenset[tuple[str, str]]], set[str]]:
    """Return the bounds of buckets, by their name and by the labels that tell who counts what."""
    bounds: dict[tuple[str, frozenset[tuple[str, str]]], set[str]] = {}
    for entry in scrape:
        if entry.name in names:
            owner = frozenset(label for label in entry.labels.items() if label[0] != "le")
            bounds.setdefault((entry.name, owner), set()).add(entry.labels.get("le", ""))
    return bounds


class _Entry(msgspec.Struct):
    """One series of an answer."""

    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, rename="camel", frozen=True):
    """What a query found."""

    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct):
    """What ``/api/v1/query`` answers."""

    status: str
    data: _Data = _Data()
    error: str = ""


class _Foreign(msgspec.Struct):
    """Any object, with what every answer has."""

    status: msgspec.Raw = msgspec.Raw()


def _of_answer(content: bytes, place: str) -> list[CounterSeries]:
    """Read what Prometheus answered to a query."""
    if content.lstrip()[:1] == b"[":
        raise UsageError(
            "the file is a JSON list, which is at most a part of an answer of Prometheus",
            place=place,
            hint=_SAVE_ANSWER,
        )
    try:
        answer = msgspec.json.decode(content, type=_Answer)
        if answer.status != "success":
            raise UsageError(
                f"the file says that Prometheus could not answer the query: {answer.error[:200]!r}",
                place=place,
                hint="Correct the query, and save its answer again",
            )
        if answer.data.result_type == "scalar":
            scalar = msgspec.json.decode(answer.data.result, type=tuple[float, str])
            return [CounterSeries("", {}, _points([scalar]))]
        if answer.data.result_type == "string":
            raise UsageError(
                "the query in the file gave a text, but a rate is a number",
                place=place,
                hint=f"Save the answer to a query of a rate, e.g. {_RATE_QUERY}",
            )
        entries = msgspec.json.decode(answer.data.result, type=list[_Entry])
        return [_series(entry) for entry in entries]
    except (msgspec.MsgspecError, ValueError) as error:
        if _is_other_json(content):
            raise UsageError(
                "the file is JSON, but no answer of Prometheus: it has no 'status'",
                place=place,
                hint="Save the metrics in Prometheus' text format, or save Prometheus' answer to "
                "/api/v1/query",
            ) from None
        owner = "msgspec" if isinstance(error, msgspec.MsgspecError) else "Python"
        raise _unreadable(error, owner, place) from None


def _is_other_json(content: bytes) -> bool:
    """Whether a content is an object of JSON without what every answer of Prometheus has."""
    with suppress(msgspec.MsgspecError):
        return not bytes(msgspec.json.decode(content, type=_Foreign).status)
    return False


def _series(entry: _Entry) -> CounterSeries:
    labels = {name: value for name, value in entry.metric.items() if name != "__name__"}
    points = entry.values if entry.value is None else [entry.value]
    return CounterSeries(entry.metric.get("__name__", ""), labels, _points(points))


def _points(points: Iterable[tuple[float, str]]) -> tuple[tuple[float, float], ...]:
    return tuple((time_s, float(value)) for time_s, value in points)


def _unreadable(error: BaseException, owner: str, place: str) -> UsageError:
    why = says(owner, first_line(error), 200)
    if isinstance(error, UnicodeDecodeError):
        why = f"its byte {error.start} is 0x{error.object[error.start]:02x}, so it is no text"
    return UsageError(
        "the file contains neither metrics in Prometheus' text format nor the JSON answer to a "
        f"query ({why})",
        place=place,
        hint="Save what the service gives at /metrics, or what Prometheus gives at /api/v1/query",
    )


def _written(
    found: ReportedRequests,
    asked: _Asked,
    paths: Sequence[Path],
    contents: Sequence[bytes],
    file: NamedMetrics,
) -> str:
    """Return the load that all of this comes to, with its origin."""
    percent = (asked.percent or _PERCENT).lower()
    latency = asked.latency
    rate = significant(found.rate_per_s, 4)
    spec = parse_load(f"server:{rate}:{latency or '1s'}:{percent}", place=file.place)
    if not latency:
        bound_s = Decimal(repr(latency_bound(found, spec.percent, file=file)))
        latency = f"{format((bound_s * 1000).normalize(), 'f')}ms"
    digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in contents))
    origin = LoadOrigin(
        file=_UNNAMED.sub("_", "+".join(path.name for path in paths))[-_LONGEST_NAME:],
        digest=(digest if len(contents) > 1 else hashlib.sha256(contents[0])).hexdigest()[:16],
        gives_limit=not asked.latency,
    )
    return f"server:{rate}:{latency}:{percent}{origin_text(origin)}"
