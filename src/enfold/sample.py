"""A sample: a conversation that is already long, for the demo and for trying things out."""

from __future__ import annotations

from collections.abc import Iterator

from enfold.messages import Message, Text, ToolCall, ToolResult

TITLE = "Planning the harbour festival"

_ROUNDS: tuple[tuple[str, str, str, str], ...] = (
    (
        (
            "We are planning the harbour festival in Lindvik. It should be on 12 June 2027, and the "
            "council gives us at most 48,000 euros. Please keep everything in euros."
        ),
        "read_file",
        "budget.csv",
        (
            "Noted: harbour festival in Lindvik, 12 June 2027, at most 48,000 euros. The budget file "
            "has 38,450 euros committed already, so 9,550 are free."
        ),
    ),
    (
        "Who rents out stages around here? We need one of at least 8 by 6 metres.",
        "search",
        "stage rental",
        (
            "Three suppliers fit. Bryggen Scene asks 6,200 euros for 10 by 8 metres with a roof; "
            "Nordlys Teknikk asks 4,900 for 8 by 6 without one; Holm & Sønner has nothing in June."
        ),
    ),
    (
        "The weather in June is unreliable. Let's take the stage with the roof from Bryggen Scene.",
        "",
        "",
        (
            "Decided: Bryggen Scene, 10 by 8 metres with a roof, 6,200 euros. Their contact is Marit "
            "Aune, marit@bryggen.example. That leaves 3,350 euros."
        ),
    ),
    (
        "Check the permits. I think the fire office wanted something by the end of March.",
        "read_file",
        "permits/checklist.md",
        (
            "The fire office wants the escape plan by 31 March 2027 (form BR-114). The harbour master "
            "wants the mooring plan by 15 April. The noise permit ends at 23:00."
        ),
    ),
    (
        "Can you run the visitor forecast with the numbers from the last three years?",
        "run",
        "python forecast.py --years 2024 2025 2026",
        (
            "The forecast says 5,400 visitors, between 4,700 and 6,100. The run warned that 2025 has "
            "no figures for Saturday evening, because the counter at the east gate had failed."
        ),
    ),
    (
        "Then two gates are not enough. How many stewards do we need for three?",
        "",
        "",
        (
            "With three gates and 5,400 visitors: 18 stewards per shift, two shifts, so 36. At 140 "
            "euros each that is 5,040 euros, which is more than the 3,350 that are free."
        ),
    ),
    (
        "Hm. What about volunteers from the rowing club? Ingrid said they could send 20 people.",
        "",
        "",
        (
            "With 20 volunteers we hire 16 stewards: 2,240 euros. Then 1,110 euros are left. Open: "
            "Ingrid has to confirm the 20 volunteers in writing before 1 May."
        ),
    ),
    (
        "Upload the escape plan and tell me if the form takes it.",
        "run",
        "python submit.py --form BR-114 plans/escape_v2.pdf",
        (
            "The upload failed with error E-4031: the plan must not be larger than 5 MB, and ours has "
            "7.8 MB. I have not submitted anything."
        ),
    ),
    (
        "Make it smaller and try again.",
        "run",
        "python submit.py --form BR-114 plans/escape_v2_small.pdf",
        "Submitted. The plan has 3.1 MB now, and the receipt is BR-114-2027-0093.",
    ),
    (
        (
            "Correction: the date moves to 19 June 2027, because the ferry is in the yard on the 12th. "
            "Please ask whether the stage is free then."
        ),
        "search",
        "Bryggen Scene 19 June 2027",
        (
            "The stage is free on 19 June 2027 for the same 6,200 euros. The permit names no date, so "
            "it stays valid. The festival is now on 19 June 2027 instead of 12 June."
        ),
    ),
    (
        "What did we say about the noise permit again, and what is still open?",
        "",
        "",
        (
            "The noise permit ends at 23:00. Still open: Ingrid's confirmation of 20 volunteers before "
            "1 May, the mooring plan for the harbour master by 15 April, and who opens the east gate."
        ),
    ),
)

_LINES = 40


def sample_messages(repeats: int = 3) -> tuple[Message, ...]:
    """The conversation; more repeats make its middle longer, with further days of the same work."""
    messages: list[Message] = []
    for day in range(repeats):
        for number, (asked, tool, target, answered) in enumerate(_ROUNDS):
            messages.extend(_round(f"{day}-{number}", asked, tool, target, answered))
    return tuple(messages)


def _round(id: str, asked: str, tool: str, target: str, answered: str) -> Iterator[Message]:
    yield Message("user", (Text(asked),))
    if tool:
        yield Message("assistant", (ToolCall(f"call-{id}", tool, {"target": target}),))
        output = _output(tool, target)
        yield Message("tool", (ToolResult(f"call-{id}", (Text(output),), name=tool),))
    yield Message("assistant", (Text(answered),))


def _output(tool: str, target: str) -> str:
    """What such a tool prints: long, and mostly of no use afterwards."""
    lines = {
        "read_file": "{n:>4}  row {n}: item {n}, {a} euros, paid {b} of {c}, note {target}",
        "search": "{n:>3}. supplier {a} in Lindvik, {b} euros, rated {c} of 900 for {target}",
        "run": "[{n:>3}] step {n}: processed {a} records in {b} ms, {c} left ({target})",
    }[tool]
    return "\n".join(
        lines.format(n=n, a=n * 37 % 911, b=n * 53 % 577, c=n * 71 % 883, target=target)
        for n in range(1, _LINES + 1)
    )
