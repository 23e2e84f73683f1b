"""Checks whether a database kept its isolation guarantees.

>>> import kingsnake
>>> history = kingsnake.History(initial=0)
>>> history.add("client 1", [("r", "x", 0), ("w", "x", 1)])
>>> history.add("client 2", [["r", "x", 0], ["w", "x", 2]])
>>> print(kingsnake.check(history, level="si"))
violated: lost update (G-single)
"""

from ._history import History, Recorder, Session, Transaction
from ._kingsnake import (
    Anomaly,
    HistoryError,
    LevelAnswer,
    Verdict,
    __version__,
    anomalies,
    auto,
    check,
    lint,
    verify,
)

__all__ = [
    "Anomaly",
    "History",
    "HistoryError",
    "LevelAnswer",
    "Recorder",
    "Session",
    "Transaction",
    "Verdict",
    "__version__",
    "anomalies",
    "auto",
    "check",
    "lint",
    "verify",
]
