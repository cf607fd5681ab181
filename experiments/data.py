"""What data there is, and getting it.

python -m experiments.data list
python -m experiments.data fetch [DATASET ...]
python -m experiments.data verify [DATASET ...]

DATASET is a variant of the configuration group `dataset`; all of them where none is named. `list` reads and fetches
nothing. `fetch` downloads what is not there, into the cache folder. `verify` checks the sha256 of every file that is
there. The exit code is 1 where a file cannot be had (fetch) or has other bytes than it should (verify).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import pandas as pd
import yaml
from hydra.utils import instantiate

from experiments.compose import CONF
from toolpick.datasets.fetch import PinnedFile
from toolpick.errors import InputError

_MIB = 2**20


def variants() -> dict[str, tuple[PinnedFile, ...] | None]:
    """The pinned files of each dataset variant; None where the user's own files are asked for."""
    found = {}
    for path in sorted((CONF / "dataset").glob("*.yaml")):
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
        own = "???" in settings.values()
        found[path.stem] = None if own else getattr(instantiate(settings, _convert_="all"), "needs", ())
    return found


def chosen(names: Sequence[str]) -> dict[str, tuple[PinnedFile, ...]]:
    """The pinned files of the named datasets, of all where none is named.

    Raises:
        InputError: a dataset that there is not.
    """
    known = variants()
    for name in names:
        if name not in known:
            raise InputError(f"no dataset {name!r}; there are {sorted(known)}")
    return {name: known[name] or () for name in names or known}


def listed() -> pd.DataFrame:
    """A row a dataset: `dataset`, `state`, `files`, `MiB`, `licence`, `needs`."""
    rows = []
    for name, files in variants().items():
        row = {"dataset": name, "state": "-", "files": "-", "MiB": "-", "licence": "-"}
        if files:
            here = sum(file.present for file in files)
            row["state"] = "present" if here == len(files) else f"{here} of {len(files)}" if here else "absent"
            row |= {"files": str(len(files)), "MiB": f"{sum(file.size for file in files) / _MIB:.1f}"}
            row |= {"licence": files[0].licence, "needs": str(files[0].origin)}
        else:
            row["needs"] = "files of your own" if files is None else "nothing: it is generated"
        rows.append(row)
    return pd.DataFrame(rows)


def fetch(names: Sequence[str]) -> int:
    """Get what is not there. Returns how many files could not be had; each is reported on stderr."""
    failed = 0
    for file in _distinct(names):
        try:
            was_here = not file.fault
            if not was_here:
                file.read()
            print(f"{'here' if was_here else 'fetched':8}{file.size / _MIB:6.2f} MiB  {file.dataset}/{file.path}")
        except InputError as error:
            failed += 1
            print(f"error: {error}", file=sys.stderr)
    return failed


def verify(names: Sequence[str]) -> int:
    """Check the sha256 of what is there. Returns how many files have other bytes than they should."""
    damaged = 0
    for file in _distinct(names):
        if not file.present:
            print(f"absent  {file.dataset}/{file.path}")
        elif file.fault:
            damaged += 1
            print(f"error: {file.fault}", file=sys.stderr)
        else:
            print(f"ok      {file.dataset}/{file.path}")
    return damaged


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="{list,fetch,verify}")
    commands.add_parser("list", help="what there is, what it needs, and whether that is here")
    for command, summary in (("fetch", "get files that are not here"), ("verify", "check the sha256 of files")):
        commands.add_parser(command, help=summary).add_argument("datasets", nargs="*", metavar="DATASET")
    arguments = parser.parse_args()
    try:
        if arguments.command == "list":
            print(listed().to_string(index=False))
            return
        failed = (fetch if arguments.command == "fetch" else verify)(arguments.datasets)
    except InputError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print("interrupted: finished files are kept; the same command goes on from them", file=sys.stderr)
        sys.exit(130)
    sys.exit(1 if failed else 0)


def _distinct(names: Sequence[str]) -> list[PinnedFile]:
    return list(dict.fromkeys(file for files in chosen(names).values() for file in files))


if __name__ == "__main__":
    main()
