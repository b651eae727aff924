"""Repeated lines and blanks at the end of lines."""

from enfold.encodings import decode_blanks, decode_runs, encode_blanks, encode_runs

WAITING = "2024-01-01 waiting for the server to answer"


def test_a_repeated_line_is_shown_once() -> None:
    text = "\n".join(["start", *[WAITING] * 40, "", "end"])
    found = encode_runs(text)
    assert found is not None
    assert found[0] == f"start\n{WAITING}\n⟨ the line above 39 more times ⟩\n\nend"
    assert decode_runs(*found) == text


def test_a_text_that_holds_the_marker_itself_comes_back() -> None:
    marker = "⟨ the line above 39 more times ⟩"
    text = "\n".join([*[WAITING] * 40, marker, marker])
    found = encode_runs(text)
    assert found is not None
    assert decode_runs(*found) == text


def test_few_short_or_blank_lines_stay() -> None:
    assert encode_runs("a\na\na\nb") is None
    assert encode_runs("\n" * 200) is None
    assert encode_runs(f"{WAITING}\n{WAITING}") is None


def test_blanks_at_the_end_of_lines_go_and_come_back() -> None:
    text = "one  \n\ttwo\t\nthree\n   \nfour "
    found = encode_blanks(text)
    assert found is not None
    assert found[0] == "one\n\ttwo\nthree\n\nfour"
    assert decode_blanks(*found) == text
    assert encode_blanks(found[0]) is None
