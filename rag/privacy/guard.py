"""The backstop over one outbound request, seen whole (I1).

Protecting is what keeps originals inside; the guard refuses when it failed. It reads every
string, key, number, the path, the query and the headers, decoded to a fixed point, joins
what stands side by side, and compares shadows on word boundaries with every form of every
subject of the scope. Originals of under four letters or digits and common words are
compared with their case, in data alone, and not where protecting let them through by its
rule of evidence; weak derived forms were decided there too. Our own template text and our
own placeholders are cut out first; nothing is matched across a cut. What cannot be read
whole is refused. Holds no text of a request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from rag.errors import BoundaryRefused
from rag.privacy.decode import Segment, Unreadable, layers, plain_number, read_json
from rag.privacy.forms import Form, forms_of, read_keys, start_of_words
from rag.privacy.lexicon import words
from rag.privacy.protect import CUT, SPELLED, find_compact
from rag.types import EntityType

_NEVER = words("user metadata store safety_identifier prompt_cache_key")
"""Keys of a request that name its user or keep it: refused wherever they stand on top."""

_KEYS = words(
    """model messages role content type text name function functions tools tool_choice
    tool_calls tool_call_id id arguments parameters description properties required items enum
    strict temperature top_p n stream stream_options include_usage stop max_tokens
    max_completion_tokens presence_penalty frequency_penalty seed logprobs top_logprobs
    response_format json_schema schema input encoding_format dimensions reasoning_effort verbosity
    parallel_tool_calls anyOf oneOf allOf additionalProperties title default format query documents
    top_n prompt refusal"""
)
_VALUES = words(
    """system user assistant developer tool function text json_object json_schema auto none
    required object string integer number boolean array null float base64 low medium high minimal"""
)
"""Keys and values of the protocol: structure, no data."""

_SETTINGS = words(
    """temperature top_p n seed max_tokens max_completion_tokens presence_penalty
    frequency_penalty top_logprobs dimensions top_n"""
)
_PLUMBING = words("host content-length connection accept-encoding")
_STEPS = words("v1 chat completions embeddings models rerank")
_MEDIA = frozenset({"application/json", "text/event-stream", "veilrag"})
"""What every request's path and headers are made of; the transport lets nothing else pass."""

_MOST_SETTING_DIGITS = 6
_REACH = 400
"""No original is longer than this many letters on one side of a split."""


class Guard:
    """Checks requests against the subjects of one scope, as they were when it was made."""

    def __init__(
        self,
        *,
        originals: Iterable[tuple[EntityType, str]],
        released: frozenset[str] = frozenset(),
        placeholders: frozenset[str] = frozenset(),
        templates: frozenset[str] = frozenset(),
        forms: Callable[[EntityType, str], list[Form]] = forms_of,
    ) -> None:
        self._matcher = _Matcher(
            [(kind, form) for kind, text in set(originals) for form in forms(kind, text)], released
        )
        own = [text for text in (*templates, *placeholders) if text.strip()]
        own.sort(key=len, reverse=True)
        self._own = re.compile("|".join(map(re.escape, own))) if own else None

    def __repr__(self) -> str:
        return "Guard(...)"

    def check(self, method: str, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        """Raises ``BoundaryRefused``, which names the kind of place, never the text."""
        try:
            places = self._read(url, headers, body)
            data = [text for texts in places.values() for text in texts]
            if not self._holds_original(data):
                return
            place = next((p for p, t in places.items() if self._holds_original(t)), "request")
        except Unreadable as reason:
            raise BoundaryRefused(f"The boundary refused {reason}.") from None
        raise BoundaryRefused(f"The boundary refused an original in the {place}.")

    def sees(self, text: str) -> bool:
        """Whether ``text``, as data of a request, would be refused.

        What protecting writes is held against this, so that an honest request is not.
        """
        try:
            return self._holds_original([self._cut(text)])
        except Unreadable:
            return True

    def _read(
        self, url: str, headers: Sequence[tuple[str, str]], body: bytes
    ) -> Mapping[str, list[str]]:
        """The data of each place of a request, in the order of reading, our own text cut out."""
        parts = urlsplit(url)
        steps = [step for step in parts.path.split("/") if step not in _STEPS]
        address = ["/".join(steps), parts.query, parts.fragment, parts.username, parts.password]
        sent = [v for name, v in headers if name.lower() not in _PLUMBING and v not in _MEDIA]
        _refuse_encodings(headers, body)
        segments = read_json(body) if body else []
        _refuse_keys(segments)
        return {
            "body": [self._cut(text) for text in _data(segments)],
            "address": [text for text in address if text],
            "headers": sent,
        }

    def _cut(self, text: str) -> str:
        return self._own.sub(CUT, text) if self._own else text

    def _holds_original(self, data: list[str]) -> bool:
        """Side by side, glued together, and decoded."""
        if not data:
            return False
        outer = [*data, _glued(data)] if len(data) > 1 else data
        inner = [self._cut(text) for text in layers(outer)[len(dict.fromkeys(outer)) :]]
        return any(map(self._matcher.matches, ["\n".join(data), *outer[len(data) :], *inner]))


def _glued(data: Sequence[str]) -> str:
    """Strings with nothing between, for what was split over two: only their ends, if long."""
    return "".join(
        text if len(text) <= 2 * _REACH else f"{text[:_REACH]}{CUT}{text[-_REACH:]}"
        for text in data
    )


def _refuse_encodings(headers: Sequence[tuple[str, str]], body: bytes) -> None:
    for name, value in headers:
        if name.lower() == "content-encoding" and value.strip().lower() not in ("", "identity"):
            raise Unreadable("a body that is compressed")
        if name.lower() == "content-type" and body:
            media = value.split(";", 1)[0].strip().lower()
            if media != "application/json":
                raise Unreadable("a body that is not JSON")


def _refuse_keys(segments: Sequence[Segment]) -> None:
    for segment in segments:
        if segment.key and not segment.path and segment.text in _NEVER:
            raise Unreadable("a key that names the user or keeps the request")


def _data(segments: Iterable[Segment]) -> Iterator[str]:
    """What of a body is no structure of the protocol."""
    for segment in segments:
        text, path = segment.text, segment.path
        if segment.key:
            structure = text in _KEYS
        elif segment.number:
            digits = sum(char.isdigit() for char in text)
            structure = path[-1:] != () and path[-1] in _SETTINGS and digits <= _MOST_SETTING_DIGITS
            text = plain_number(text)
        else:
            structure = path == ("model",) or text in _VALUES
        if not structure:
            yield text


class _Matcher:
    """All strong forms by their first word, all numbers, and weak originals as written."""

    def __init__(self, forms: Iterable[tuple[EntityType, Form]], released: frozenset[str]) -> None:
        self._keys: set[str] = set()
        self._compact: dict[str, bool] = {}
        sizes: dict[str, set[int]] = {}
        weak: set[str] = set()
        for kind, form in forms:
            if form.weak:
                if not form.derived and form.key not in released:
                    weak.add(form.text)
            elif form.compact:
                self._add_number(form.key, kind)
            else:
                self._keys.add(form.key)
                sizes.setdefault(form.key.split(" ", 1)[0], set()).add(form.key.count(" ") + 1)
        self._sizes = {first: sorted(all_sizes) for first, all_sizes in sizes.items()}
        pattern = "|".join(re.escape(text) for text in sorted(weak, key=len, reverse=True))
        self._weak = re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])") if weak else None

    def _add_number(self, key: str, kind: EntityType) -> None:
        phone = kind is EntityType.PHONE
        self._compact[key] = self._compact.get(key, False) or phone
        bare = key.lstrip("0")  # a JSON number has no leading zeros
        if key.isdigit() and len(bare) >= 6:
            self._compact.setdefault(bare, phone)

    def matches(self, text: str) -> bool:
        """Whether any form stands in ``text``."""
        if self._weak and self._weak.search(text):
            return True
        keys = read_keys(text)
        return (
            self._words_match(keys)
            or self._words_match(["".join(read_keys(m)) for m in SPELLED.findall(text)])
            or self._number_matches(keys)
        )

    def _number_matches(self, keys: list[str]) -> bool:
        stream = "".join(keys)
        word_at: dict[int, int] = {}
        for key, phone in self._compact.items():
            if key in stream:
                word_at = word_at or {at: n for n, at in enumerate(start_of_words(keys))}
                if any(find_compact(stream, key, word_at, phone)):
                    return True
        return False

    def _words_match(self, keys: list[str]) -> bool:
        if not self._sizes.keys() & keys:
            return False
        return any(
            " ".join(keys[at : at + size]) in self._keys
            for at, first in enumerate(keys)
            for size in self._sizes.get(first, ())
        )
