"""The one composition root: opens every part once, binds them to each request.

``run_graph`` is the programmatic door and the path of every ``/ask``. The engine holds
parts that requests share (store, detector, models, compiled graphs); what belongs to a
request (scope, guard, outbox) is made in ``_context`` and dies with it (I8).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from rag.errors import InvalidInput, Misconfigured, NotAllowed, TooLarge, UnknownName, VeilragError
from rag.ports import AliasIndex, Detector, DocumentStore, Embedder, Scorer
from rag.settings import Settings
from rag.types import (
    Document,
    Hit,
    Ingested,
    Preview,
    PreviewEntity,
    Receipt,
    Result,
    Source,
    Span,
    StoredDocument,
)

if TYPE_CHECKING:
    from rag.graphs.context import AskContext
    from rag.ingest.batch import OnProgress
    from rag.ingest.files import File
    from rag.ingest.pipeline import Ingestor
    from rag.ingest.splitter import TokenPlaces
    from rag.ingest.workers import Recipe
    from rag.ports import ChatModel
    from rag.privacy.forms import FormHasher
    from rag.privacy.policy import Policy
    from rag.privacy.scope import Scope
    from rag.store import Store

TRACING: Final = (
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_TRACING_V2",
    "LANGCHAIN_HANDLER",
)
MOST_REWRITES: Final = 10
MOST_HITS: Final = 50


def refuse_tracing(settings: Settings) -> None:
    """Raise ``Misconfigured`` when a trace collector is switched on without leave (I6)."""
    if settings.allow_tracing:
        return
    for name in TRACING:
        if os.environ.get(name, "").strip().lower() not in {"", "0", "false", "no", "off"}:
            raise Misconfigured(
                f"{name} is set: traces would carry personal data out. Unset it, or set "
                "VEILRAG_ALLOW_TRACING=true to allow it."
            )


def seal(settings: Settings) -> None:
    """Close every way out of this process but the guarded one, for good (I1).

    For processes that are ours (the service, the command), before anything is opened;
    a notebook or an application that imports the engine seals itself if it wants to.
    """
    from psycopg.conninfo import conninfo_to_dict

    from rag.models.chat import OPENAI
    from rag.models.seal import seal_process

    outside = settings.has_model or settings.embeddings != "local"
    url = settings.database_url
    database = conninfo_to_dict(url.get_secret_value()).get("host") if url else None
    seal_process(
        [settings.openai_base_url or OPENAI] if outside else [],
        names=str(database).split(",") if database else (),
    )


@dataclass(frozen=True, slots=True)
class Engine:
    """Everything that requests share. Open it with ``async with Engine.open(settings)``."""

    settings: Settings
    store: Store
    detector: Detector
    embedder: Embedder
    chat: ChatModel | None
    scorer: Scorer
    policy: Policy
    hasher: FormHasher
    graphs: Mapping[str, Any]
    retrievers: Mapping[str, Any]
    places: TokenPlaces | None = None
    recipe: Recipe | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator[Engine]:
        """Open every part, in order; close them in reverse. Raises ``Unavailable`` kinds."""
        refuse_tracing(settings)
        async with AsyncExitStack() as stack:
            yield await _assemble(settings, stack)

    # -- asking -----------------------------------------------------------------------

    async def run_graph(
        self,
        question: str,
        rewrite_n: int = 3,
        top_k: int = 5,
        anonymize: bool = True,
        with_evaluation: bool = False,
        *,
        graph: str = "linear",
        retriever: str = "hybrid",
        collection: str = "default",
        filters: Mapping[str, Any] | None = None,
        policy: str | None = None,
        tenant: UUID | None = None,
    ) -> Result:
        """Answer ``question`` from the documents of ``collection``.

        Raises ``InvalidInput`` or ``TooLarge`` for the arguments, ``NotAllowed`` for
        ``anonymize=False`` before an untrusted endpoint, ``NotFound`` for an unknown
        collection, and what the parts raise: ``DetectorFailed``, ``ModelFailed``,
        ``BoundaryRefused``, ``DatabaseUnavailable``.
        """
        self._check(question, rewrite_n, top_k)
        if not anonymize:
            self._check_trust()
        context = await self._context(retriever, collection, filters or {}, policy, tenant)
        if not anonymize:
            context = unguarded(context)
        compiled = named(self.graphs, graph, "graph")
        from langsmith import tracing_context

        with tracing_context(enabled=self.settings.allow_tracing):
            state = await compiled.ainvoke(
                {
                    "question": question,
                    "rewrite_n": rewrite_n,
                    "top_k": top_k,
                    "anonymize": anonymize,
                    "with_evaluation": with_evaluation,
                },
                context=context,
            )
        return _result(state, context)

    async def preview(self, text: str, policy: str | None = None) -> Preview:
        """What would leave if ``text`` were sent, by its own spans and the known forms."""
        if len(text) > self.settings.max_detect_chars:
            raise TooLarge("The text is too long.")
        from rag.privacy.protect import Piece

        aliases = await self.store.search_all(self.store.default_tenant)
        scope = self._scope(aliases, self._policy(policy))
        [protected] = await scope.protect_detailed([Piece(text, await scope.detect(text))])
        return Preview(
            protected.text,
            tuple(
                PreviewEntity(r.type.value, r.start, r.end, r.placeholder)
                for r in protected.replacements
            ),
        )

    def _check(self, question: str, rewrite_n: int, top_k: int) -> None:
        if not question.strip():
            raise InvalidInput("The question is empty.")
        if len(question) > self.settings.max_question_chars:
            raise TooLarge(
                f"The question is longer than {self.settings.max_question_chars} characters."
            )
        if not 0 <= rewrite_n <= MOST_REWRITES:
            raise InvalidInput(f"rewrite_n must be 0 to {MOST_REWRITES}.")
        if not 1 <= top_k <= MOST_HITS:
            raise InvalidInput(f"top_k must be 1 to {MOST_HITS}.")

    def _check_trust(self) -> None:
        """``anonymize=False`` only where every endpoint of the request is trusted.

        The judge is asked at the chat model's endpoint.
        """
        endpoints = [] if self.chat is None else [self.chat.trusted]
        if self.embedder.remote:
            endpoints.append(self.embedder.trusted)
        if not endpoints or not all(endpoints):
            raise NotAllowed("anonymize=false needs every model endpoint to be trusted.")

    async def _context(
        self,
        retriever: str,
        collection: str,
        filters: Mapping[str, Any],
        policy: str | None,
        tenant: UUID | None,
    ) -> AskContext:
        from rag.graphs.context import AskContext, CountingGuard, Outbox

        child = named(self.retrievers, retriever, "retriever")
        search = await self.store.search(
            tenant or self.store.default_tenant, [collection], self.embedder.space
        )
        in_force = self._policy(policy)
        # The forms of every readable collection, not of the one that is asked alone (I1).
        aliases = await self.store.search_all(tenant or self.store.default_tenant)
        scope = self._scope(aliases, in_force)
        outbox = Outbox()
        return AskContext(
            scope=scope,
            policy=in_force,
            guard=CountingGuard(scope, outbox),
            outbox=outbox,
            search=search,
            embedder=self.embedder,
            scorer=self.scorer,
            detector=self.detector.version,
            detect_again=self.ingestor(tenant).detect_again,
            chat=self.chat,
            retriever=child,
            filters=filters,
            context_chars=self.settings.context_chars,
        )

    def _scope(self, aliases: AliasIndex, policy: Policy) -> Scope:
        from rag.privacy.allocation import MemoryAllocator
        from rag.privacy.scope import Scope

        return Scope(
            policy=policy,
            detector=self.detector,
            aliases=aliases,
            allocator=MemoryAllocator(),
            hasher=self.hasher,
            detect_timeout=self.settings.detect_timeout,
        )

    def _policy(self, name: str | None) -> Policy:
        if name is None:
            return self.policy
        from rag.privacy.policy import load_policy

        asked = load_policy(name)
        if asked.name != self.policy.name and not asked.stricter_than(self.policy):
            raise NotAllowed("A request may only name a stricter policy than the configured one.")
        return asked

    # -- documents --------------------------------------------------------------------

    def ingestor(self, tenant: UUID | None = None) -> Ingestor:
        """The ingestion pipeline, bound to a tenant's documents."""
        from rag.ingest.pipeline import Ingestor

        owner = tenant or self.store.default_tenant
        return Ingestor(
            settings=self.settings,
            detector=self.detector,
            embedder=self.embedder,
            store=self.store.documents(owner),
            hasher=self.hasher,
            policy=self.policy,
            known=partial(self.store.search_all, owner),
            places=self.places,
            recipe=self.recipe,
        )

    def documents(self, tenant: UUID | None = None) -> DocumentStore:
        """The tenant's documents."""
        return self.store.documents(tenant or self.store.default_tenant)

    async def ingest_bytes(
        self,
        name: str,
        data: bytes,
        media_type: str | None = None,
        collection: str = "default",
        metadata: Mapping[str, Any] | None = None,
        *,
        password: str | None = None,
    ) -> Ingested:
        """Read, detect, cut, embed and store one file. Raises ``DocumentRefused`` kinds.

        ``metadata`` wins over what the file says; ``password`` opens it where it is encrypted.
        """
        return await self.ingestor().ingest_bytes(
            name, data, media_type, collection, metadata, password=password
        )

    async def ingest_files(
        self,
        files: Sequence[File],
        collection: str = "default",
        there: Mapping[str, set[str]] | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[Ingested]:
        """Ingest many files side by side; a failure is an outcome, not an exception.

        With ``there`` (of ``rag.ingest.sync.found_in``) what is gone of those folders is deleted.
        """
        from rag.ingest.sync import synchronize

        return await synchronize(
            self.ingestor(), self.documents(), files, there or {}, collection, on_progress
        )

    async def ingest_text(
        self, text: str, source: str, metadata: Mapping[str, Any], collection: str = "default"
    ) -> Ingested:
        """As ``ingest_bytes``, for text that is there already."""
        return await self.ingestor().ingest(Document(source, text, metadata), collection)

    async def list_documents(
        self, collection: str = "default", limit: int = 100, after: UUID | None = None
    ) -> list[StoredDocument]:
        """A page of the collection's documents."""
        return await self.documents().list_page(collection, limit, after)

    async def get_document(self, id: UUID) -> tuple[StoredDocument, str, list[Span]]:
        """The document, its content, its spans. Raises ``NotFound``."""
        return await self.documents().get(id)

    async def delete_document(self, id: UUID) -> None:
        """Make the document unreachable. Raises ``NotFound``."""
        await self.documents().delete(id)

    async def ready(self) -> list[str]:
        """The names of the parts that do not answer; none when ready."""
        try:
            await self.store.ping()
        except VeilragError:
            return ["database"]
        return []


async def _assemble(settings: Settings, stack: AsyncExitStack) -> Engine:
    from rag.graphs import compile_graphs, compile_retrievers
    from rag.ingest.workers import Recipe
    from rag.models.chat import open_chat
    from rag.models.embeddings import open_embedder
    from rag.models.local import TokenPlaces
    from rag.models.scorer import open_scorer
    from rag.models.seal import seal_process
    from rag.privacy.detect import PresidioDetector
    from rag.privacy.forms import FormHasher
    from rag.privacy.policy import load_policy
    from rag.privacy.protect import warm_up
    from rag.store import Store

    policy = load_policy(settings.policy)
    store = await stack.enter_async_context(Store.open(settings))
    detector = await asyncio.to_thread(PresidioDetector.open, max_chars=settings.max_detect_chars)
    await asyncio.to_thread(warm_up)
    embedder = await stack.enter_async_context(open_embedder(settings))
    chat = await stack.enter_async_context(open_chat(settings))
    return Engine(
        settings=settings,
        store=store,
        detector=detector,
        embedder=embedder,
        chat=chat,
        scorer=open_scorer(settings),
        policy=policy,
        hasher=FormHasher(store.subkey("aliases")),
        graphs=compile_graphs(),
        retrievers=compile_retrievers(),
        places=await asyncio.to_thread(TokenPlaces),
        recipe=Recipe(
            detector=partial(PresidioDetector.open, max_chars=settings.max_detect_chars),
            places=TokenPlaces,
            secret=store.subkey("aliases"),
            prepare=partial(seal_process, ()),
        ),
    )


def named(parts: Mapping[str, Any], name: str, kind: str) -> Any:
    """The part of that name. Raises ``UnknownName``."""
    if name not in parts:
        raise UnknownName(f"No such {kind}; there are: {', '.join(sorted(parts))}.")
    return parts[name]


def unguarded(context: AskContext) -> AskContext:
    """The same context for trusted endpoints only; calls are still counted."""
    from rag.graphs.context import CountingGuard, Trusted

    return replace(context, guard=CountingGuard(Trusted(), context.outbox))


def _result(state: Mapping[str, Any], context: AskContext) -> Result:
    scope, hits = context.scope, state["retrieved"]
    similarities = [hit.similarity for hit in hits if hit.similarity is not None]
    return Result(
        answer=state["answer"],
        rewrites=tuple(scope.restore(text).text for text in state["rewrites"]),
        sources=tuple(_source(hit) for hit in hits),
        eval_score=state["eval_score"],
        trace=tuple(state["trace"]),
        confidence="high" if hits else "low",
        top_similarity=max(similarities, default=None),
        warnings=tuple(state["warnings"]),
        privacy=Receipt(
            policy=context.policy.name,
            entities=scope.entities(),
            outbound_calls=context.outbox.calls,
            unresolved=state["unresolved"],
            unsourced=state["unsourced"],
        ),
        outbound=tuple(tuple(prompt) for prompt in context.outbox.prompts),
    )


def _source(hit: Hit) -> Source:
    from rag.graphs.answer.citations import excerpt

    chunk = hit.chunk
    return Source(
        source=chunk.source,
        chunk_index=chunk.n,
        content=excerpt(chunk.text, chunk.spans),
        document_id=chunk.document_id,
        score=round(hit.score, 6),
        start=chunk.start,
        end=chunk.end,
        page=chunk.page,
    )
