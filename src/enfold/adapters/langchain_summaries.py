"""A LangChain chat model as a writer of enfold's summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from enfold import tokens
from enfold.dialects.langchain import parse_message
from enfold.errors import SummaryError
from enfold.messages import text_of
from enfold.summaries import Summary, SummaryRequest, Usage
from enfold.summaries.prompts import build

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_HIDDEN = "nostream"
"""The tag of calls whose tokens a graph does not stream."""


class ChatModelSummarizer:
    """Asks the model, with enfold's prompts; what the model raises is raised."""

    def __init__(self, model: BaseChatModel) -> None:
        self._model = model
        profile: dict[str, Any] = getattr(model, "profile", None) or {}
        self.max_input: int | None = profile.get("max_input_tokens")
        self.name = model.get_name()

    async def summarize(self, request: SummaryRequest) -> Summary:
        """The summary of the request, or `SummaryError` where the reply holds no text."""
        from langchain_core.messages import HumanMessage, SystemMessage

        prompt = build(request)
        question = [SystemMessage(prompt.system), HumanMessage(prompt.user)]
        reply = await self._model.ainvoke(question, {"tags": [_HIDDEN]})
        text = text_of(parse_message(reply).parts)
        if not text.strip():
            raise SummaryError(f"the model {self.name} gave no text as a summary")
        used = reply.usage_metadata
        usage = Usage() if used is None else Usage(used["input_tokens"], used["output_tokens"])
        return Summary(text, self.name, tokens.get(request.tokenizer).count(text), usage)
