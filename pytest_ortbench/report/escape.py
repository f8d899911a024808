"""Foreign text made inert, one function a medium, and secrets in it masked.

Names of models, machines and dimensions, and messages of native libraries, come from files that
nobody here wrote. HTML is not among these functions: its templates escape everything by themselves.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from pytest_ortbench.core.secrets import masked_text

#: Characters that have a look-alike in ASCII of the same width, so that columns stay aligned.
_LOOK_ALIKES = str.maketrans(
    {
        "µ": "u",
        "μ": "u",
        "×": "x",
        "·": "-",
        "–": "-",
        "—": "-",
        "−": "-",
        "…": "~",
        "→": ">",
        "≤": "<",
        "≥": ">",
        "±": "~",
        "─": "-",
        "’": "'",
    }
)

#: What starts a formula for a spreadsheet (OWASP, CSV Injection), full-width forms included.
_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")

#: Characters that mean something to Markdown, or to HTML inside it, wherever they stand. As
#: entities they are text even in code spans and ``$`` mathematics, which a backslash does not
#: promise; a bar needs the backslash, since tables are split before anything else is read.
_MARKDOWN = {ord(character): f"&#{ord(character)};" for character in "*`\\$~"} | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("|"): "\\|",
    ord("@"): "&#64;",
}

#: The rest means something in its place only, and stays readable elsewhere: underscores at the edge
#: of a word, brackets that could make a link, an image, a footnote or a check box, addresses, and
#: what starts a heading, a list or a rule.
_MARKDOWN_IN_PLACE = re.compile(
    r"""
    (?<![^\W_])_ | _(?![^\W_])     # an underscore that is not between letters or digits
    | \](?=[(\[:])                 # a link or its definition
    | !(?=\[) | \[(?=\^)           # an image, a footnote
    | (?<=:)/(?=/) | (?<=www)\.    # an address
    | ^[-+#=\[:]                   # list, heading, check box, definition
    | ^\d(?=\d{0,8}[.)](?:\s|$))   # a numbered list
    """,
    re.VERBOSE | re.IGNORECASE,
)


def one_line(text: str) -> str:
    """Return ``text`` on one line, with control and invisible formatting characters spelt out.

    White space, line ends included, becomes a single space. Everything that could move the
    cursor, change colours or reorder what a reader sees (escape sequences, bidirectional
    overrides, zero-width characters, lone surrogates) becomes ``\\x1b`` or ``\\u202e``.
    """
    text = masked_text(text)
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return "".join(_spelt(character) for character in " ".join(text.split()))


def shown(text: str) -> str:
    """Return ``text`` with its lines and indents, and control characters spelt out."""
    return "\n".join(lines(text))


def lines(text: str) -> list[str]:
    """Return the lines of a log, each with control characters spelt out and its indent kept."""
    return [
        "".join(_spelt(char) for char in line.expandtabs(4))
        for line in masked_text(text).splitlines()
    ]


def _spelt(character: str) -> str:
    # Cc control, Cf invisible formatting, Cs lone surrogates, Zl and Zp line separators.
    if unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def encodable(text: str, encoding: str) -> str:
    """Return ``text`` so that ``encoding`` can write it: look-alikes first, then escapes.

    An encoding that Python does not know counts as ASCII.
    """
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        pass
    except LookupError:
        encoding = "ascii"
    return "".join(_encodable_character(character, encoding) for character in text)


def _encodable_character(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
        return character
    except UnicodeEncodeError:
        look_alike = character.translate(_LOOK_ALIKES)
        return look_alike.encode(encoding, "backslashreplace").decode(encoding)


def markdown(text: str) -> str:
    """Return ``text`` as one line of plain Markdown text, fit for a table cell.

    What is harmless in its place stays as it is (``mobilenet_v2``, ``[12.3, 12.4]``), so that the
    source can be read and copied, too. Addresses are kept from becoming links.
    """
    inert = one_line(text).translate(_MARKDOWN)
    return _MARKDOWN_IN_PLACE.sub(lambda match: f"&#{ord(match[0])};", inert)


def csv_text(text: str) -> str:
    """Return ``text`` so that a spreadsheet shows it instead of running it as a formula.

    Numbers must not come through here: a quote in front of ``-3.2`` would make it text.
    """
    shown = one_line(text)
    return f"'{shown}" if shown.startswith(_FORMULA_STARTS) else shown


def markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def cut(text: str, longest: int) -> str:
    """Return a text with at most so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
