"""The API as a whole: its description is complete, with examples."""

from __future__ import annotations

from typing import Any

from tests.server.conftest import Client


async def test_every_operation_is_described(client: Client) -> None:
    api = (await client.get("/openapi.json")).json()
    ids: list[str] = []
    for path, methods in api["paths"].items():
        assert path.startswith("/api/")
        for about in methods.values():
            ids.append(about["operationId"])
            assert about["summary"]
            assert about["description"]
            assert {"4XX", "5XX"} <= about["responses"].keys()
            assert "422" not in about["responses"]
    assert len(ids) == len(set(ids))


async def test_every_request_body_has_an_example(client: Client) -> None:
    api = (await client.get("/openapi.json")).json()
    without = [
        name for name in _bodies(api) if not api["components"]["schemas"][name].get("examples")
    ]
    assert without == []


async def test_every_field_and_parameter_is_described(client: Client) -> None:
    api = (await client.get("/openapi.json")).json()
    fields = [
        f"{name}.{field}"
        for name, shape in api["components"]["schemas"].items()
        for field, about in shape.get("properties", {}).items()
        if not about.get("description") and "$ref" not in about
    ]
    parameters = [
        f"{about['operationId']}: {each['name']}"
        for methods in api["paths"].values()
        for about in methods.values()
        for each in about.get("parameters", ())
        if not each.get("description")
    ]
    assert fields + parameters == []


def _bodies(api: dict[str, Any]) -> set[str]:
    return {
        about["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        for methods in api["paths"].values()
        for about in methods.values()
        if "requestBody" in about
    }
