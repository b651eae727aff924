"""A library for Python in a tool loop, through the address that it is given.

It runs in an environment of its own, because these libraries need other versions than enfold:

    python python_loop.py NAME ADDRESS MODEL SYSTEM PROMPT
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

MAX_STEPS = 300


def read(path: str) -> str:
    """Read a file."""
    return Path(path).read_text("utf-8")


def shell(command: str) -> str:
    """Run a command."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr or f"exit {done.returncode}"


TOOLS: Mapping[str, Callable[..., str]] = {"read": read, "shell": shell}
ARGUMENTS = {"read": "path", "shell": "command"}


def run_litellm(address: str, model: str, system: str, prompt: str) -> str:
    """Call the model in a loop, as the documentation of LiteLLM shows it."""
    litellm: Any = import_module("litellm")
    messages: list[Any] = [
        {"role": "system", "content": system},
        {"role": "user", "content": prompt},
    ]
    tools = [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": tool.__doc__,
                "parameters": {
                    "type": "object",
                    "properties": {ARGUMENTS[name]: {"type": "string"}},
                    "required": [ARGUMENTS[name]],
                },
            },
        }
        for name, tool in TOOLS.items()
    ]
    for _ in range(MAX_STEPS):
        reply = litellm.completion(
            model=f"openai/{model}",
            api_base=f"{address}/v1",
            api_key="test",
            messages=messages,
            tools=tools,
            num_retries=0,
        )
        message = reply.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return str(message.content)
        for call in message.tool_calls:
            text = TOOLS[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    raise SystemExit("the model never ended the loop")


def run_langgraph(address: str, model: str, system: str, prompt: str) -> str:
    """Run an agent of LangChain, which is a graph of LangGraph."""
    openai: Any = import_module("langchain_openai")
    agents: Any = import_module("langchain.agents")
    chat = openai.ChatOpenAI(model=model, base_url=f"{address}/v1", api_key="test", max_retries=0)
    agent = agents.create_agent(chat, list(TOOLS.values()), system_prompt=system)
    inputs = {"messages": [{"role": "user", "content": prompt}]}
    state = agent.invoke(inputs, {"recursion_limit": MAX_STEPS})
    return str(state["messages"][-1].content)


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    loops = {"litellm": run_litellm, "langgraph": run_langgraph}
    sys.stdout.write(loops[name](*arguments))
