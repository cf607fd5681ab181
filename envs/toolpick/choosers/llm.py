"""A real language model behind a chat endpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolpick.chat import Chat, Message
from toolpick.choosers import FAILED, NONE, Presented
from toolpick.datasets import Tool
from toolpick.errors import InputError

_SYSTEM = (
    "You pick the tool that serves a user's request. You get a numbered list of tools, one JSON object a line, and "
    'the request. Reply with one JSON object and nothing else: {"tool": "<name>"}, the name copied exactly from the '
    'list, or {"tool": null} if no tool in the list serves the request.'
)


@dataclass(frozen=True)
class Llm:
    """Shows the model the cards of a shortlist and the request, and reads {"tool": name} from its answer.

    Every answer is recorded by the chat client, so that a study can be replayed without the model. An answer
    that is anything but that JSON object, or names a tool that was not shown, is a failure. An endpoint that
    gives no answer is an error: an outage is no wrong choice.

    Args:
        chat: the client, in mode `record` or `replay`.
        workers: requests at a time; results do not depend on it.

    Raises:
        InputError: a client that does not record; when called, what the client raises.
        ChatError: when called, the endpoint gave no usable answer.
    """

    chat: Chat
    workers: int = 4

    def __post_init__(self) -> None:
        if self.chat.mode == "live":
            raise InputError("chooser llm: chat.mode=live keeps no record of the answers; use record or replay")
        if self.workers < 1:
            raise InputError(f"chooser llm: workers must be 1 or more, got {self.workers}")

    @property
    def name(self) -> str:
        """In result tables."""
        return f"llm:{self.chat.model}"

    def __call__(self, presented: Presented) -> NDArray[np.int64]:
        with ThreadPoolExecutor(self.workers) as pool:
            ranks = list(pool.map(lambda row: self._rank(presented, row), range(len(presented))))
        return np.array([rank if rank < 0 else presented.order[row, rank] for row, rank in enumerate(ranks)], np.int64)

    def _rank(self, presented: Presented, row: int) -> int:
        shown = presented.shown(row)
        return _read(self.chat(prompt(presented.query_texts[row], shown)).text, [tool.name for tool in shown])


def prompt(query: str, tools: Sequence[Tool]) -> list[Message]:
    """The conversation that asks for one of these tools."""
    cards = [
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}, ensure_ascii=False
        )
        for tool in tools
    ]
    lines = "\n".join(f"{number}. {card}" for number, card in enumerate(cards, start=1))
    return [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": f"Tools:\n{lines}\n\nRequest: {query}"},
    ]


def _read(text: str, names: list[str]) -> int:
    """0-based rank of the tool an answer names, `NONE` or `FAILED`."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return FAILED
    if not isinstance(answer, dict) or set(answer) != {"tool"}:
        return FAILED
    if answer["tool"] is None:
        return NONE
    return names.index(answer["tool"]) if answer["tool"] in names else FAILED
