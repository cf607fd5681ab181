"""Recorded answers of a language model: one file a request, whole or not there."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolpick.errors import InputError


def request_key(request: dict[str, Any]) -> str:
    """sha256 of a request's canonical JSON."""
    return _digest(request)


@dataclass(frozen=True)
class ChatCache:
    """A folder with `<key>.json` for each request: {"request", "answer", "sha256" of both}.

    Any number of processes may read and write one folder at once.
    """

    folder: Path

    def path(self, key: str) -> Path:
        """Where the answer to this request is or would be."""
        return self.folder / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The recorded answer, or None.

        Raises:
            InputError: the file is damaged, or belongs to another request than its name says.
        """
        path = self.path(key)
        try:
            entry = json.loads(path.read_bytes())
            request, answer, checksum = entry["request"], entry["answer"], entry["sha256"]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise InputError(f"cannot read recorded answer {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{path}: not a recorded answer ({error!r}); {_MEND}") from error
        if checksum != _digest([request, answer]):
            raise InputError(f"{path}: key 'sha256' does not fit the content; {_MEND}")
        if request_key(request) != key:
            raise InputError(f"{path}: holds the answer to another request than its name says; {_MEND}")
        return answer

    def put(self, key: str, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Record an answer.

        Raises:
            InputError: the folder cannot be written.
        """
        entry = {"request": request, "answer": answer, "sha256": _digest([request, answer])}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write_whole(self.path(key), json.dumps(entry, indent=1).encode())
        except OSError as error:
            raise InputError(f"cannot record an answer in {self.folder}: {error.strerror or error}") from error


_MEND = "delete the file and record it again"


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _write_whole(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
