"""The package as a user types it; run by scripts/python."""
import ast
import pathlib
import kingsnake

CORPUS = pathlib.Path(__file__).parents[3] / "datasets" / "corpus"
SKEW = CORPUS / "strong-session-si" / "write-skew.jsonl"


def raises(kind, *args, **options):
    try:
        kingsnake.check(*args, **options)
    except kind as error:
        return str(error)
    raise AssertionError(f"{args} should raise {kind}")


verdict = kingsnake.check(SKEW, level="ser")
assert verdict.verdict == "violated" and verdict.holds is False and not verdict
assert verdict.anomaly == "write skew (G2-item)", verdict.anomaly
assert "contradiction" in verdict.story
assert str(verdict) == "violated: write skew (G2-item)"
assert kingsnake.check(str(SKEW), level="si")
for level in ["ser", "si", "rc"]:
    assert kingsnake.verify(SKEW, kingsnake.check(SKEW, level=level).evidence)

history = kingsnake.History(initial=0)
history.add(1, [("r", "x", 0), ("w", "x", 10)])
history.add("two", [("r", "x", 0), ("w", "x", 20)])
assert len(history) == 2
lost = kingsnake.check(history, level="si")
assert lost.anomaly.startswith("lost update"), lost
history.add(3, [("w", "y", 1)], status="unknown", begin=5)
assert kingsnake.check(history, level="ser", session_order=False, timeout=10).holds is False

register = kingsnake.History(initial=0)
register.add(1, [("w", "x", 1)], begin=0, commit=10)
register.add(2, [("r", "x", 0)], begin=20, commit=30)
assert kingsnake.check(register, level="linearizable").verdict == "violated"
assert kingsnake.check(SKEW, timeout=0).holds is None

assert "no " in raises(OSError, "/nowhere/at/all")
assert raises(ValueError, SKEW, level="nonsense")
assert raises(TypeError, 17)
assert "line" in raises(ValueError, __file__)
# The stubs name what there is, no more and no less.
stubs = pathlib.Path(__file__).parents[1] / "kingsnake.pyi"
described = {it.name for it in ast.parse(stubs.read_text()).body if isinstance(it, (ast.ClassDef, ast.FunctionDef))}
assert described == {it for it in dir(kingsnake) if not it.startswith("_")} - {"kingsnake"}, described
installed = pathlib.Path(kingsnake.__file__).parent
assert (installed / "py.typed").exists() and (installed / "__init__.pyi").exists(), sorted(installed.iterdir())
print("python: all assertions hold, kingsnake", kingsnake.__version__)
