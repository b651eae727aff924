"""The budget: equality at every boundary is pinned here."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from enfold import budget
from enfold.budget import BRANCH_AWARE, Limits, Load, Policy, Threshold, decide, should_condense
from enfold.errors import ConfigError

GPT_4O = Limits(max_input=111_616, max_output=16_384)


def test_the_limit_leaves_a_margin_of_five_percent_and_what_is_reserved() -> None:
    load = Load(history=10_000, system=500, tools=700, files=300, pending=100)
    assert (load.reserved, load.total) == (1_600, 11_600)
    assert Load(history=10_000, pending=100, estimate=7).total == 10_107
    decision = decide(load, GPT_4O)
    assert decision.limit == 111_616 - 5_580 - 1_600
    assert decision.threshold_tokens == int(decision.limit * 0.95)
    assert decision.action == "keep"
    assert decision.reason == "fits"


def test_the_threshold_must_be_exceeded_not_reached() -> None:
    limits = Limits(max_input=100_000, max_output=100_000)
    at = decide(Load(history=90_250), limits)
    over = decide(Load(history=90_251), limits)
    assert (at.threshold_tokens, at.action, at.reason) == (90_250, "should", "early_mark")
    assert (over.action, over.reason) == ("must", "threshold")


def test_the_early_mark_must_be_exceeded_not_reached() -> None:
    limits = Limits(max_input=100_000, max_output=100_000)
    assert decide(Load(history=72_200), limits).action == "keep"
    assert decide(Load(history=72_201), limits).action == "should"


def test_nothing_is_compressed_automatically_below_the_floor() -> None:
    small, policy = Limits(max_input=2_500, max_output=2_500), Policy(Threshold(0.5, "test"))
    assert decide(Load(history=1_999), small, policy).reason == "below_floor"
    assert decide(Load(history=2_000), small, policy).action == "must"


def test_the_floor_does_not_beat_the_hard_limit() -> None:
    tiny = Limits(max_input=1_500, max_output=100)
    over = decide(Load(history=1_999), tiny)
    assert (over.action, over.hard_tokens) == ("must", 1_340)
    assert decide(Load(history=1_340), tiny).reason == "below_floor"
    assert decide(Load(history=1_341), tiny, Policy(automatic=False)).reason == "window"


@example(
    limits=Limits(10_000, 1), share=0.5, most=None, system=2_000, automatic=True, off=-1, least=0
)
@example(
    limits=Limits(4_000, 1), share=0.5, most=None, system=0, automatic=True, off=1, least=2_000
)
@given(
    limits=st.builds(Limits, st.integers(1_000, 2_000_000), st.integers(0, 200_000)),
    share=st.floats(0.05, 1.0),
    most=st.none() | st.integers(10, 200_000),
    system=st.integers(0, 2_000),
    automatic=st.booleans(),
    off=st.integers(-2, 2),
    least=st.sampled_from([0, 2_000]),
)
def test_the_tokens_shown_are_those_of_the_guard_that_acts(
    limits: Limits,
    share: float,
    most: int | None,
    system: int,
    automatic: bool,
    off: int,
    least: int,
) -> None:
    policy = Policy(Threshold(share, "test"), max_tokens=most, floor=least, automatic=automatic)
    shown = decide(Load(0, system=system), limits, policy).threshold_tokens
    history = max(0, shown + off)
    decision = decide(Load(history, system=system), limits, policy)
    threshold_tokens = most if most is not None else int(decision.limit * share)
    over = (automatic and history > threshold_tokens) or should_condense(
        history + system,
        limits.window,
        max_tokens=min(budget.DEFAULT_MAX_TOKENS, limits.max_output, limits.window // 2) or None,
        threshold=share * 100,
        automatic=automatic,
    )
    over = over and (history >= least or history > min(decision.limit, decision.hard_tokens))
    assert (decision.action == "must") is (history > shown) is over


def test_an_estimate_counts_in_the_decision_and_is_shown_apart() -> None:
    limits = Limits(max_input=100_000, max_output=100_000)
    decision = decide(Load(history=90_000, estimate=500), limits)
    assert decision.action == "must"
    assert decision.tokens == 90_500
    assert (decision.load.history, decision.load.estimate) == (90_000, 500)


def test_a_correction_divides_the_limit_and_never_the_count() -> None:
    plain = decide(Load(history=50_000), Limits(100_000, 50_000))
    corrected = decide(Load(history=50_000), Limits(100_000, 50_000, correction=1.25))
    assert corrected.tokens == plain.tokens == 50_000
    assert corrected.limit == 80_000 - 4_000
    assert corrected.correction == 1.25


@given(
    share=st.floats(0.05, 1.0),
    most=st.none() | st.integers(10, 200_000),
    system=st.integers(0, 100_000),
    reply=st.none() | st.integers(1, 120_000),
)
def test_a_compression_ends_below_what_would_start_the_next(
    share: float, most: int | None, system: int, reply: int | None
) -> None:
    policy = Policy(Threshold(share, "test"), max_tokens=most, floor=0)
    decision = decide(Load(history=10**6, system=system), GPT_4O, policy, max_output=reply)
    if decision.goal == 1:
        return  # what is sent beside the history is too much already
    assert decision.goal <= decision.limit * 0.6
    after = decide(Load(decision.goal, system=system), GPT_4O, policy, max_output=reply)
    assert after.action == "keep"


def test_the_usual_goal_is_sixty_percent_of_the_limit() -> None:
    assert decide(Load(history=0), GPT_4O).goal == int(106_036 * 0.6)


def test_three_quarters_of_what_is_available_is_a_ready_policy() -> None:
    limits = Limits(max_input=10_000, max_output=10_000)
    assert decide(Load(history=6_750, system=1_000), limits, BRANCH_AWARE).action == "should"
    assert decide(Load(history=6_751, system=1_000), limits, BRANCH_AWARE).action == "must"


def test_an_absolute_maximum_is_a_ready_policy() -> None:
    policy = Policy(max_tokens=5_000)
    assert decide(Load(history=5_000), GPT_4O, policy).action == "should"
    assert decide(Load(history=5_001), GPT_4O, policy).reason == "max_tokens"


def test_turned_off_only_the_absolute_arm_of_the_hard_guard_acts() -> None:
    limits = Limits(max_input=90_000, max_output=10_000)
    off = Policy(automatic=False)
    allowed = 100_000 * 0.9 - 8_192
    assert decide(Load(history=int(allowed)), limits, off).reason == "turned_off"
    over = decide(Load(history=int(allowed) + 1), limits, off)
    assert (over.action, over.reason) == ("must", "window")


def test_the_hard_guard_reserves_what_the_request_asks_for() -> None:
    limits = Limits(max_input=50_000, max_output=50_000)
    off = Policy(automatic=False)
    load = Load(history=50_000)
    assert decide(load, limits, off, max_output=40_000).action == "keep"
    assert decide(load, limits, off, max_output=40_001).action == "must"


def test_a_reply_longer_than_the_model_can_write_reserves_no_more_than_that() -> None:
    limits = Limits(max_input=90_000, max_output=10_000)
    usual, huge = (decide(Load(5_000), limits, max_output=each) for each in (10_000, 10**9))
    assert huge == usual
    assert huge.action == "keep"


def test_half_of_the_window_is_for_the_conversation_whatever_reply_is_asked_for() -> None:
    limits = Limits(max_input=12_000, max_output=64_000)
    usual, huge = (decide(Load(9_000), limits, max_output=each) for each in (4_000, 10**9))
    assert (huge.action, huge.threshold_tokens) == (usual.action, usual.threshold_tokens)
    assert huge.threshold_tokens > 10_000


def test_a_due_compression_can_wait_while_the_reply_still_fits() -> None:
    limits = Limits(max_input=90_000, max_output=10_000)
    for system, reply, ceiling in ((0, None, 85_500), (10_000, None, 75_500), (0, 10_000, 85_500)):
        due = decide(Load(ceiling, system=system), limits, max_output=reply)
        assert (due.action, due.ceiling, due.can_wait) == ("must", ceiling, True)
        assert not decide(Load(ceiling + 1, system=system), limits, max_output=reply).can_wait


def test_should_condense_has_the_published_formula() -> None:
    window = 100_000
    assert budget.should_condense(49_999, window, threshold=50) is False
    assert budget.should_condense(50_000, window, threshold=50) is True
    assert budget.should_condense(49_000, window, last_message_tokens=1_000, threshold=50) is True
    allowed = 90_000 - 8_192
    assert budget.should_condense(allowed, window) is False
    assert budget.should_condense(allowed + 1, window) is True
    assert budget.should_condense(85_000, window, max_tokens=5_000) is False
    assert budget.should_condense(85_001, window, max_tokens=5_000) is True
    assert budget.should_condense(60_000, window, threshold=50, automatic=False) is False
    assert budget.should_condense(0, 0) is True  # nothing fits a window of 0


def test_the_constants_have_the_published_values() -> None:
    assert budget.MIN_CONDENSE_THRESHOLD == 5
    assert budget.MAX_CONDENSE_THRESHOLD == 100
    assert budget.TOKEN_BUFFER_PERCENTAGE == 0.1
    assert budget.COMPRESSION_TRIGGER_RATIO == 0.75


@pytest.mark.parametrize(
    ("levels", "share", "source"),
    [
        ({}, 0.95, "default"),
        ({"model": 0.98}, 0.98, "model"),
        ({"model": 0.98, "profile": 70}, 0.70, "profile"),
        ({"model": 0.98, "profile": -1}, 0.98, "model"),
        ({"session": 0.5, "profile": 70}, 0.5, "session"),
        ({"call": 0.3, "session": 0.5}, 0.3, "call"),
        ({"profile": 5}, 0.05, "profile"),
        ({"profile": 100}, 1.0, "profile"),
        ({"profile": 0.5}, 0.5, "profile"),
    ],
)
def test_the_first_level_that_is_set_wins(
    levels: dict[str, float], share: float, source: str
) -> None:
    assert budget.resolve_threshold(**levels) == Threshold(share, source)


@pytest.mark.parametrize("percent", [4, 1.5, 101, 0, -2])
def test_a_profile_outside_the_range_is_ignored_with_a_note(percent: float) -> None:
    resolved = budget.resolve_threshold(profile=percent, model=0.9)
    assert (resolved.share, resolved.source) == (0.9, "model")
    assert f"{percent}" in resolved.note


@pytest.mark.parametrize("share", [0.049, 1.01, 95])
def test_a_threshold_outside_the_range_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match=f"{share:g}"):
        budget.resolve_threshold(call=share)


def test_a_decision_explains_itself_with_figures() -> None:
    words = str(decide(Load(history=110_000), GPT_4O))
    assert words == "must: 110,000 tokens exceed the threshold of 100,734"


def test_more_reserved_than_fits_is_due_and_does_not_divide_by_zero() -> None:
    decision = decide(Load(history=3_000, system=200_000), GPT_4O)
    assert decision.action == "must"
    assert decision.utilization == 1.0


@given(
    history=st.integers(0, 10**7),
    more=st.integers(0, 10**6),
    reserved=st.integers(0, 10**5),
    automatic=st.booleans(),
)
def test_more_tokens_never_make_a_compression_less_due(
    history: int, more: int, reserved: int, automatic: bool
) -> None:
    order = {"keep": 0, "should": 1, "must": 2}
    policy = Policy(automatic=automatic)
    less = decide(Load(history, system=reserved), GPT_4O, policy)
    greater = decide(Load(history + more, system=reserved), GPT_4O, policy)
    assert order[less.action] <= order[greater.action]
