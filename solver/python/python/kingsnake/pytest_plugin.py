"""A fixture for pytest: what a test records is checked when the test ends.

    import pytest

    @pytest.mark.isolation("si")          # without the mark: ser
    def test_transfers(kingsnake_recorder):
        session = kingsnake_recorder.session()
        with session.transaction() as txn:
            ...

A test whose history violates the level fails with the story; the page is beside the history, in the test's temporary directory. The mark
takes `initial`, the value of every key at first (0 unless given), and what else `kingsnake.check` takes.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from . import Recorder, check


def pytest_configure(config: pytest.Config) -> None:
    words = "isolation(level, initial=0, **options): what the history of kingsnake_recorder must satisfy"
    config.addinivalue_line("markers", words)


@pytest.fixture
def kingsnake_recorder(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Recorder]:
    """Records a history, and checks it when the test ends."""
    mark = request.node.get_closest_marker("isolation")
    level = mark.args[0] if mark and mark.args else "ser"
    options = dict(mark.kwargs) if mark else {}
    path = tmp_path / "history.jsonl"
    recorder = Recorder(path, initial=options.pop("initial", 0))
    yield recorder
    recorder.close()
    verdict = check(path, level=level, **options)
    if verdict.holds is False:
        page = path.with_suffix(".html")
        page.write_text(verdict.page(), encoding="utf-8")
        pytest.fail(f"{level}: {verdict}\n\n{verdict.story}\nHistory: {path}\nPage: {page}", pytrace=False)
