"""How the experiment on placeholder shapes counts a model's reply."""

from __future__ import annotations

import pytest

from eval.placeholders import REWRITE, STYLES, SYNTHESIZE, Case, ask, cases, judge, wilson

CASE = Case(
    "{0} handed the boat over to {1}.", "Who has the boat of {0}?", ("PERSON", "PERSON"), (0,), 1
)
ASKED = ask(CASE, "k7q", STYLES["[PERSON_1_k7q]"], SYNTHESIZE)

REPLIES = {
    "intact": ("It is [PERSON_2_k7q].", ["needed intact"]),
    "another one too": (
        "[PERSON_1_k7q] gave it to [PERSON_2_k7q].",
        ["needed intact", "extra intact"],
    ),
    "lost brackets": ("It is PERSON_2_k7q's.", ["needed bent"]),
    "another case": ("It is [Person_2_K7Q].", ["needed bent"]),
    "escaped": ("It is [PERSON\\_2\\_k7q].", ["needed bent"]),
    "lost nonce": ("It is [PERSON_2].", ["needed broken"]),
    "another number": ("It is [PERSON_3_k7q].", ["needed broken"]),
    "another nonce": ("It is [PERSON_2_k7z].", ["needed broken"]),
    "invented beside": (
        "It is [PERSON_2_k7q] or [PERSON_9_k7q].",
        ["needed intact", "extra broken"],
    ),
    "nothing": ("It is somebody.", ["needed missing"]),
    "only another": ("It is [PERSON_1_k7q].", ["needed missing", "extra intact"]),
    "a plain word": ("It is a person in 2 boats.", ["needed missing"]),
}


@pytest.mark.parametrize(("reply", "verdicts"), REPLIES.values(), ids=list(REPLIES))
def test_verdicts(reply: str, verdicts: list[str]) -> None:
    """Each placeholder counts once, by the best that can be said of it."""
    assert sorted(judge(ASKED, reply)) == sorted(verdicts)


@pytest.mark.parametrize("shape", STYLES)
@pytest.mark.parametrize("prompt", [REWRITE, SYNTHESIZE])
def test_an_echo_is_intact(shape: str, prompt: str) -> None:
    """A model that repeats its prompt scores full marks in every shape."""
    for case, nonce in cases(20):
        asked = ask(case, nonce, STYLES[shape], prompt)
        verdicts = set(judge(asked, asked.prompt))
        assert verdicts <= {"needed intact", "extra intact"}


@pytest.mark.parametrize("shape", STYLES)
def test_prompts_hold_no_gap(shape: str) -> None:
    """Every template is filled: no brace of ours is left, whatever the shape brings itself."""
    for case, nonce in cases(20):
        asked = ask(case, nonce, STYLES[shape], SYNTHESIZE)
        plain = asked.prompt
        for placeholder in asked.known:
            plain = plain.replace(placeholder, "")
        assert "{" not in plain


def test_wilson() -> None:
    """Wilson's interval of 8 in 10 as in the literature: 0.490 to 0.943."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-3)
    assert wilson(0, 0) == (0.0, 1.0)
