"""A document in parts, joined again without a seam: what lies over an edge stays whole.

Two neighbouring parts each see a margin of the other. Where either finds personal data over
their border, the border moves behind it; the chunks on both sides follow.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rag.ingest.analysis import Analysis, Task, seam, shifted
from rag.ingest.embedding_text import SpanIndex
from rag.ingest.segments import Segment
from rag.ingest.workers import Runner
from rag.ports import Part, Vectors
from rag.types import HEADING_SEPARATOR, ChunkDraft, Document, Section, Span

Embed = Callable[[Document, Sequence[ChunkDraft], SpanIndex], Awaitable[Vectors]]
"""Vectors of drafts of a document, or of the stretch of one, whose spans these are."""


@dataclass(frozen=True, slots=True)
class _Read:
    segment: Segment
    analysis: Analysis

    @property
    def spans(self) -> list[Span]:
        """Those of the text, in places of the document; the tail's are left out."""
        length = len(self.segment.text)
        return [
            replace(span, end=min(span.end, length)).shifted(self.segment.start)
            for span in self.analysis.spans
            if span.start < length
        ]


@dataclass(slots=True)
class Reading:
    """The parts of one document as they are found; ``content_hash`` is known at the end.

    ``whole`` is the document where it is in memory: headings may lie in earlier parts. Else
    ``head`` alone is known, and headings lie within their part. ``fields`` are the spans of
    what follows the content (source and metadata), relative to it, once the first part is read.
    """

    head: Document
    parts: Iterator[Segment] = field(repr=False)
    runner: Runner
    embed: Embed
    whole: Document | None = field(default=None, repr=False)
    _length: int = 0
    _chunks: int = 0
    _seam: int = 0
    _told: list[Span] = field(default_factory=list)  # spans of headings met so far
    fields: list[Span] = field(default_factory=list)
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def content_hash(self) -> str:
        """The same digest as of a document that is read whole."""
        return self._digest.hexdigest()

    async def __aiter__(self) -> AsyncIterator[Part]:
        before: _Read | None = None
        async for read in self._analysed():
            if before is not None:
                yield await self._part(before, read)
            before = read
        if before is not None:
            yield await self._part(before, None)

    async def _analysed(self) -> AsyncIterator[_Read]:
        """Analyses in order; as many under way as the runner is wide, and one more."""
        under_way: deque[tuple[Segment, asyncio.Task[Analysis]]] = deque()
        tail = self.head.surface()[len(self.head.content) :]
        ended, first = False, True
        try:
            while under_way or not ended:
                while not ended and len(under_way) <= self.runner.width:
                    segment = await asyncio.to_thread(next, self.parts, None)
                    if segment is None:
                        ended = True
                        break
                    task = self._task(segment, tail if first else "")
                    under_way.append((segment, asyncio.create_task(self.runner.run(task))))
                    first = False
                if under_way:
                    segment, running = under_way[0]
                    read = _Read(segment, await running)
                    under_way.popleft()
                    self._keep_fields(read)
                    yield read
        finally:
            for _, running in under_way:
                running.cancel()
            await asyncio.gather(*(running for _, running in under_way), return_exceptions=True)

    def _task(self, segment: Segment, tail: str) -> Task:
        return Task(segment.text, tail, segment.core, self._sections(segment))

    def _sections(self, segment: Segment) -> tuple[Section, ...]:
        """The sections of a stretch, in its own places; the one in force comes first."""
        if self.whole is None:
            return ()
        end = segment.start + len(segment.text)
        ordered = sorted(self.whole.sections, key=lambda section: section.start)
        in_force = [s for s in ordered if s.start <= segment.start][-1:]
        inside = [s for s in ordered if segment.start < s.start < end]
        return tuple(_moved(section, -segment.start) for section in [*in_force, *inside])

    def _keep_fields(self, read: _Read) -> None:
        length = len(read.segment.text)
        self.fields += [s.shifted(-length) for s in read.analysis.spans if s.start >= length]

    async def _part(self, read: _Read, after: _Read | None) -> Part:
        start = self._seam
        border = max(start, read.segment.end)
        if after is not None:
            border = seam(border, read.spans, after.spans)
            border = min(border, after.segment.start + len(after.segment.text))
        base = _joined(read.segment, after.segment if after else None)
        text = base.text[start - base.start : border - base.start]
        drafts = self._drafts(read, start, border, base)
        spans = self._own_spans(read, after, start, border)
        self._seam = border
        self._chunks += len(drafts)
        self._length = border
        self._digest.update(text.encode())
        if after is None:
            surface = self.head.surface()
            self._digest.update(surface[len(self.head.content) :].encode())
            spans += [span.shifted(self._length) for span in self.fields]
        self._remember_headings(spans, start, border)
        return Part(
            start,
            text,
            tuple(drafts),
            tuple(self._heading(draft, base) for draft in drafts),
            await self._vectors(drafts, spans, base),
            tuple(spans),
            tuple(read.analysis.aliases),
        )

    def _drafts(self, read: _Read, start: int, border: int, base: Segment) -> list[ChunkDraft]:
        by = read.segment.start
        found = [shifted(draft, by, 0) for draft in read.analysis.drafts]
        kept = [
            replace(draft, start=max(draft.start, start), end=min(draft.end, border))
            for draft in found
            if draft.end > start and draft.start < border
        ]
        kept = [d for d in kept if base.text[d.start - base.start : d.end - base.start].strip()]
        last = kept[-1].end if kept else start
        if base.text[last - base.start : border - base.start].strip():
            if kept:
                kept[-1] = replace(kept[-1], end=border)
            else:
                kept = [ChunkDraft(0, start, border)]
        return [replace(draft, n=self._chunks + n) for n, draft in enumerate(kept)]

    def _own_spans(self, read: _Read, after: _Read | None, start: int, end: int) -> list[Span]:
        """Those that begin in the part; at its end also what only the next part sees."""
        own = [span for span in read.spans if start <= span.start < end]
        if after is not None:
            reach = after.segment.start
            own += [
                span
                for span in after.spans
                if reach <= span.start < end
                and not any(o.start < span.end and span.start < o.end for o in own[-200:])
            ]
        return sorted(own)

    def _remember_headings(self, spans: Sequence[Span], start: int, end: int) -> None:
        if self.whole is None:
            return
        places = {p for s in self.whole.sections for p in s.headings if start <= p[0] < end}
        index = SpanIndex(spans)
        for place in sorted(places):
            self._told += index.within(*place)

    def _heading(self, draft: ChunkDraft, base: Segment) -> str:
        text, by = (self.whole.content, 0) if self.whole else (base.text, base.start)
        return HEADING_SEPARATOR.join(text[s - by : e - by] for s, e in draft.headings)

    async def _vectors(
        self, drafts: Sequence[ChunkDraft], spans: Sequence[Span], base: Segment
    ) -> Vectors:
        if self.whole is not None:
            index = SpanIndex(sorted({*self._told, *spans}))
            return await self.embed(self.whole, drafts, index)
        by = -base.start
        stretch = replace(self.head, content=base.text)
        moved = [shifted(draft, by, draft.n) for draft in drafts]
        return await self.embed(stretch, moved, SpanIndex([span.shifted(by) for span in spans]))


def _moved(section: Section, by: int) -> Section:
    headings = tuple((start + by, end + by) for start, end in section.headings)
    return replace(section, start=section.start + by, headings=headings)


def _joined(segment: Segment, after: Segment | None) -> Segment:
    """The text of a segment and of all that the next one knows behind it."""
    if after is None:
        return segment
    text = segment.text[: segment.core[1]] + after.text[after.core[0] :]
    return Segment(segment.start, text, segment.core)
