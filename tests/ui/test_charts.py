"""Options for the chart library."""

from __future__ import annotations

from enfold.ui.dashboard import BAD, Series, options


def test_fonts_colours_and_legend_are_set() -> None:
    found = options(["a", "b"], [Series("one", [1, 2]), Series("two", [3, 4], "bar", BAD)])
    assert "system-ui" in found["textStyle"]["fontFamily"]
    assert found["legend"]["show"]
    assert found["legend"]["top"] == 0
    assert found["color"][1] == BAD
    assert [each["data"] for each in found["series"]] == [[1, 2], [3, 4]]
    assert len(found["yAxis"]) == 1


def test_money_has_an_axis_of_its_own() -> None:
    found = options(["a"], [Series("x", [1]), Series("y", [0.5], "line", second_axis=True)])
    assert [axis["axisLabel"]["formatter"] for axis in found["yAxis"]] == ["{value}", "${value}"]
    assert [each["yAxisIndex"] for each in found["series"]] == [0, 1]


def test_a_single_series_has_no_legend_and_gaps_are_connected() -> None:
    found = options(["a", "b"], [Series("share", [10, None], "line")], "%")
    assert not found["legend"]["show"]
    assert found["yAxis"][0]["axisLabel"]["formatter"] == "{value} %"
    assert found["series"][0]["connectNulls"]
