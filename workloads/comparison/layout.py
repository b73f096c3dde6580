"""A page from its sentences, tables and plots: self-contained HTML, and Markdown. The same bytes at each build."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from workloads.comparison.drawing import Plot
from workloads.comparison.sections import Table

_TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True, kw_only=True)
class Page:
    """All that the templates ask for."""

    title: str
    headline: str
    others: tuple[str, ...]
    standing: str
    facts: str
    notices: tuple[str, ...]
    reasons: tuple[tuple[str, str, tuple[str, ...]], ...]
    """Arm, outcome and the verdict's reasons."""
    arms: Table
    tables: tuple[Table, ...]
    method: tuple[str, ...]


def html_of(page: Page, plots: Sequence[Plot]) -> str:
    """The page, style and plots inside."""
    style = Markup((_TEMPLATES / "report.css").read_text())
    template = _environment(autoescape=True).get_template("report.html.jinja")
    return template.render(report=page, style=style, plots=plots)


def markdown_of(page: Page) -> str:
    """The same sentences and tables, without the plots."""
    return _environment(autoescape=False).get_template("report.md.jinja").render(report=page)


def _environment(*, autoescape: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["svg"] = Markup
    environment.filters["code"] = _with_code
    environment.filters["together"] = _with_whole_intervals
    environment.filters["cell"] = _markdown_cell
    return environment


def _with_code(text: str) -> Markup:
    """Escaped text in which what stands between backticks is code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def _with_whole_intervals(text: str) -> Markup:
    """Escaped text in which no line breaks inside of `[95% CI ...]`."""
    return Markup(re.sub(r"\[[^\]]*\]", r'<span class="together">\g<0></span>', str(escape(text))))


def _markdown_cell(text: str) -> str:
    """Text that can't end its cell, its table or open a tag."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
