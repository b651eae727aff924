"""Client libraries in a long tool loop through the proxy, against the strict provider."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import types as google

from enfold.testing.provider import StrictProvider
from enfold.wiring import open_engine
from tests.agents.loops import PROMPT, RULES, LoopScript, Tools, examine, make_project
from tests.agents.test_agents import INSTALLED, STEPS
from tests.server.processes import serve

pytestmark = [
    pytest.mark.agents,
    pytest.mark.timeout(1_200),
    # Google's library extends a class of aiohttp.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

SYSTEM = "You audit the ferry planner.\n" + "\n".join(f"- {rule}" for rule in RULES)
DONE = "The audit is done."
TOOLS = Tools(
    lambda path: ("read", {"path": str(path)}), lambda command: ("shell", {"command": command})
)
SCHEMAS = {
    "read": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
    "shell": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}
MAX_TURNS = 100

Client = Callable[[str, Path], Awaitable[str]]
"""Runs a loop through the address, in the project; returns the last text."""


def _use(project: Path, name: str, arguments: Mapping[str, Any]) -> str:
    """Run a tool."""
    if name == "read":
        return Path(arguments["path"]).read_text("utf-8")
    done = subprocess.run(
        ["bash", "-c", arguments["command"]],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr or f"exit {done.returncode}"


async def _openai_chat(address: str, project: Path) -> str:
    messages: list[Any] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": PROMPT},
    ]
    tools: list[Any] = [
        {"type": "function", "function": {"name": name, "parameters": schema}}
        for name, schema in SCHEMAS.items()
    ]
    async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0) as client:
        for _ in range(MAX_TURNS):
            reply = await client.chat.completions.create(
                model="gpt-4o", messages=messages, tools=tools
            )
            message = reply.choices[0].message
            messages.append(message.to_dict())
            if not message.tool_calls:
                return message.content or ""
            for call in message.tool_calls:
                function: Any = call.to_dict()["function"]
                text = _use(project, function["name"], json.loads(function["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return ""


async def _openai_responses(address: str, project: Path) -> str:
    items: list[Any] = [{"role": "user", "content": PROMPT}]
    tools: list[Any] = [
        {"type": "function", "name": name, "parameters": schema, "strict": False}
        for name, schema in SCHEMAS.items()
    ]
    async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0) as client:
        for _ in range(MAX_TURNS):
            reply = await client.responses.create(
                model="gpt-4o",
                instructions=SYSTEM,
                input=items,
                tools=tools,
                store=False,
                include=["reasoning.encrypted_content"],
            )
            items += (item.to_dict() for item in reply.output)
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                return reply.output_text
            for call in calls:
                text = _use(project, call.name, json.loads(call.arguments))
                output = {"type": "function_call_output", "call_id": call.call_id, "output": text}
                items.append(output)
    return ""


async def _anthropic(address: str, project: Path) -> str:
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    tools: list[Any] = [{"name": name, "input_schema": s} for name, s in SCHEMAS.items()]
    async with anthropic.AsyncAnthropic(base_url=address, api_key="k", max_retries=0) as client:
        for _ in range(MAX_TURNS):
            async with client.messages.stream(
                model="claude-opus-4-8",
                max_tokens=4_000,
                system=SYSTEM,
                messages=messages,
                tools=tools,
                thinking={"type": "adaptive"},
            ) as stream:
                reply = await stream.get_final_message()
            blocks: list[Any] = [block.to_dict() for block in reply.content]
            messages.append({"role": "assistant", "content": blocks})
            uses = [block for block in blocks if block["type"] == "tool_use"]
            if not uses:
                return "".join(block.get("text", "") for block in blocks)
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": use["id"],
                    "content": _use(project, use["name"], use["input"]),
                }
                for use in uses
            ]
            messages.append({"role": "user", "content": results})
    return ""


async def _google(address: str, project: Path) -> str:
    declarations = [
        google.FunctionDeclaration(name=name, parameters_json_schema=schema)
        for name, schema in SCHEMAS.items()
    ]
    config = google.GenerateContentConfig(
        system_instruction=SYSTEM,
        tools=[google.Tool(function_declarations=declarations)],
        automatic_function_calling=google.AutomaticFunctionCallingConfig(disable=True),
    )
    client = genai.Client(api_key="k", http_options=google.HttpOptions(base_url=address))
    contents: list[Any] = [google.Content(role="user", parts=[google.Part(text=PROMPT)])]
    for _ in range(MAX_TURNS):
        reply = await client.aio.models.generate_content(
            model="gemini-2.5-pro", contents=contents, config=config
        )
        assert reply.candidates
        contents.append(reply.candidates[0].content)
        calls = reply.function_calls or []
        if not calls:
            await client.aio.aclose()
            return reply.text or ""
        parts = [
            google.Part.from_function_response(
                name=str(call.name),
                response={"output": _use(project, str(call.name), call.args or {})},
            )
            for call in calls
        ]
        contents.append(google.Content(role="user", parts=parts))
    return ""


async def _openai_agents(address: str, project: Path) -> str:
    import agents

    agents.set_tracing_disabled(disabled=True)

    @agents.function_tool
    def read(path: str) -> str:
        return _use(project, "read", {"path": path})

    @agents.function_tool
    def shell(command: str) -> str:
        return _use(project, "shell", {"command": command})

    async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0) as client:
        model = agents.OpenAIResponsesModel(model="gpt-4o", openai_client=client)
        agent = agents.Agent(name="audit", instructions=SYSTEM, model=model, tools=[read, shell])
        result = await agents.Runner.run(agent, PROMPT, max_turns=MAX_TURNS)
    return str(result.final_output)


async def _pydantic_ai(address: str, project: Path) -> str:
    from pydantic_ai import Agent, UsageLimits
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    async with anthropic.AsyncAnthropic(base_url=address, api_key="k", max_retries=0) as client:
        provider = AnthropicProvider(anthropic_client=client)
        agent = Agent(AnthropicModel("claude-opus-4-8", provider=provider), instructions=SYSTEM)

        @agent.tool_plain
        def read(path: str) -> str:
            return _use(project, "read", {"path": path})

        @agent.tool_plain
        def shell(command: str) -> str:
            return _use(project, "shell", {"command": command})

        result = await agent.run(
            PROMPT,
            usage_limits=UsageLimits(request_limit=MAX_TURNS),
            model_settings={"max_tokens": 4_000},
        )
    return str(result.output)


async def _output(project: Path, *command: str | Path) -> str:
    """Run a program in the project; return what it writes."""
    quiet = {"AI_SDK_LOG_WARNINGS": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=project,
        env={"PATH": os.environ["PATH"], "HOME": str(project), **quiet},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-2000:]
    return out.decode().strip()


def _ai_sdk(provider: str, model: str) -> Client:
    async def run(address: str, project: Path) -> str:
        node = shutil.which("node")
        if node is None or not (INSTALLED / "node_modules" / "ai").exists():
            pytest.skip("Node.js or the AI SDK is not installed; `make test-agents` installs it")
        script = Path(__file__).with_name("ai_sdk.mjs")
        given = (INSTALLED.resolve(), provider, address, model, SYSTEM, PROMPT)
        return await _output(project, node, script, *given)

    return run


def _python_loop(name: str) -> Client:
    async def run(address: str, project: Path) -> str:
        python = INSTALLED / "libraries" / "bin" / "python"
        missing = INSTALLED / "missing-libraries.txt"
        if missing.exists():
            pytest.skip(missing.read_text("utf-8"))
        if not (INSTALLED / "libraries" / "installed.txt").exists():
            pytest.skip(f"{name} is not installed; `make test-agents` installs it")
        script = Path(__file__).with_name("python_loop.py")
        return await _output(project, python, script, name, address, "gpt-4o", SYSTEM, PROMPT)

    return run


CLIENTS: Mapping[str, Client] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "google-genai": _google,
    "openai-agents": _openai_agents,
    "pydantic-ai": _pydantic_ai,
    "ai-sdk-openai": _ai_sdk("openai", "gpt-4o"),
    "ai-sdk-anthropic": _ai_sdk("anthropic", "claude-opus-4-8"),
    "langgraph": _python_loop("langgraph"),
    "litellm": _python_loop("litellm"),
}
WINDOWS = {
    "openai:gpt-4o": 40_000,
    "anthropic:claude-opus-4-8": 40_000,
    "google:gemini-2.5-pro": 40_000,
}


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_long_loop_of_a_library_stays_valid(name: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    make_project(project, STEPS)
    store = f"sqlite:///{tmp_path / 'enfold.db'}"
    async with open_engine(store) as engine:
        for model, window in WINDOWS.items():
            await engine.models.edit(model, max_input=window, max_output=4_000)
    script = LoopScript(TOOLS, project, STEPS)
    with StrictProvider(script) as provider:
        variables = {
            f"ENFOLD_{upstream}_BASE_URL": provider.address
            for upstream in ("OPENAI", "ANTHROPIC", "GEMINI")
        }
        with serve(store, "--no-ui", ENFOLD_PROXY_CLIENT_KEY="1", **variables) as server:
            text = await CLIENTS[name](server.address, project)
            async with httpx.AsyncClient(base_url=server.address, timeout=60) as api:
                activity = (await api.get("/api/activity")).json()
            server.stop()
    compressions = activity["total"]["compressions"]
    found = examine(script.main)
    assert not provider.refused, [request.faults for request in provider.refused]
    assert text == DONE
    assert found.requests == STEPS + 1, "a step was repeated"
    assert not found.without_rule
    assert not found.without_prompt
    assert provider.overflows == 1
    assert 2 <= compressions <= found.requests / 5
    assert found.breaks <= compressions, "the prefix changed without a compression"
