"""Each graph is wired as its drawing says; a change of shape is a change of the drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag.graphs import compile_graphs, compile_retrievers

DRAWINGS = Path(__file__).parent / "drawings"


def all_graphs() -> dict[str, Any]:
    graphs = {f"answer-{name}": graph for name, graph in compile_graphs().items()}
    return graphs | {f"retriever-{name}": graph for name, graph in compile_retrievers().items()}


GRAPHS = sorted(path.stem for path in DRAWINGS.glob("*.txt"))


def edges(graph: Any) -> str:
    """The wiring, one edge a line, sorted: ``from -> to``, ``..>`` where it is conditional."""
    drawn = graph.get_graph()
    lines = [f"{e.source} {'..>' if e.conditional else '-->'} {e.target}" for e in drawn.edges]
    return "\n".join(sorted(lines)) + "\n"


def test_every_graph_is_drawn() -> None:
    """No graph is without its drawing, no drawing without its graph."""
    assert sorted(all_graphs()) == GRAPHS


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_is_as_drawn(name: str) -> None:
    """Nodes and edges are those of the drawing."""
    assert edges(all_graphs()[name]) == (DRAWINGS / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_keeps_nothing(name: str) -> None:
    """Graphs see raw text: they are compiled without checkpointer, store or cache (I6)."""
    graph = all_graphs()[name]
    assert (graph.checkpointer, graph.store, graph.cache) == (None, None, None)
