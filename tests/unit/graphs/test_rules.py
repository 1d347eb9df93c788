"""Rewrites and answers without a model."""

from __future__ import annotations

import pytest

from rag.graphs.answer.rules import answer_by_quoting, rewrite_by_rules
from rag.graphs.answer.sentences import sentences


def test_rewrites_take_key_words_subject_and_predicate_apart() -> None:
    """The placeholder is the subject; the rest is what is asked of it."""
    assert rewrite_by_rules("What is the phone number of PERSON_1_qx?", 3) == [
        "phone number PERSON_1_qx",
        "PERSON_1_qx",
        "phone number",
    ]


def test_no_more_rewrites_than_asked_for() -> None:
    """rewrite_n bounds the rules too."""
    assert len(rewrite_by_rules("Where does Ada keep the spare key?", 1)) == 1


def test_a_question_of_stop_words_has_no_rewrites() -> None:
    """Nothing to search for beside the question itself."""
    assert rewrite_by_rules("What is this about?", 3) == []


def test_the_best_sentence_is_quoted_with_its_citation() -> None:
    """The sentence that holds the question's rarest words wins, cited by its passage."""
    answer = answer_by_quoting(
        "When was the boiler of flat 9 replaced?",
        [
            "Flat 4 is quiet. The rent of flat 9 is due in May.",
            "The boiler of flat 9 was replaced in March. Nothing else was done.",
        ],
    )
    assert answer is not None
    assert "“The boiler of flat 9 was replaced in March.” [2]" in answer
    assert "Nothing else" not in answer


def test_no_common_word_means_no_answer() -> None:
    """It does not quote what does not fit."""
    assert answer_by_quoting("Who tunes the piano?", ["The lift is out of order."]) is None


def test_one_sentence_from_two_passages_is_quoted_once() -> None:
    """A repeated sentence is not said twice."""
    answer = answer_by_quoting("Who has the keys?", ["Ines has the keys.", "Ines has the keys."])
    assert answer is not None
    assert answer.count("Ines has the keys.") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two.", ["One.", "Two."]),
        ("Dr. Okafor came. She left.", ["Dr. Okafor came.", "She left."]),
        ("J. R. Patel signed. It holds.", ["J. R. Patel signed.", "It holds."]),
        ("Name: Ada\nPhone: 12", ["Name: Ada", "Phone: 12"]),
        ("It costs 3.50 today. Pay.", ["It costs 3.50 today.", "Pay."]),
        ("wrapped\nline goes on. Next", ["wrapped line goes on.", "Next"]),
        ("- first\n- second", ["- first", "- second"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    """Sentence ends, lines, abbreviations and initials."""
    assert sentences(text) == expected


def test_a_question_for_a_phone_number_prefers_the_sentence_with_one() -> None:
    """Placeholders say their type, and the question says which type it wants."""
    answer = answer_by_quoting(
        "How do I ring [PERSON_1_q2x]?",
        ["[PERSON_1_q2x] joined in May. [PERSON_1_q2x] has [PHONE_1_q2x]."],
        most=1,
    )
    assert answer is not None
    assert "[PHONE_1_q2x]" in answer


def test_a_value_of_the_type_alone_is_no_answer() -> None:
    """Somebody else's number does not answer a question about the piano."""
    assert answer_by_quoting("Who tunes the piano?", ["[PERSON_1_q2x] left."]) is None
