"""Histories in memory, and those of a test while it runs, in the lines of Kingsnake's own format (docs/formats.md)."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal

Status = Literal["committed", "aborted", "unknown"]


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"


def _transaction(
    number: int,
    session: Any,
    ops: Sequence[Sequence[Any]],
    status: Status,
    begin: int | None,
    commit: int | None,
    fields: dict[str, Any],
) -> str:
    if status not in ("committed", "aborted", "unknown"):
        raise ValueError(f"a status is committed, aborted or unknown, not {status!r}")
    line: dict[str, Any] = {"id": number, "session": session, "status": status}
    for name, at in (("begin", begin), ("commit", commit)):
        if at is not None:
            line[name] = at
    return _line({**line, **fields, "ops": [list(op) for op in ops]})


class History:
    """What clients saw: sessions of transactions.

    An operation is a list or a tuple as docs/formats.md has them: ("r", key, value), ("w", key, value), ("a", key, value) for an append,
    ("rl", key, [values]) for a list, ("range", low, high, [(key, value)]), ("delete", key), and so on; None is no value.
    """

    def __init__(self, initial: Any = None, **header: Any) -> None:
        """An empty history. `initial` is the value of every key before the first transaction."""
        self._lines = [_line({"kingsnake": 1, "initial": initial, **header})]
        self._n_txns = 0

    def add(
        self,
        session: int | str,
        ops: Sequence[Sequence[Any]],
        status: Status = "committed",
        begin: int | None = None,
        commit: int | None = None,
        **fields: Any,
    ) -> None:
        """Adds a transaction. `begin` and `commit` are nanoseconds of one clock; `fields` are others of the format."""
        line = _transaction(self._n_txns + 1, session, ops, status, begin, commit, fields)
        self._n_txns += 1
        self._lines.append(line)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the history to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(self._lines)

    def _text(self) -> str:
        return "".join(self._lines)

    def __len__(self) -> int:
        return self._n_txns


class Transaction:
    """A transaction that runs. At the end of its `with` block it has committed; an exception means that it was aborted.

    Where the answer to the commit was lost, call `unknown` before the block ends.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ops: list[list[Any]] = []
        self._status: Status | None = None
        self._begin = time.monotonic_ns()

    def read(self, key: Any, value: Any) -> Any:
        """Notes a read, and returns the value."""
        self._ops.append(["r", key, value])
        return value

    def write(self, key: Any, value: Any) -> None:
        """Notes a write."""
        self._ops.append(["w", key, value])

    def op(self, *op: Any) -> None:
        """Notes any operation of the format: op("a", "list", 1)."""
        self._ops.append(list(op))

    def aborted(self) -> None:
        """The transaction took no effect."""
        self._status = "aborted"

    def unknown(self) -> None:
        """Nobody knows whether the transaction took effect."""
        self._status = "unknown"

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        status = self._status or ("committed" if kind is None else "aborted")
        commit = time.monotonic_ns() if status == "committed" else None
        self._session._recorder._write(self._session.name, self._ops, status, self._begin, commit)


class Session:
    """A client, which runs one transaction after the other."""

    def __init__(self, recorder: Recorder, name: int | str) -> None:
        self.name = name
        self._recorder = recorder

    def transaction(self) -> Transaction:
        """Begins a transaction, for `with`."""
        return Transaction(self)


class Recorder:
    """Writes what the clients of a test see to a file, a line per transaction; clients may be threads.

    >>> recorder = Recorder("history.jsonl", initial=0)
    >>> session = recorder.session()
    >>> with session.transaction() as txn:
    ...     txn.read("x", database.get("x"))
    ...     database.set("x", 7)
    ...     txn.write("x", 7)

    A line is written when its transaction ends. The crate kingsnake-record also keeps what a crash of the test itself interrupts.
    """

    def __init__(self, path: str | os.PathLike[str], initial: Any = None, **header: Any) -> None:
        """Begins a file. `initial` is the value of every key before the first transaction."""
        self.path = path
        self._file = open(path, "w", encoding="utf-8")
        self._lock = threading.Lock()
        self._n_txns = self._n_sessions = 0
        self._file.write(_line({"kingsnake": 1, "initial": initial, **header}))
        self._file.flush()

    def session(self, name: int | str | None = None) -> Session:
        """A client, with a name of its own unless one is given."""
        with self._lock:
            self._n_sessions += 1
            return Session(self, self._n_sessions if name is None else name)

    def close(self) -> None:
        """Ends the file."""
        self._file.close()

    def _write(self, session: Any, ops: list[list[Any]], status: Status, begin: int, commit: int | None) -> None:
        with self._lock:
            self._n_txns += 1
            self._file.write(_transaction(self._n_txns, session, ops, status, begin, commit, {}))
            self._file.flush()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
