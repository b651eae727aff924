"""`enfold presets`, and condensing with one."""

from __future__ import annotations

from pathlib import Path

from enfold.jsontext import dumps, loads
from enfold.strategies.presets import BUILT_IN
from tests.cli.conftest import Enfold


def test_presets_are_listed_and_shown(stored: Enfold) -> None:
    listed = stored("presets", "--json").json
    assert [preset["name"] for preset in listed] == list(BUILT_IN)
    assert all(preset["builtIn"] for preset in listed)
    text = stored("presets", "list").text
    assert all(name in text for name in BUILT_IN)
    assert stored("presets", "show", "speed").json["strategy"] == "smart"


def test_a_preset_is_exported_and_imported_under_another_name(
    stored: Enfold, tmp_path: Path
) -> None:
    file = tmp_path / "mine.json"
    assert stored("presets", "export", "balanced", "--out", file).code == 0
    assert loads(file.read_bytes())["version"] == 1
    refused = stored("presets", "import", file)
    assert (refused.code, refused.out) == (2, b"")
    assert "built in" in refused.stderr_text
    assert stored("presets", "import", file, "--name", "mine").code == 0
    assert stored("presets", "show", "mine").json["name"] == "mine"
    assert stored("presets", "import", file, "--name", "mine").code == 2
    assert stored("presets", "import", file, "--name", "mine", "--replace").code == 0
    assert stored("presets", "delete", "mine").code == 0
    assert stored("presets", "show", "mine").code == 2


def test_a_file_that_cannot_be_used_is_named_with_the_field(stored: Enfold, tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    preset = stored("presets", "show", "balanced").json
    preset["config"]["passes"][1]["selection"]["type"] = "newest"
    file.write_bytes(dumps(preset))
    outcome = stored("presets", "import", file)
    assert outcome.code == 2
    assert "broken.json: config.passes[1].selection.type: expected one of" in outcome.stderr_text


def test_a_preset_is_applied_and_current_settings_are_saved_as_one(festival: Enfold) -> None:
    assert "smart" in festival("presets", "apply", "speed").stderr_text
    settings = festival("settings", "--json").json
    assert settings["strategy"]["value"] == "smart"
    assert settings["strategy"]["source"] == "database"
    assert len(settings["strategy_config"]["value"]["smart"]["passes"]) == 3
    assert festival("presets", "save", "mine", "--description", "For me.").code == 0
    mine = festival("presets", "show", "mine").json
    assert (mine["strategy"], mine["description"]) == ("smart", "For me.")
    assert festival("presets", "apply", "balanced", "--session", "festival").code == 0
    config = festival("settings", "--json").json["strategy_config"]["value"]
    assert len(config["smart"]["passes"]) == 3
    assert festival("presets", "apply", "balanced", "--session", "nobody").code == 2


def test_a_conversation_is_condensed_with_a_preset(stored: Enfold, sample: Path) -> None:
    report = stored("condense", sample, "--preset", "balanced", "--json").json["report"]
    assert report["strategy"] == "smart"
    assert "summarize_old_completed" in report["operations"]
    stored("presets", "apply", "balanced")
    stored("presets", "save", "mine")
    assert stored("condense", sample, "--preset", "mine", "--json").json["report"] is not None


def test_a_preset_and_a_config_of_your_own(stored: Enfold, sample: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(dumps({"losslessPrelude": {"enabled": False}, "passes": []}))
    outcome = stored("condense", sample, "--preset", "balanced", "--config", config, "--json")
    assert outcome.json["report"]["operations"] == []
    config.write_bytes(dumps({"prelude": True}))
    outcome = stored("condense", sample, "--preset", "balanced", "--config", config)
    assert (outcome.code, outcome.out) == (2, b"")
    assert "prelude: unknown field; available: losslessPrelude, passes" in outcome.stderr_text


def test_an_unknown_preset_and_one_of_another_strategy_are_refused(
    stored: Enfold, sample: Path
) -> None:
    assert "no preset 'fast'" in stored("condense", sample, "--preset", "fast").stderr_text
    outcome = stored("condense", sample, "--preset", "speed", "--strategy", "native")
    assert outcome.code == 2
    assert "for the strategy smart" in outcome.stderr_text
