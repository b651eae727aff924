from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import pytest

from enfold import tokens
from enfold.errors import ConfigError, TokenCountError, facts
from enfold.tokens import Tokenizer, get
from enfold.tokens.tokenizers import CountTexts

HAS_CTOK = find_spec("ctok") is not None


def test_the_default_is_o200k_base() -> None:
    assert get().name == "o200k_base"
    assert get("cl100k_base").name == "cl100k_base"


def test_the_default_and_cl100k_base_differ() -> None:
    text = "你好\uff0c世界"
    assert get().count(text) == 3
    assert get("cl100k_base").count(text) == 6


def test_a_tokenizer_is_its_own_name() -> None:
    assert get(get("cl100k_base")) is get("cl100k_base")


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'p50k_base'.* o200k_base, cl100k_base, claude"):
        get("p50k_base")


def test_an_unknown_fallback_is_refused() -> None:
    with pytest.raises(ConfigError, match="'words'"):
        get("o200k_base", fallback="words")  # type: ignore[arg-type]  # what a setting may hold


def test_many_texts_are_counted_in_their_order() -> None:
    texts = ["hello world", "", "Hello, world!", "hello world", "x"]
    assert get().count_many(texts) == [2, 0, 4, 2, 1]
    assert get().count_many(texts) == [2, 0, 4, 2, 1]
    assert get().count_many(["new among the old", *texts]) == [4, 2, 0, 4, 2, 1]
    assert get().count_many([]) == []


def test_threads_may_share_one() -> None:
    texts = [f"number {number} of many\n" * (number % 7) for number in range(500)]
    expected = [get().count(text) for text in texts]
    fresh = Tokenizer("fresh", get().load)
    with ThreadPoolExecutor(8) as threads:
        for counts in threads.map(fresh.count_many, [texts] * 16):
            assert counts == expected


def test_chars4_is_a_quarter_of_the_characters() -> None:
    assert get("chars4").count_many(["", "abc", "abcd", "x" * 4_003]) == [0, 0, 1, 1_000]


# Counted texts are not counted again.


def recording(calls: list[list[str]]) -> Callable[[], CountTexts]:
    def count(texts: list[str]) -> list[int]:
        calls.append(texts)
        return [len(text) for text in texts]

    return lambda: count


def test_a_text_is_counted_once() -> None:
    calls: list[list[str]] = []
    tokenizer = Tokenizer("letters", recording(calls))
    assert tokenizer.count_many(["ab", "", "abc", "ab"]) == [2, 0, 3, 2]
    assert tokenizer.count_many(["abc", "abcd", "ab"]) == [3, 4, 2]
    assert tokenizer.count("abcd") == 4
    assert calls == [["ab", "abc"], ["abcd"]]


# A library's failure is an error of ours, never another count.


class PanicException(BaseException):
    """A panic in Rust as Python sees it."""


def failing(error: BaseException) -> Callable[[], CountTexts]:
    def count(_texts: list[str]) -> list[int]:
        raise error

    return lambda: count


@pytest.mark.parametrize(
    "error",
    [ValueError("SECRET"), MemoryError("SECRET"), PanicException("SECRET")],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_while_counting_is_logged_and_worth_another_try(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer = Tokenizer("broken", failing(error))
    with pytest.raises(TokenCountError, match=f"broken.*{type(error).__name__}") as caught:
        tokenizer.count("SECRET")
    assert facts(caught.value).retryable
    (line,) = caplog.messages
    assert line == (
        f"counting failed: tokenizer=broken texts=1 characters=6 cause={type(error).__name__}"
    )
    assert "SECRET" not in str(caught.value)


def test_a_failure_while_loading_is_tried_again() -> None:
    attempts = [OSError("disk"), None]

    def load() -> CountTexts:
        if error := attempts.pop(0):
            raise error
        return lambda texts: [1 for _ in texts]

    tokenizer = Tokenizer("flaky", load)
    with pytest.raises(TokenCountError, match="OSError"):
        tokenizer.count("a")
    assert tokenizer.count("a") == 1


def test_a_library_that_forgets_a_text_is_a_failure() -> None:
    tokenizer = Tokenizer("short", lambda: lambda texts: [1 for _ in texts[1:]])
    with pytest.raises(TokenCountError):
        tokenizer.count_many(["a", "b"])


def test_an_interrupt_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        Tokenizer("interrupted", failing(KeyboardInterrupt())).count("a")


def test_a_real_panic() -> None:
    reference: Any = pytest.importorskip("benchmarks.reference")
    if absent := reference.missing():
        pytest.skip(f"the reference can't be loaded, {absent}")
    encode = reference.encoding("cl100k_base").encode_ordinary
    tokenizer = Tokenizer("tiktoken", lambda: lambda texts: [len(encode(text)) for text in texts])
    try:
        count = tokenizer.count(" " * 1_000_000)
    except TokenCountError as error:
        assert "PanicException" in str(error)  # noqa: PT017  # a later version may not panic
    else:
        assert count == get("cl100k_base").count(" " * 1_000_000)


# Claude's


@pytest.mark.skipif(HAS_CTOK, reason="ctok is installed")
@pytest.mark.parametrize("name", ["claude", "claude-3"])
def test_without_ctok_the_extra_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=r"enfold\[claude\]"):
        get(name)


@pytest.mark.skipif(not HAS_CTOK, reason="ctok is not installed; it needs Python 3.12")
@pytest.mark.parametrize(
    ("text", "to_4_6", "from_4_7"),
    [("", 0, 0), ("hello, world", 3, 4), ("a\ud800b", 3, 3)],
)
def test_claude(text: str, to_4_6: int, from_4_7: int) -> None:
    assert get("claude-3").count(text) == to_4_6
    assert get("claude").count(text) == from_4_7


# Other machines: libraries that are not there, in a process of its own.


def run(program: str, *, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    hide = "".join(f"sys.modules[{name!r}] = None\n" for name in without)
    return subprocess.run(
        [sys.executable, "-c", f"import sys\n{hide}from enfold import tokens\n{program}"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_importing_loads_no_library() -> None:
    done = run("print({'toktok', 'splintr', 'ctok', 'tiktoken', 'asyncio'} & {*sys.modules})")
    assert done.stdout == "set()\n", done.stderr


def test_getting_loads_no_library_and_warming_does() -> None:
    ask = "print('toktok' in sys.modules)"
    done = run(f"tokens.get(); {ask}; tokens.warm(); {ask}")
    assert done.stdout == "False\nTrue\n", done.stderr


def test_without_toktok_counts_are_the_same() -> None:
    done = run("print(tokens.get().count('hello <|endoftext|>'))", without=("toktok",))
    assert done.stdout == f"{tokens.get().count('hello <|endoftext|>')}\n", done.stderr


def test_without_any_library_there_is_an_error_not_a_guess() -> None:
    done = run("tokens.get().count('hello')", without=("toktok", "splintr"))
    assert done.returncode != 0
    assert "TokenCountError: no library that counts o200k_base exactly" in done.stderr


def test_without_any_library_the_fallback_guesses_and_warns_once() -> None:
    program = """for name in ("o200k_base", "o200k_base", "cl100k_base"):
    tokenizer = tokens.get(name, fallback="chars4")
    print(tokenizer.name, tokenizer.count("x" * 400))"""
    done = run(program, without=("toktok", "splintr"))
    assert done.stdout == "chars4 100\n" * 3, done.stderr
    assert done.stderr.count("Warning") == 1
    assert "guessed" in done.stderr


def test_a_fallback_is_not_used_if_the_library_loads() -> None:
    assert get("o200k_base", fallback="chars4") is get("o200k_base")
