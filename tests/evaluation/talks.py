"""A conversation that is easy to judge: old facts, then much talk."""

from __future__ import annotations

HEAVY = "The anchor of the Halcyon weighs nine stone and was forged in Whitby in 1874."
TALK = "Somebody talked about the weather at great length and then about the price of rope again."


def conversation(number: int, *, tools: bool = False) -> dict[str, object]:
    """Old facts, then much talk; the facts answer the questions."""
    messages: list[dict[str, object]] = [
        {"id": "fact", "role": "user", "content": f"{HEAVY} Ledger ENT-{number}-4471 has it."},
        {"id": "late", "role": "assistant", "content": "Noted: Whitby, invoice 88213.40 EUR."},
    ]
    for turn in range(60):
        role = "assistant" if turn % 2 else "user"
        text = f"Note {turn} in log/{turn}.txt: {TALK} {turn * 37 % 101} fathoms, berth {turn}."
        messages.append({"id": f"t{turn}", "role": role, "content": text})
    if tools:
        call = {"id": "c1", "type": "function", "function": {"name": "weigh", "arguments": "{}"}}
        messages[3:3] = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "nine stone " * 50},
        ]
    probes = [
        {"question": "What does the anchor weigh?", "evidence_message_ids": ["fact"]},
        {"question": "Which invoice was noted?", "evidence_message_ids": ["late"]},
        {"question": "Nobody knows where this is", "evidence_message_ids": []},
    ]
    return {"id": f"talk-{number}", "messages": messages, "probes": probes}
