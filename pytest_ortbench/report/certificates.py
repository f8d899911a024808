"""Certificates of self-checks as lines: in full, and in short below the table of a run."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ortbench.core.certificate import LINE_VERDICTS, Amount, Certificate, CheckLine
from pytest_ortbench.core.run import Run
from pytest_ortbench.core.units import format_amount
from pytest_ortbench.report.escape import encodable, one_line

#: Digits of a number of a line: a ratio of 1.002 is not 1.00.
_DIGITS = 4


def certificate_title(provider: str, runtime: str, version: str, *, short: bool) -> str:
    """Return what a certificate is about: ``self-check of cpu in current, ONNX Runtime 1.32.0``.

    Args:
        provider: Label of the provider.
        runtime: Label of the runtime.
        version: Version of ONNX Runtime.
        short: Whether it is the short form.
    """
    form = ", short form" if short else ""
    return one_line(f"self-check of {provider} in {runtime}, ONNX Runtime {version}{form}")


def counts(certificate: Certificate) -> str:
    """Return how many lines came to what: ``9 pass, 1 fail, 4 can't be checked``."""
    told = (
        (certificate.count(verdict), words)
        for verdict, words in LINE_VERDICTS.items()
        if certificate.count(verdict)
    )
    return ", ".join(f"{count} {words}" for count, words in told) or "nothing was checked"


def line_text(line: CheckLine) -> str:
    """Return why a line came to its verdict, with all that it rests on."""
    held = [*map(_amount, line.amounts), *(f"{name} {word}" for name, word in line.words.items())]
    return one_line(f"{line.reason}: {', '.join(held)}" if held else line.reason)


def verdict_words(line: CheckLine) -> str:
    """Return the verdict of a line for people."""
    return LINE_VERDICTS[line.verdict]


def check_line(line: CheckLine, width: int) -> str:
    """Return a line with its name in a column of so many characters."""
    verdicts = max(map(len, LINE_VERDICTS.values()))
    name = one_line(line.check)
    return f"  {name:<{width}}  {verdict_words(line):<{verdicts}}  {line_text(line)}"


def _title(certificate: Certificate) -> str:
    return certificate_title(
        certificate.provider,
        certificate.runtime,
        certificate.runtime_version,
        short=certificate.short,
    )


def run_lines(run: Run, *, encoding: str = "utf-8") -> list[str]:
    """Return the certificates that speak for a run, each in one line and one for what failed."""
    lines = [text for certificate in run.certificates for text in _in_short(certificate)]
    return [encodable(text, encoding) for text in (["", *lines] if lines else [])]


def page_facts(run: Run) -> dict[str, dict[str, str]]:
    """Return the certificates of a run as facts under headings, for its page."""
    return {
        f"Self-check of {certificate.provider} in {certificate.runtime}": {
            "result": f"{counts(certificate)}{' (short form)' if certificate.short else ''}",
            "made": certificate.made_at,
            **{
                line.check: f"{verdict_words(line)}: {line_text(line)}"
                for line in certificate.lines
            },
        }
        for certificate in run.certificates
    }


def _in_short(certificate: Certificate) -> Iterator[str]:
    made = certificate.made_at[:10]
    yield one_line(f"{_title(certificate)}, {made}: {counts(certificate)}")
    for line in certificate.lines:
        if line.verdict == "fail":
            yield f"  {one_line(line.check)}  fail  {line_text(line)}"


def _amount(amount: Amount) -> str:
    if amount.unit == "1" and amount.low is None and amount.value.is_integer():
        return f"{amount.name} {amount.value:.0f}"
    value = format_amount(amount.value, amount.unit, _DIGITS)
    if amount.low is None or amount.high is None:
        return f"{amount.name} {value}"
    ends = (format_amount(end, amount.unit, _DIGITS) for end in (amount.low, amount.high))
    return f"{amount.name} {value} [{', '.join(ends)}]"
