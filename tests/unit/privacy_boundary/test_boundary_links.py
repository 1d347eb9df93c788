"""I12: no image is live, and no link that is not cited whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rag.privacy.links import cites, inert

CITED = ["The portal is at https://portal.example.org/u?id=4 (see there). Also www.example.org."]
LIVE = re.compile(r"(?i)(?<![\w.])(?:[a-z][a-z0-9+.\-]*://|www\.)")

DEAD = [
    "![x](https://portal.example.org/u?id=4)",
    "![x](https://evil.example/a.png)",
    "![x][r]\n\n[r]: https://evil.example/a.png",
    "![r]\n\n[r]: https://evil.example/a.png",
    "[x](https://evil.example/a)",
    "[x]( <https://evil.example/a b> 'title')",
    '[x](https://portal.example.org/u?id=4 "title")',
    "[x](https://portal.example.org/u?id=45)",
    "[x](https://portal.example.org/u)",
    "[x](javascript:alert(1))",
    "[x](data:text/html;base64,aaaa)",
    "[x](/logout)",
    "[x](//evil.example/a)",
    "[x](https&#58;//evil.example/a)",
    "[x](https:\\//evil.example/a)",
    "[x][r]\n\n[r]: https://evil.example/a",
    "[x][r]\n\n[r]:\n https://evil.example/a",
    "https://evil.example/a",
    "www.evil.example/a",
    "<https://evil.example/a>",
    "<javascript:alert(1)>",
    "[![x](https://evil.example/a.png)](https://evil.example/b)",
    "[a [b](https://evil.example/b) c](https://evil.example/c)",
    "ftp://evil.example/a",
    "> [x](https://evil.example/a)",
    "- ![x](https://evil.example/a)",
    "[x](<https://evil.example/a>)",
    "[x](\nhttps://evil.example/a\n)",
]


def live_targets(text: str) -> list[str]:
    """Every target that a Markdown page with links in plain text would follow."""
    page = MarkdownIt("gfm-like", {"linkify": False, "html": False})
    tokens = [t for block in page.parse(text) for t in (block.children or [])]
    found = [
        str(t.attrs.get("href") or t.attrs.get("src"))
        for t in tokens
        if t.type in ("link_open", "image")
    ]
    return found + LIVE.findall(text)


@pytest.mark.parametrize("text", DEAD)
def test_a_target_that_is_not_cited_is_dead(text: str) -> None:
    """A Markdown page finds nothing to follow in it."""
    assert live_targets(inert(text, CITED)) == []


@pytest.mark.parametrize(
    "text",
    [
        "See [here](https://portal.example.org/u?id=4).",
        "See https://portal.example.org/u?id=4.",
        "See <https://portal.example.org/u?id=4>.",
        "See www.example.org.",
    ],
)
def test_a_link_that_is_cited_whole_lives(text: str) -> None:
    """The URL of a cited chunk stays as it is."""
    assert inert(text, CITED) == text


TAGS = [
    "<img src=https://evil.example/a>",
    "<img src='x' onerror='alert(1)'",
    "<script>alert(1)</script>",
    "<iframe src=//evil.example>",
    "<b onclick=alert(1)>",
    "<x-y style='background:url(//evil.example)'>",
    "<svg/onload=alert(1)>",
    "<!-- x -->",
    "<style>@import '//evil.example'</style>",
    "<IMG\nSRC='//evil.example/a'>",
]


@pytest.mark.parametrize("tag", TAGS)
def test_a_tag_that_acts_is_escaped(tag: str) -> None:
    """Nothing of it is left that a page would take for a tag."""
    shown = inert(tag, CITED)
    assert not re.search(r"<(?!/?(?:b|x-y)>)[a-zA-Z!/]", shown)


@pytest.mark.parametrize(
    "text",
    [
        "Sunniva Thorsrud <s.thor@example.org> pays.",
        "a < b and c > d, 1<2",
        "<PERSON_1> and [PERSON_1] and {{PERSON_1}}",
        "Tel:07700 900142, file: report.pdf; note: x",
        "see [1] and [2](not a link) no",
        "std::vector<int> x; // comment",
        "**bold** _it_ `code` | table |",
        "C:\\Users\\x and a//b",
    ],
)
def test_plain_text_is_left_alone(text: str) -> None:
    """What reaches out nowhere comes back byte for byte."""
    expected = text.replace("[2](not a link)", "2 (not a link)")
    assert inert(text, CITED) == expected


def test_inert_text_shows_what_it_was() -> None:
    """Words and address stay readable."""
    assert inert("[rent](https://evil.example/a)", []) == "rent (https[:]//evil.example/a)"
    assert inert("![plan](https://evil.example/a)", []) == "plan (https[:]//evil.example/a)"


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("https://portal.example.org/u?id=4", True),
        ("https://portal.example.org/u?id=", False),
        ("https://portal.example.org", False),
        ("portal.example.org/u?id=4", False),
        ("www.example.org", True),
        ("", False),
    ],
)
def test_only_a_whole_url_is_cited(url: str, whole: bool) -> None:
    """The beginning or the end of a cited URL is another URL."""
    assert cites(url, CITED) is whole


@given(st.text(alphabet=st.sampled_from("[]()!<>:/\\ \nax.w'\"=&#;58htps"), max_size=40))
def test_whatever_the_text_no_image_lives(text: str) -> None:
    """A Markdown page of any inert text shows no image and no link."""
    page = MarkdownIt("commonmark", {"html": False})
    tokens = [t for block in page.parse(inert(text, [])) for t in (block.children or [])]
    assert [t.type for t in tokens if t.type in ("link_open", "image")] == []


@given(st.text(alphabet=st.sampled_from("[]()!<>:/\\ \nax.w'\"=&#;"), max_size=40))
def test_inert_text_is_inert_again(text: str) -> None:
    """No second pass finds a live URL."""
    once = inert(text, [])
    assert LIVE.findall(once) == []
