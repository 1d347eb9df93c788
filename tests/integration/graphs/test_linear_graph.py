"""The linear graph over the ports' fakes: what is asked, what leaves, what comes back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rag.engine import Engine
from rag.errors import (
    BoundaryRefused,
    DetectorFailed,
    InvalidInput,
    ModelFailed,
    NotAllowed,
    NotFound,
    TooLarge,
    UnknownName,
)
from rag.graphs import compile_graphs, compile_retrievers
from rag.privacy.forms import FormHasher
from rag.privacy.policy import load_policy
from rag.settings import Settings
from rag.testing.fakes import (
    BagEmbedder,
    FixedScorer,
    MemoryStore,
    NameDetector,
    ScriptedChat,
)
from rag.types import Score

GRAPHS, RETRIEVERS = compile_graphs(), compile_retrievers()
NAMES = ("Jorun Halland", "Amadi Okoro", "Halland", "Okoro")


def settings(**changes: Any) -> Settings:
    return Settings(_env_file=None, **changes)


def engine(chat: ScriptedChat | None = None, **changes: Any) -> Engine:
    """An engine of fakes; the graphs, the scope and the guard are the real ones."""
    parts: dict[str, Any] = {
        "settings": settings(),
        "store": MemoryStore(),
        "detector": NameDetector(NAMES),
        "embedder": BagEmbedder(),
        "chat": chat,
        "scorer": FixedScorer(faithfulness=Score(1.0)),
        "policy": load_policy("default"),
        "hasher": FormHasher(b"k" * 32),
        "graphs": GRAPHS,
        "retrievers": RETRIEVERS,
    }
    return Engine(**(parts | changes))


async def filled(chat: ScriptedChat | None = None, **changes: Any) -> Engine:
    made = engine(chat, **changes)
    await made.ingest_text("The keys of flat 4 are with Jorun Halland.", "keys.txt", {})
    await made.ingest_text("Amadi Okoro repairs the lift on Mondays.", "lift.txt", {})
    return made


def said(result: Any) -> str:
    """All that left, or would have left."""
    return "\n".join(message.content for prompt in result.outbound for message in prompt)


class Echo(ScriptedChat):
    """Gives no rewrites, then the prompt's own passages back."""

    async def complete(self, messages: Sequence[Any], guard: Any) -> Any:
        completion = await super().complete(messages, guard)
        passages = re.search(r"Context:\n(.*)\n\nQuestion:", messages[-1].content, re.DOTALL)
        return replace(completion, text=passages[1]) if passages else completion


async def test_names_leave_as_placeholders_and_come_back() -> None:
    """The question's name and the passage's are one placeholder; the asker reads names."""
    made = await filled(Echo("keys of the flat", "unused"))
    result = await made.run_graph("Which keys has Jorun Halland?", 1)
    assert "Halland" not in said(result)
    assert "Jorun Halland" in result.answer
    question = said(result).rsplit("Question: ", 1)[1]
    [asked] = re.findall(r"\[PERSON_\w+\]|PERSON_?\w+", question)
    assert asked in said(result).rsplit("Context:", 1)[1].split("Question:")[0]


async def test_what_a_passage_gives_away_does_not_leave_in_the_question() -> None:
    """The question's scan missed the name; a document knows it; no call carries it."""
    made = await filled(Echo("lift repairs", "unused"), detector=NameDetector(["Amadi Okoro"]))
    blind = replace(made, detector=_Blind(made.detector.version))
    result = await blind.run_graph("When does amadi okoro repair the lift?", 1)
    assert "okoro" not in said(result).casefold()
    assert result.privacy.outbound_calls == 2


class _Failing:
    """A detector that errs."""

    version = "fake-1"

    def detect(self, text: str) -> list[Any]:
        raise DetectorFailed


class _Blind:
    """Finds nothing, under the same version."""

    def __init__(self, version: str) -> None:
        self.version = version

    def detect(self, text: str) -> list[Any]:
        return []


async def test_documents_of_another_detector_are_detected_again_first() -> None:
    """What an old version missed is found anew before its text leaves (I10)."""
    old = await filled(detector=_Blind("old"))
    result = await replace(old, detector=NameDetector(NAMES)).run_graph("Who has the keys?", 1)
    assert "Halland" not in said(result)
    assert "Jorun Halland" in result.answer


class _Noting(MemoryStore):
    """Keeps the words that were searched with."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    async def search(self, *args: Any, **kwargs: Any) -> Any:
        return _NotingSearch(await super().search(*args, **kwargs), self.queries)


class _NotingSearch:
    def __init__(self, found: Any, queries: list[str]) -> None:
        self._found, self._queries = found, queries

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)

    async def lexical(self, query: str, *rest: Any) -> Any:
        self._queries.append(query)
        return await self._found.lexical(query, *rest)


async def test_the_original_question_is_always_searched_with() -> None:
    """Rewrites that lead elsewhere cost no recall."""
    store = _Noting()
    made = await filled(Echo("nothing of the kind", "unused"), store=store)
    await made.run_graph("Who has the keys of flat 4?", 1, 1)
    assert store.queries == ["Who has the keys of flat 4?", "nothing of the kind"]


async def test_rewrites_are_searched_and_shown_with_names() -> None:
    """Inside the boundary a rewrite stands in its own words: masking costs no recall (I5)."""
    store = _Noting()
    made = await filled(store=store)
    result = await made.run_graph("Which keys has Jorun Halland?")
    assert any("Jorun Halland" in query for query in store.queries[1:])
    assert any("Jorun Halland" in text for text in result.rewrites)
    assert "PERSON" not in " ".join([*store.queries, *result.rewrites])


async def test_forged_placeholders_in_rewrites_are_dropped() -> None:
    """A rewrite that names nobody of this scope is not searched with; the asker is told."""
    made = await filled(ScriptedChat("keys of [PERSON_7_zzz]\nkeys of the flat", "It is so."))
    result = await made.run_graph("Who has the keys of flat 4?", 2)
    assert result.rewrites == ("keys of the flat",)
    assert "rewrites_dropped" in result.warnings


async def test_a_model_that_fails_at_rewriting_costs_the_rewrites_only() -> None:
    """The rules take over; the answer is still the model's."""
    made = await filled(ScriptedChat(ModelFailed(), "Somebody has them [1]."))
    result = await made.run_graph("Who has the keys of flat 4?", 2)
    assert result.answer == "Somebody has them [1]."
    assert "rewrite_failed" in result.warnings


async def test_a_model_that_fails_at_answering_is_an_error() -> None:
    """No answer is made up in its place."""
    made = await filled(ScriptedChat("keys", ModelFailed()))
    with pytest.raises(ModelFailed):
        await made.run_graph("Who has the keys of flat 4?", 1)


async def test_a_refusal_of_the_boundary_is_never_degraded() -> None:
    """Not even at rewriting, where other failures are."""
    made = await filled(ScriptedChat(BoundaryRefused(), "It is so [1]."))
    with pytest.raises(BoundaryRefused):
        await made.run_graph("Who has the keys of flat 4?", 1)


async def test_a_detector_that_fails_stops_the_request() -> None:
    """Raw text is never the fallback (I2)."""
    chat = ScriptedChat("unused")
    made = await filled(chat)
    with pytest.raises(DetectorFailed):
        await replace(made, detector=_Failing()).run_graph("Who?", 1)
    assert chat.asked == []


async def test_an_invented_name_is_counted_and_not_sent_on() -> None:
    """What no source and no question holds is no secret of the asker's, and no evidence (I4)."""
    scorer = FixedScorer(faithfulness=Score(1.0))
    made = await filled(
        ScriptedChat("keys", "It is Amadi Okoro [1]."), scorer=scorer, detector=NameDetector(NAMES)
    )
    result = await made.run_graph("Who has the keys?", 1, 1, with_evaluation=True)
    assert result.privacy.unsourced == 1
    [case] = scorer.cases
    assert "Okoro" not in case.answer


async def test_the_judge_sees_placeholders_only() -> None:
    """Question, answer and passages are protected; the scope's guard goes along (I7)."""
    scorer = FixedScorer(faithfulness=Score(1.0))
    made = await filled(Echo("keys", "unused"), scorer=scorer)
    result = await made.run_graph("Which keys has Jorun Halland?", 1, with_evaluation=True)
    [case] = scorer.cases
    assert "Halland" not in case.question + case.answer + " ".join(case.contexts)
    assert result.eval_score == {"faithfulness": Score(1.0)}


async def test_unsolicited_evaluation_asks_no_judge() -> None:
    """Scores cost money and time: only when asked for."""
    scorer = FixedScorer(faithfulness=Score(1.0))
    result = await (await filled(scorer=scorer)).run_graph("Who has the keys?")
    assert result.eval_score is None
    assert scorer.cases == []


async def test_a_citation_names_the_source_at_its_number() -> None:
    """Sources stand in the order in which the model saw them; a number beyond is dropped."""
    made = await filled(ScriptedChat("lift", "On Mondays [1], they say [9]."))
    result = await made.run_graph("When is the lift repaired?", 1, 2)
    passages = said(result).rsplit("Context:\n", 1)[1].split("\n\nQuestion:")[0]
    for number, source in enumerate(result.sources, start=1):
        [passage] = re.findall(rf"^\[{number}\] (.*)$", passages, re.MULTILINE)
        assert ("flat 4" in passage) == ("flat 4" in source.content)
    assert "[9]" not in result.answer
    assert "citations_dropped" in result.warnings


async def test_no_source_name_or_metadata_stands_in_a_prompt() -> None:
    """A file may be called after a person (I1)."""
    made = engine()
    await made.ingest_text("The keys are with the porter.", "jorun-halland.txt", {"by": "Okoro"})
    result = await made.run_graph("Who has the keys?")
    assert result.sources[0].source == "jorun-halland.txt"
    assert "halland" not in said(result)
    assert "Okoro" not in said(result)


async def test_without_evidence_it_says_so() -> None:
    """An empty collection is no error and no answer."""
    result = await engine().run_graph("Who has the keys?")
    assert result.sources == ()
    assert result.confidence == "low"
    assert "Nothing in the documents" in result.answer


async def test_raw_questions_need_trusted_endpoints() -> None:
    """anonymize=False is refused before an outside model, and without any model."""
    for chat in (ScriptedChat("a", "b"), None):
        with pytest.raises(NotAllowed):
            await (await filled(chat)).run_graph("Who?", anonymize=False)
    trusted = await filled(Echo("keys", "unused", trusted=True))
    result = await trusted.run_graph("Which keys has Jorun Halland?", 1, anonymize=False)
    assert "Jorun Halland" in said(result)


async def test_a_request_may_only_name_a_stricter_policy() -> None:
    """Looser than configured is refused, unknown is named."""
    strict = await filled(policy=load_policy("strict"))
    with pytest.raises(NotAllowed):
        await strict.run_graph("Who?", policy="default")
    result = await (await filled()).run_graph("Who has the keys?", policy="strict")
    assert result.privacy.policy == "strict"
    with pytest.raises(UnknownName):
        await strict.run_graph("Who?", policy="none-such")


@pytest.mark.parametrize(
    ("question", "options", "error"),
    [
        ("  ", {}, InvalidInput),
        ("x" * 8_001, {}, TooLarge),
        ("Who?", {"rewrite_n": -1}, InvalidInput),
        ("Who?", {"rewrite_n": 11}, InvalidInput),
        ("Who?", {"top_k": 0}, InvalidInput),
        ("Who?", {"top_k": 51}, InvalidInput),
        ("Who?", {"graph": "spiral"}, UnknownName),
        ("Who?", {"retriever": "psychic"}, UnknownName),
        ("Who?", {"collection": "elsewhere"}, NotFound),
    ],
)
async def test_wrong_arguments_are_typed_errors(
    question: str, options: dict[str, Any], error: type[Exception]
) -> None:
    """Never a traceback of a library, never a silent guess."""
    with pytest.raises(error):
        await (await filled()).run_graph(question, **options)


async def test_the_mapping_in_the_state_is_masked() -> None:
    """The graph's state shows that something stands behind a placeholder, not what (I8)."""
    made = await filled()
    seen: dict[str, Any] = {}

    class Spy:
        async def ainvoke(self, state: Any, context: Any) -> Any:
            result = await GRAPHS["linear"].ainvoke(state, context=context)
            seen.update(result)
            return result

    await replace(made, graphs={"linear": Spy()}).run_graph("Which keys has Jorun Halland?")
    assert seen["pii_mapping"]
    assert "Halland" not in str(dict(seen["pii_mapping"]))
    with pytest.raises(TypeError):
        seen["pii_mapping"]["x"] = "y"


async def test_a_preview_shows_what_would_leave() -> None:
    """The text with placeholders, and where each stands for what type."""
    preview = await (await filled()).preview("Ask Jorun Halland or amadi okoro.")
    assert "Halland" not in preview.text
    assert "okoro" not in preview.text
    text = "Ask Jorun Halland or amadi okoro."
    assert [text[e.start : e.end] for e in preview.entities] == ["Jorun Halland", "amadi okoro"]
    assert all(entity.placeholder in preview.text for entity in preview.entities)
    assert {entity.type for entity in preview.entities} == {"PERSON"}


async def test_a_name_of_another_collection_does_not_leave() -> None:
    """Whatever the caller may read gives its forms, not what is asked alone (I1)."""
    made = await filled(Echo("lift repairs", "unused"))
    await made.ingest_text("Jorun Halland leads the choir.", "choir.txt", {}, "hr")
    await made.ingest_text("The pier is long.", "pier.txt", {}, "public")
    blind = replace(made, detector=_Blind(made.detector.version))
    result = await blind.run_graph("How long is the pier of halland?", 1, collection="public")
    assert "halland" not in said(result).casefold()


class _Outside(BagEmbedder):
    """A remote embedder that keeps what it was sent."""

    remote, trusted = True, False

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    async def embed(self, texts: Sequence[str], guard: Any = None) -> Any:
        assert guard is not None
        self.seen += texts
        return await super().embed(texts, guard)


async def test_a_rewrite_is_protected_before_a_remote_embedder() -> None:
    """A model may spell out whom it was never told of; type words go out instead (I5)."""
    embedder = _Outside()
    made = await filled(ScriptedChat("jorun halland keys\nkeys", "So."), embedder=embedder)
    embedder.seen.clear()
    await made.run_graph("Which keys has Amadi Okoro?", 2)
    assert len(embedder.seen) == 3
    assert not re.search("halland|okoro|PERSON_", " ".join(embedder.seen), re.IGNORECASE)
    assert sum("a person" in text for text in embedder.seen) == 2
