"""The package as a user types it; run by scripts/python."""
import ast
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import kingsnake

CORPUS = pathlib.Path(__file__).parents[3] / "datasets" / "corpus"
SKEW = CORPUS / "strong-session-si" / "write-skew.jsonl"


def raises(kind, call, *args, **options):
    try:
        call(*args, **options)
    except kind as error:
        return error
    raise AssertionError(f"{args} should raise {kind}")


verdict = kingsnake.check(SKEW, level="ser")
assert verdict.verdict == "violated" and verdict.holds is False and not verdict
assert verdict.anomaly == "write skew (G2-item)", verdict.anomaly
assert "contradiction" in verdict.story
assert str(verdict) == "violated: write skew (G2-item)"
assert kingsnake.check(str(SKEW), level="si")
for level in ["ser", "si", "rc", "serializable", "Snapshot Isolation", "read_committed", "viper/si"]:
    assert kingsnake.verify(SKEW, kingsnake.check(SKEW, level=level).evidence), level

# Pages, pictures, documents, and what a notebook shows.
assert verdict.page().startswith("<!DOCTYPE html>") and "write skew" in verdict.page().lower()
assert verdict.svg().startswith("<svg") and kingsnake.check(SKEW, level="si").svg() is None
document = json.loads(verdict.json())
assert document["verdict"] == "violated" and document["anomaly"]["adya"] == "G2-item"
shown = verdict._repr_html_()
assert "data:image/svg+xml" in shown and "<script" not in shown and "Write skew" in shown
assert "satisfied" in kingsnake.check(SKEW, level="si")._repr_html_()

# Lists and tuples are the same.
history = kingsnake.History(initial=0)
history.add(1, [("r", "x", 0), ("w", "x", 10)])
history.add("two", [["r", "x", 0], ["w", "x", 20]])
assert len(history) == 2
lost = kingsnake.check(history, level="si")
assert lost.anomaly.startswith("lost update"), lost
history.add(3, [("w", "y", 1)], status="unknown", begin=5)
assert kingsnake.check(history, level="ser", session_order=False, timeout=10).holds is False
lists = kingsnake.History()
lists.add(1, [("a", "x", 1)])
lists.add(2, (["rl", "x", [1]],))
assert kingsnake.check(lists)

register = kingsnake.History(initial=0)
register.add(1, [("w", "x", 1)], begin=0, commit=10)
register.add(2, [("r", "x", 0)], begin=20, commit=30)
assert kingsnake.check(register, level="linearizable").verdict == "violated"
assert kingsnake.check(SKEW, timeout=0).holds is None

# Every level, every anomaly, the mistakes of a log.
answers = kingsnake.auto(SKEW)
assert [it.label for it in answers if it.is_strongest] == ["strong-session-si"], answers
assert {it.verdict for it in answers} >= {"satisfied", "violated"}
anomaly = kingsnake.anomalies(SKEW)[0]
assert anomaly.name == "G2-item" and anomaly.count == 1 and anomaly.story
assert kingsnake.lint(SKEW) == [] and "no transaction" in kingsnake.lint(kingsnake.History())[0]
said = []
kingsnake.check(SKEW, progress=said.append)
assert "resolve" in said, said

# Errors say where.
assert "no " in str(raises(OSError, kingsnake.check, "/nowhere/at/all"))
assert raises(ValueError, kingsnake.check, SKEW, level="nonsense")
assert raises(TypeError, kingsnake.check, 17)
assert raises(KeyError, kingsnake.check, SKEW, progress={}.__getitem__)
assert raises(ValueError, history.add, 1, [], status="lost")
with tempfile.TemporaryDirectory() as place:
    path = pathlib.Path(place) / "wrong.jsonl"
    path.write_text('{"kingsnake":1}\n{"id":1,"session":1,"ops":[["r"]]}\n')
    error = raises(kingsnake.HistoryError, kingsnake.check, path)
    assert error.file == str(path) and error.line == 2 and "line 2" in str(error), vars(error)
wrong = kingsnake.History()
wrong.add(1, [("q", "x", 1)])
assert raises(kingsnake.HistoryError, kingsnake.check, wrong).line == 2

def fail(session):
    with session.transaction() as txn:
        txn.write("x", -1)
        raise RuntimeError("it was rolled back")


# A recorder that threads share.
with tempfile.TemporaryDirectory() as place:
    path = pathlib.Path(place) / "recorded.jsonl"
    with kingsnake.Recorder(path, initial=0) as recorder:
        store, lock = {"x": 0}, threading.Lock()

        def client(session):
            for _ in range(20):
                with session.transaction() as txn, lock:
                    store["x"] = txn.read("x", store["x"]) + 1
                    txn.write("x", store["x"])

        clients = [threading.Thread(target=client, args=[recorder.session()]) for _ in range(3)]
        [it.start() for it in clients], [it.join() for it in clients]
        session = recorder.session("last")
        raises(RuntimeError, lambda: fail(session))
    assert kingsnake.check(path, level="strict-ser")
    assert len(path.read_text().splitlines()) == 62


# Other threads run while a check does, and Ctrl-C ends it.
SLOW = """
import kingsnake, random, sys, threading
random.seed(1)
history = kingsnake.History(initial=0)
for i in range(6000):
    keys = random.sample(range(12), 3)
    history.add(i, [("r", keys[0], random.randrange(3))] + [("w", k, random.randrange(3)) for k in keys])
ticks = []
threading.Thread(target=lambda: [ticks.append(1) or __import__("time").sleep(0.01) for _ in range(10**6)], daemon=True).start()
print("begun", flush=True)
try:
    kingsnake.check(history, level="cc", session_order=False, timeout=60)
except KeyboardInterrupt:
    print("interrupted", len(ticks) > 10, flush=True)
"""
with subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, text=True) as child:
    assert child.stdout.readline() == "begun\n"
    time.sleep(1.5)
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert child.stdout.readline() == "interrupted True\n"
        assert time.monotonic() - begun < 10

# The fixture for pytest, where there is one.
try:
    import pytest  # noqa: F401
except ImportError:
    print("SKIPPED: the fixture, because there is no pytest")
else:
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "test_it.py"
        path.write_text(
            "import pytest\n"
            "def run(recorder):\n"
            "    for value in (1, 2):\n"
            "        with recorder.session().transaction() as txn:\n"
            "            txn.read('x', 0)\n"
            "            txn.write('x', value)\n"
            "@pytest.mark.isolation('si')\n"
            "def test_lost(kingsnake_recorder):\n"
            "    run(kingsnake_recorder)\n"
            "@pytest.mark.isolation('rc')\n"
            "def test_weak(kingsnake_recorder):\n"
            "    run(kingsnake_recorder)\n"
        )
        ran = subprocess.run([sys.executable, "-m", "pytest", "-q", place], capture_output=True, text=True, check=False)
        assert ran.returncode == 1 and "2 passed, 1 error" in ran.stdout, ran.stdout + ran.stderr
        assert "lost update" in ran.stdout and "history.html" in ran.stdout, ran.stdout

# The stubs name what there is, no more and no less.
stubs = pathlib.Path(kingsnake.__file__).parent / "_kingsnake.pyi"
described = {it.name for it in ast.parse(stubs.read_text()).body if isinstance(it, (ast.ClassDef, ast.FunctionDef))}
native = sys.modules["kingsnake._kingsnake"]
assert described == {it for it in dir(native) if not it.startswith("_")}, described
assert described < set(kingsnake.__all__)
assert (stubs.parent / "py.typed").exists()
print("python: all assertions hold, kingsnake", kingsnake.__version__)
