"""``ortbench compare``: many runs side by side, and what machines cost for a load."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pytest_ortbench.cli.arguments import (
    FiniteRange,
    epilog,
    filter_option,
    load_run,
    output_option,
    results_option,
)
from pytest_ortbench.cli.files import save, writing
from pytest_ortbench.cli.selection import parse_condition, select
from pytest_ortbench.cli.terminal import (
    ExitCode,
    colour,
    columns,
    encoding,
    say,
    tell,
    warn,
    width,
    write,
)
from pytest_ortbench.core.command_line import in_shell
from pytest_ortbench.core.errors import UsageError, why_unreadable
from pytest_ortbench.core.units import counted, parse_duration
from pytest_ortbench.fleet.numbers.facts import called_alike, reduce_run
from pytest_ortbench.fleet.procurement.entrants import called_as_priced
from pytest_ortbench.fleet.procurement.machines import (
    PERCENTS,
    parse_machines,
    refuse_two_percentiles,
)
from pytest_ortbench.fleet.procurement.mix import parse_mix, parse_rate, total_rate
from pytest_ortbench.fleet.report import csv, procurement
from pytest_ortbench.fleet.report.decision import decision
from pytest_ortbench.fleet.report.html import render_comparison_html
from pytest_ortbench.fleet.report.markdown import render_comparison_markdown
from pytest_ortbench.fleet.report.procurement import procure, with_costs
from pytest_ortbench.fleet.report.table import render_comparison_table
from pytest_ortbench.fleet.report.view import build_view
from pytest_ortbench.gate.numbers.same_models import later_names, models_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_ortbench.core.model import Model
    from pytest_ortbench.fleet.numbers.facts import RunFacts
    from pytest_ortbench.fleet.procurement.machines import Terms
    from pytest_ortbench.fleet.report.procurement import Procurement
    from pytest_ortbench.fleet.report.view import ComparisonView
    from pytest_ortbench.report.entries import ShownRun

_Command = TypeVar("_Command", bound="Callable[..., Any]")


class RatePerSecond(FiniteRange):
    """Requests a second: a bare number, or one with ``/s``, ``/min`` or ``/h``."""

    name = "rate"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a rate; anything else is a wrong call."""
        if isinstance(value, str):
            try:
                value = parse_rate(value, "--rate")
            except UsageError as error:
                self.fail(f"{error.message}. {error.hint}", param, ctx)
        return super().convert(value, param, ctx)


#: Formats by the ending of the file.
_ENDINGS = {".pdf": "pdf", ".html": "html", ".htm": "html", ".md": "md", ".csv": "csv"}

#: More documents than this are compared with a tool for tables: ortbench export.
MOST_RUNS = 50

#: The next step where prices are missing.
_LINES = """write two lines for each machine, e.g. for the host desk: [machines.desk] and \
price_per_hour = 0.4"""
_ADD_PRICES = f"Add --machines=machines.toml. In that file, {_LINES}"

#: What machines cost for which load.
_COST_OPTIONS = (
    click.option(
        "--machines",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Table of machines with their prices (TOML): adds what each costs.",
    ),
    click.option(
        "--rate",
        type=RatePerSecond(min=0, min_open=True),
        help="Requests to serve of each workload by itself: 500, 500/s, 30000/min; one is one call "
        "of the case. Needs --machines and a limit: --p90, --p95 or --p99.",
    ),
    click.option(
        "--mix",
        metavar="MODEL:RATE,…",
        help="Several models as one workload instead of --rate: det:40/s,rec:120/s (also /min, /h; "
        "det/b8:40/s where a model has several workloads).",
    ),
    *(
        click.option(
            f"--{name}", metavar="TIME", help=f"Latency that {percent:g} % of them must keep: 50ms."
        )
        for name, percent in PERCENTS.items()
    ),
    click.option(
        "--years",
        type=FiniteRange(min=0, min_open=True),
        help="Years that machines are used; by default as in the table, else 3.",
    ),
    click.option(
        "--spare",
        type=click.IntRange(min=0),
        help="Machines beyond those that are needed, in case one fails; by default as in the "
        "table, else none.",
    ),
)


def cost_options(command: _Command) -> _Command:
    """Give a command the options about what machines cost."""
    for option in reversed(_COST_OPTIONS):
        command = option(command)
    return command


@click.command(
    epilog=epilog(
        "ortbench compare desk=a/run.json rack=b/run.json edge=c/run.json",
        "ortbench compare latest --by=provider --metric=throughput",
        "ortbench compare machines/*/run.json --format=html --output=machines.html",
        "ortbench compare machines/*/run.json --machines=machines.toml --rate=500 --p99=50ms",
        "ortbench compare machines/*/run.json --machines=machines.toml --mix=det:40/s,rec:90/s "
        "--p99=50ms --output=decision.pdf",
    )
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--by",
    "axis",
    type=click.Choice(["machine", "runtime", "provider", "precision", "time"]),
    help="What the columns are; by default what differs between the runs.",
)
@click.option(
    "--metric",
    default="latency_p50",
    show_default=True,
    help="What is compared: latency_p50, throughput, peak_rss, energy_per_inference, …",
)
@click.option(
    "--baseline",
    default="",
    help="Column that ratios refer to; by default that of the first RUN, over time of the oldest.",
)
@filter_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "md", "csv", "html", "pdf"]),
    help="table (for the terminal), md, csv (every cell, SI units), html (a page to look at), pdf "
    "(one printed page about a purchase, with --machines); by default that of --output's ending, "
    "else table.",
)
@click.option(
    "--plots",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the figures as PNG and SVG into this folder.",
)
@cost_options
@click.option(
    "--rows",
    default=40,
    show_default=True,
    help="Number of rows of a table in the terminal; 0: all.",
)
@output_option
@results_option
def command(
    runs: tuple[str, ...],
    axis: str | None,
    metric: str,
    baseline: str,
    filters: tuple[str, ...],
    form: str | None,
    plots: Path | None,
    machines: Path | None,
    rate: float | None,
    mix: str | None,
    p90: str | None,
    p95: str | None,
    p99: str | None,
    years: float | None,
    spare: int | None,
    rows: int,
    output: Path | None,
    results: Path,
) -> int:
    """Compare RUNs, as ratios to the first, over time to the oldest: machines, runtimes, providers,
    or points in time.

    NAME=RUN gives the machine of a run a name where its host name says nothing.

    Only what may be compared is ranked: measured, accuracy passed, not emulated, with the same
    batch size, inputs and I/O mode. A gap inside the intervals is called a tie, a case that a side
    lacks stays without a number.

    With --machines the columns are machines, and the answer says what each costs: per million
    items, and, with --rate and --p99 (or --p95, --p90), how many are needed and their cost over the
    years. With --mix the models that it names are one workload with one bill.
    """
    form = _form(form, output)
    terms = terms_of(machines, rate, mix, p90=p90, p95=p95, p99=p99, years=years, spare=spare)
    if form == "pdf":
        _refuse_pdf(runs, output, terms)
    percentiles = terms is not None or metric in ("latency_p90", "latency_p95", "latency_p99")
    service = terms is not None and terms.limit_s is not None
    facts = load_facts(runs, results, filters, percentiles=percentiles, service=service)
    if not any(run.cases for run in facts):
        warn("ortbench: no case matches --filter" if filters else "ortbench: no run has a case")
        return ExitCode.NOTHING
    costs = None
    if terms is not None:
        facts, terms = called_as_priced(facts, terms)
        costs = procure(facts, terms)
        axis = axis or "machine"
    view = build_view(
        facts,
        axis=axis or "",
        metric=metric,
        baseline=baseline,
        one_is_enough=costs is not None,
    )
    if costs is not None:
        view = with_costs(view, costs, all_columns=form != "table")
    if form == "pdf" and costs is not None and output is not None:
        return _purchase(costs, facts, output)
    text = _render(view, costs, form, rows, to_file=output is not None)
    if output is None:
        styled = form == "table" and colour()
        (say(text.rstrip("\n"), styled=styled) if form == "table" else write(text))
    else:
        save(text, output)
        tell(view.answer)
        say(f"{output}: {counted(len(facts), 'run')}")
    if plots is not None:
        _draw(view, costs, plots)
    return ExitCode.FINE


def _form(form: str | None, output: Path | None) -> str:
    """The format that is asked for: by name, or by the ending of the file.

    Raises:
        UsageError: if the two differ where the file would be taken for something else.
    """
    ending = _ENDINGS.get(output.suffix.lower(), "") if output is not None else ""
    if form is None:
        return ending or "table"
    if output is not None and "pdf" in (form, ending) and ending and form != ending:
        suffix = "txt" if form == "table" else form
        raise UsageError(
            f"this format does not fit the file {str(output)!r}",
            place=f"--format={form}",
            hint=f"For the format {form}, write --output={output.with_suffix(f'.{suffix}')}. For "
            f"{ending}, leave --format out",
        )
    return form


def _refuse_pdf(runs: Sequence[str], output: Path | None, terms: Terms | None) -> None:
    """Refuse a PDF that has no file, or is about no purchase."""
    if terms is None:
        named = runs if len(runs) > 1 else [machine_and_run(runs[0])[1]]  # report names none
        raise UsageError(
            "a PDF of costs needs a table of prices, and none is named",
            place="--format=pdf" if output is None else f"--output={output}",
            hint=f"{_ADD_PRICES}. For a PDF without costs, run 'ortbench report {in_shell(named)} "
            f"--one-page --output={output or 'decision.pdf'}'",
        )
    if output is None:
        raise UsageError(
            "a PDF is written to a file, but no file is named",
            place="--format=pdf",
            hint="Add --output=decision.pdf",
        )


def _purchase(costs: Procurement, facts: Sequence[RunFacts], output: Path) -> int:
    """Write the one printed page about a purchase."""
    from pytest_ortbench.fleet.report.procurement_page import purchase_pdf

    save(purchase_pdf(decision(costs, facts), costs), output)
    tell(costs.answer)
    say(f"page: {output}")
    return ExitCode.FINE


def _draw(view: ComparisonView, costs: Procurement | None, folder: Path) -> None:
    """Write the figures; the comparison has been printed, whatever happens here."""
    from pytest_ortbench.fleet.report.figures import write_comparison_figures

    with writing(folder, option="--plots", what="the figures"):
        written = write_comparison_figures(view, folder, costs)
    for path in written:
        warn(f"plot: {path}")


def terms_of(
    machines: Path | None,
    rate: float | None,
    mix: str | None,
    *,
    years: float | None,
    spare: int | None,
    **limits: str | None,
) -> Terms | None:
    """Return the table of machines, with what the command line says instead of it.

    Args:
        machines: The table.
        rate: Requests a second.
        mix: Models that are one workload.
        years: Years of use.
        spare: Machines beyond those that are needed.
        limits: The latency that each of ``PERCENTS`` must keep; one of them at most.

    Raises:
        UsageError: if the table, or what is beside it, says nothing sensible.
    """
    if machines is None:
        options = {
            "--rate": rate,
            "--mix": mix,
            **{f"--{name}": value for name, value in limits.items()},
            "--years": years,
            "--spare": spare,
        }
        given = [option for option, value in options.items() if value is not None]
        if given:
            raise UsageError(
                "the cost of machines can't be computed without their prices",
                place=", ".join(given),
                hint=_ADD_PRICES,
            )
        return None
    if rate is not None and mix is not None:
        raise UsageError(
            "both options are given, but --mix has the rates already",
            place="--rate, --mix",
            hint="To serve the models of --mix, leave --rate out. To serve each model by itself, "
            "leave --mix out",
        )
    try:
        text = machines.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fault, step = "is not text in UTF-8", "Save the file as UTF-8"
        if isinstance(error, OSError):
            fault, step = why_unreadable(error)
        if isinstance(error, FileNotFoundError):
            step = f"If the path is wrong, correct it. To make the file, {_LINES}"
        raise UsageError(f"{str(machines)!r} {fault}", place="--machines", hint=step) from error
    terms = parse_machines(text, str(machines))
    if mix is not None:
        parts = parse_mix(mix, "--mix")
        terms = dataclasses.replace(terms, mix=parts, rate_per_s=total_rate(parts))
    elif rate is not None:
        terms = dataclasses.replace(terms, mix=(), rate_per_s=rate)
    limits_given = {name: value for name, value in limits.items() if value is not None}
    refuse_two_percentiles([f"--{name}" for name in limits_given], "compare")
    for name, value in limits_given.items():
        limit_s = parse_duration(value, place=f"--{name}")
        terms = dataclasses.replace(terms, limit_s=limit_s, percent=PERCENTS[name])
    terms = dataclasses.replace(
        terms,
        years=terms.years if years is None else years,
        spare=terms.spare if spare is None else spare,
    )
    if (terms.rate_per_s is None) != (terms.limit_s is None):
        if terms.limit_s is None:
            option = "--mix" if mix is not None else "--rate" if rate is not None else machines
            raise UsageError(
                "a rate is given without a limit for the p90, p95 or p99 latency",
                place=str(option),
                hint="Add e.g. --p99=50ms",
            )
        raise UsageError(
            f"a limit for the {terms.percentile} latency is given without a rate of requests",
            place=f"--{next(iter(limits_given))}" if limits_given else str(machines),
            hint="Add e.g. --rate=500/s, or for several models --mix=det:40/s,rec:120/s",
        )
    return terms


def load_facts(
    runs: Sequence[str],
    results: Path,
    filters: Sequence[str] = (),
    *,
    percentiles: bool = False,
    service: bool = False,
    on_run: Callable[[str, ShownRun], None] | None = None,
) -> list[RunFacts]:
    """Read one run after the other and keep what is compared, so that fifty fit into memory.

    Args:
        runs: What the user calls them; a run that is named twice counts once.
        results: Where ids are looked up.
        filters: Conditions on the cases.
        percentiles: Whether p90, p95 and p99 are wanted.
        service: Whether the distribution of durations is wanted.
        on_run: Told what the user calls a run, and what is shown of it.

    Raises:
        UsageError: if one is not found, there are too many, or several names mean one run.
        DocumentError: if one can't be read.
    """
    if len(runs) > MOST_RUNS:
        raise UsageError(
            f"{len(runs)} runs are named, but at most {MOST_RUNS} can be compared",
            place="RUN",
            hint=f"Name at most {MOST_RUNS} runs. For one table of all of them, write 'ortbench "
            "export RUN RUN … --output=rows.csv'",
        )
    conditions = [parse_condition(text) for text in filters]
    facts_of: dict[str, RunFacts] = {}
    models: dict[str, dict[str, Model]] = {}
    for named in runs:
        name, spec = machine_and_run(named)
        run = load_run(spec, results)
        summaries = None
        if conditions or on_run is not None:
            shown = select(run, conditions)
            run, summaries = shown.run, shown.summaries
            if on_run is not None:
                on_run(named, shown)
        if run.run_id in facts_of:
            warn(f"note: {run.run_id} was given twice and counts once")
            continue
        models[run.run_id] = models_of(run)
        facts = reduce_run(run, summaries, percentiles=percentiles, service=service)
        facts_of[run.run_id] = dataclasses.replace(facts, host=name) if name else facts
    if len(facts_of) == 1 < len(runs):
        raise UsageError(
            f"the {len(runs)} arguments name the same run, {next(iter(facts_of))}",
            place="RUN",
            hint="Name a second run. To compare the cases of this run with each other, run e.g. "
            f"'ortbench compare {in_shell(runs[:1])} --by=provider'",
        )
    newest = models[max(facts_of.values(), key=lambda facts: facts.started_at).run_id]
    return [
        called_alike(facts, later_names(models[run_id], newest))
        for run_id, facts in facts_of.items()
    ]


def machine_and_run(text: str) -> tuple[str, str]:
    """Split ``lab-1=run.json``: host names of containers and rented machines say nothing."""
    name, equals, spec = text.partition("=")
    if not equals or not name or not spec or Path(text).exists():
        return "", text
    return name, spec


def _render(
    view: ComparisonView, costs: Procurement | None, form: str, rows: int, *, to_file: bool
) -> str:
    if form == "csv":
        return (
            csv.render_comparison_csv(view)
            if costs is None
            else procurement.render_procurement_csv(costs)
        )
    if form == "html":
        from pytest_ortbench.fleet.report.figures import pictures

        return render_comparison_html(view, pictures=pictures(view, costs))
    if form == "md":
        return render_comparison_markdown(view)

    return render_comparison_table(
        view,
        width=width(),
        wrap=columns() is not None and not to_file,
        color=colour() and not to_file,
        encoding="utf-8" if to_file else encoding(),
        rows=rows,
    )
