"""Terminal output reduced to its final state."""

from enfold.encodings import decode_colours, decode_progress, encode_colours, encode_progress


def test_colours_go_and_come_back() -> None:
    text = "\x1b[32mok\x1b[0m then \x1b[1;31mfailed\x1b[0m\x1b[K"
    found = encode_colours(text)
    assert found is not None
    assert found[0] == "ok then failed"
    assert decode_colours(*found) == text


def test_a_text_of_nothing_but_colours() -> None:
    found = encode_colours("\x1b[0m\x1b[0m")
    assert found is not None
    assert found[0] == ""
    assert decode_colours(*found) == "\x1b[0m\x1b[0m"


def test_text_without_colours_is_left_alone() -> None:
    assert encode_colours("plain") is None
    assert encode_colours("an open \x1b[ sequence") is None


def test_a_progress_bar_is_reduced_to_its_end() -> None:
    text = "Fetching\n 10%\r 50%\r100%\ndone\n"
    found = encode_progress(text)
    assert found is not None
    assert found[0] == "Fetching\n100%\ndone\n"
    assert decode_progress(*found) == text


def test_line_ends_of_windows_are_no_progress() -> None:
    assert encode_progress("one\r\ntwo\r\n") is None
    text = "10%\r100%\r\nnext\r\n"
    found = encode_progress(text)
    assert found is not None
    assert found[0] == "100%\r\nnext\r\n"
    assert decode_progress(*found) == text
