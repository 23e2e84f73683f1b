"""Checks whether a database kept its isolation promise."""

import os
from collections.abc import Sequence
from typing import Literal, final

__version__: str

_Operation = tuple[Literal["r", "w"], int | str, int | str | None]

class History:
    """What clients saw: sessions of transactions."""

    def __new__(cls, initial: int | str | None = None) -> History:
        """An empty history. `initial` is the value of every key before the first transaction."""

    def add(
        self,
        session: int | str,
        ops: Sequence[_Operation],
        status: Literal["committed", "aborted", "unknown"] = "committed",
        begin: int | None = None,
        commit: int | None = None,
    ) -> None:
        """Adds a transaction: `ops` are ("r", key, value) and ("w", key, value), in order; None is no value."""

    def __len__(self) -> int: ...

@final
class Verdict:
    """The answer to a check. It is true if the level holds."""

    @property
    def verdict(self) -> Literal["satisfied", "violated", "unknown"]: ...
    @property
    def holds(self) -> bool | None:
        """True, False, or None if the answer is unknown."""

    @property
    def anomaly(self) -> str | None:
        """The anomaly's name, if the level is violated."""

    @property
    def story(self) -> str | None:
        """What happened, in plain words, if the level is violated."""

    @property
    def evidence(self) -> str | None:
        """The certificate or the counterexample as text, for `verify`; None if the answer is unknown."""

    def __bool__(self) -> bool: ...

def check(
    history: History | str | os.PathLike[str],
    level: str = "ser",
    session_order: bool | None = None,
    timeout: float | None = None,
) -> Verdict:
    """Checks a history, or the file or directory of that path, at a level.

    Raises OSError if there is no such file, and ValueError if the history or the level makes no sense.
    """

def verify(history: History | str | os.PathLike[str], evidence: str) -> bool:
    """Checks a certificate or a counterexample against a history again, with nothing of what found it.

    Raises ValueError if the text is neither.
    """
