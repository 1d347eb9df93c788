"""What the doctor found, as a table for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rag.doctor.findings import Finding, Status

_STYLE = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


def worst(findings: Sequence[Finding]) -> Status:
    """``fail`` when anything fails, else ``warn`` when anything is to be known."""
    order = list(Status)
    return max((finding.status for finding in findings), key=order.index, default=Status.OK)


def show(console: Console, findings: Sequence[Finding]) -> None:
    """One row a finding; what to do stands under what was found."""
    table = Table("", "part", "", "found", box=None, pad_edge=False)
    for one in findings:
        found = escape(one.found) + (f"\n[dim]{escape(one.advice)}[/]" if one.advice else "")
        style = _STYLE[one.status]
        table.add_row(f"[{style}]{one.status}[/]", escape(one.part), escape(one.what), found)
    console.print(table)


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """``{"status", "findings": [{"part", "what", "status", "found", "advice"}]}``."""
    return {
        "status": worst(findings).value,
        "findings": [
            {
                "part": one.part,
                "what": one.what,
                "status": one.status.value,
                "found": one.found,
                "advice": one.advice or None,
            }
            for one in findings
        ],
    }
