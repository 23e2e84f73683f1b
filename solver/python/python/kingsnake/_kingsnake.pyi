"""Checks whether a database kept its isolation guarantees."""

import os
from collections.abc import Callable
from typing import Literal, final

from ._history import History

__version__: str

_Path = str | os.PathLike[str]

class HistoryError(ValueError):
    """A history that cannot be read. `file`, `line` and `column` say where; each is None if it is not known."""

    file: str | None
    line: int | None
    column: int | None

@final
class Verdict:
    """The answer to a check. It is true if the level holds. In a notebook it shows the story and the picture."""

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

    @property
    def hints(self) -> list[str]:
        """What in the log may have been taken for this answer by mistake."""

    def page(self) -> str:
        """The report as one HTML page."""

    def svg(self) -> str | None:
        """The counterexample as an SVG picture, if the level is violated."""

    def json(self) -> str:
        """The JSON document of `kingsnake check --json`."""

    def _repr_html_(self) -> str: ...
    def __bool__(self) -> bool: ...

@final
class LevelAnswer:
    """One level of `auto`."""

    label: str
    verdict: Literal["satisfied", "violated", "unknown", "no times"]
    holds: bool | None
    anomaly: str | None
    is_strongest: bool

@final
class Anomaly:
    """A class of anomaly: its name, how many were found, and the story of one."""

    name: str
    count: int
    story: str

def check(
    history: History | _Path,
    level: str = "ser",
    session_order: bool | None = None,
    timeout: float | None = None,
    progress: Callable[[str], object] | None = None,
) -> Verdict:
    """Checks a history, or the file or directory of that path, at a level, by any of its names.

    Other threads run meanwhile, and Ctrl-C ends the check. Raises OSError if there is no such file, HistoryError if it cannot be read, and
    ValueError if the level makes no sense.
    """

def auto(
    history: History | _Path,
    session_order: bool | None = None,
    timeout: float | None = None,
    progress: Callable[[str], object] | None = None,
) -> list[LevelAnswer]:
    """Asks for every level; the strongest levels that hold have `is_strongest`."""

def anomalies(history: History | _Path, timeout: float | None = None) -> list[Anomaly]:
    """Every class of anomaly that a history shows, the worst first."""

def lint(history: History | _Path) -> list[str]:
    """What looks like a mistake of the log rather than of the database."""

def verify(history: History | _Path, evidence: str) -> bool:
    """Checks a certificate or a counterexample against a history again, with nothing of what found it.

    Raises ValueError if the text is neither.
    """
