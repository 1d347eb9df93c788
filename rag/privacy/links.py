"""Where a text would reach out when it is shown: link and image targets, tags (I12).

A reader's page may fetch what an answer names, so a target is a way out of the boundary.
Nothing is restored inside one that is not known (``targets`` says where they are), and
``inert`` takes the life out of every image and of every link whose whole URL does not
stand verbatim in a cited chunk.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from rag.privacy.lexicon import words

_ACTIVE = words(
    """a applet area audio base body button embed fencedframe form frame frameset head html iframe
    image img input link math meta object param picture portal script select source style svg
    template textarea title track use video"""
)
_URL = r"(?:[a-z][a-z0-9+.\-]{1,20}:\\?/\\?/|www\.)[^\s<>\"`|\\^{}\u0000-\u001f]*"
_BARE_URL = re.compile(rf"(?i)(?<![A-Za-z0-9/:]){_URL}")
_TARGET = r"\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)?"
_INLINE = re.compile(rf"\]{_TARGET}", re.DOTALL)
_DEFINITION = re.compile(r"(?m)^[ \t>*+\-]{0,8}\[[^\]\n]{1,200}\]:[ \t]*\n?[ \t]*\S[^\n]*")
_TAG = re.compile(
    r"<(?P<name>[a-zA-Z][^\s/>]*|[/!?])(?P<rest>(?:\"[^\"]*\"|'[^']*'|[^\"'>])*)(?:>|\Z)"
)
_AUTOLINK = re.compile(r"<(?P<url>[a-zA-Z][a-zA-Z0-9+.\-]{1,31}:[^\s<>]*)>")
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]\\]|\\.|\[(?:[^\[\]\\]|\\.)*\])*)\]"
    rf"(?P<target>{_TARGET})",
    re.DOTALL,
)
_INNER = re.compile(
    r"\(\s*(?:<(?P<angle>[^<>\n]*)>|(?P<bare>[^\s()]*(?:\([^\s()]*\)[^\s()]*)*))"
    r"(?P<title>\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)\Z"
)
_TRAILING = ".,;:!?'\"*_~)]}"
_URL_CHAR = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")


def targets(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of ``text`` that a page could follow: sorted, not overlapping."""
    found = [match.span() for match in _BARE_URL.finditer(text)]
    found += [(match.start() + 1, match.end()) for match in _INLINE.finditer(text)]
    found += [match.span() for match in _DEFINITION.finditer(text)]
    found += [match.span() for match in _TAG.finditer(text) if _reaches_out(match)]
    found += [match.span() for match in _AUTOLINK.finditer(text)]
    end = -1
    merged: list[tuple[int, int]] = []
    for one in sorted(found):
        if one[0] < end:
            merged[-1] = (merged[-1][0], max(end, one[1]))
        else:
            merged.append(one)
        end = merged[-1][1]
    yield from merged


def inert(text: str, cited: Sequence[str]) -> str:
    """``text`` with every image, and every link that is not cited, as words without life.

    ``cited`` are the whole texts of the cited chunks. An image is never live. A URL lives
    only when it stands whole in one of them; else it is shown with its scheme broken
    (``https[:]//``). Tags that load, run or carry attributes are escaped.
    """
    text = _LINK.sub(lambda match: _inert_link(match, cited), text)
    text = text.replace("![", "!\\[")
    text = _DEFINITION.sub(lambda match: _inert_definition(match.group(), cited), text)
    text = _TAG.sub(_inert_tag, text)
    text = _AUTOLINK.sub(lambda match: _inert_autolink(match, cited), text)
    return _BARE_URL.sub(lambda match: _inert_url(match.group(), cited), text)


def cites(url: str, cited: Sequence[str]) -> bool:
    """Whether the whole of ``url`` stands in a cited text, not only its beginning."""
    return bool(url) and any(_stands_whole(url, text) for text in cited)


def _stands_whole(url: str, text: str) -> bool:
    at = text.find(url)
    while at >= 0:
        before = text[at - 1] if at else " "
        rest = text[at + len(url) :]
        after = rest.lstrip(_TRAILING)[:1]
        cut = rest[:1] in _TRAILING and not _URL_CHAR.match(after)
        begins = not (before.isalnum() or before in "/:@%-_.")
        if begins and (cut or not _URL_CHAR.match(rest)):
            return True
        at = text.find(url, at + 1)
    return False


def _inert_link(match: re.Match[str], cited: Sequence[str]) -> str:
    words, inner = match["text"], _INNER.match(match["target"])
    url = (
        (inner["angle"] if inner and inner["angle"] is not None else inner["bare"]) if inner else ""
    )
    if match["image"]:
        words = inert(words, cited) or "image"
        return f"{words} ({_broken(url)})" if url else words
    if inner and inner["title"] is None and _plain_url(url) and cites(url, cited):
        return match.group()
    words = inert(words, cited)
    shown = url if inner else match["target"].strip("() \n")
    return f"{words} ({_broken(shown)})" if shown else words


def _inert_definition(line: str, cited: Sequence[str]) -> str:
    label, _, url = line.partition("]:")
    url = url.strip()
    if _plain_url(url) and cites(url, cited):
        return line
    return f"{label}\\]: {_broken(url)}"


def _plain_url(url: str) -> bool:
    """A web address in which nothing is hidden behind an entity or an escape."""
    return re.match(r"(?i)https?://[^\s\\]+\Z", url) is not None and html.unescape(url) == url


def _inert_tag(match: re.Match[str]) -> str:
    return "&lt;" + match.group()[1:] if _reaches_out(match) else match.group()


def _reaches_out(match: re.Match[str]) -> bool:
    """A tag that loads, runs, has attributes, or is no element at all but markup."""
    name, rest = match["name"].casefold(), match["rest"].strip()
    if name in ("!", "?"):
        return True
    if name == "/":
        return rest.split(None, 1)[0].casefold() in _ACTIVE if rest else False
    if _AUTOLINK.match(match.group()) or "@" in name:
        return False
    return name in _ACTIVE or "=" in rest or ":" in name


def _inert_url(url: str, cited: Sequence[str]) -> str:
    kept = url.rstrip(_TRAILING)
    for whole in (url, kept):
        if cites(whole, cited):
            return url
    return _broken(url)


def _inert_autolink(match: re.Match[str], cited: Sequence[str]) -> str:
    url = match["url"]
    return match.group() if _plain_url(url) and cites(url, cited) else _broken(url)


def _broken(url: str) -> str:
    """A URL that no renderer takes for one."""
    url = html.unescape(url)
    url = re.sub(r"(?i)^(\s*[a-z][a-z0-9+.\-]*)\s*:", r"\1[:]", url)
    url = re.sub(r"(?i)(?<![\w.])www\.", "www[.]", url)
    url = re.sub(r"^(\s*)//", r"\1[//]", url)
    return url.replace("](", "] (").replace("<", "&lt;").replace("://", "[:]//")
