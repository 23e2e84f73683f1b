#!/usr/bin/env python3
"""Runs kingsnake beside the other checkers that are installed, on the same histories, and compares verdicts, time and memory.

usage: benches/peers.py PEERS.toml [--kingsnake target/release/kingsnake] [--data ../shared/data] [--runs 5] [--timeout 60]
                        [--only NAME …] [HISTORY:LEVEL …]

PEERS.toml says how each checker is started; none is part of this repository:

    awdit = ["/opt/awdit/target/release/awdit"]
    polysi = ["java", "-Xmx8g", "-jar", "/opt/PolySI.jar"]

    [viper]                                        # a checker that is not described below is described there
    command = ["python3", "/opt/Viper/src/main_allcases.py"]
    forms = ["cobra"]                              # text, cobra, dbcop, dbcop-json, edn, json or kingsnake
    levels = { si = ["--algo", "6", "{history}"] }
    satisfied = "accept"                           # regular expressions over what it prints
    violated = "reject"

A checker that is not named there is left out. Histories are converted by kingsnake before anything is measured. The programs take
turns; the median of the runs counts, and the line says how far they lie apart. Prints one page of Markdown.
"""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from processes import run

# For each checker that is known here: the forms that it reads, the best first, its arguments at each level of ours, and how its output
# tells its verdict. A file of peers describes others in the same way, with `command` beside it.
WEAK = {"rc": "read-committed", "ra": "read-atomic", "cc": "causal"}
PEERS = {
    "awdit": {
        "forms": ["text"],
        "levels": {level: ["check", "-f", "plume", "-r", "first", "-i", name, "{history}"] for level, name in WEAK.items()},
        "satisfied": "^Consistent", "violated": "^Inconsistent",
    },
    "plume": {
        "forms": ["text"],
        "levels": {level: ["-t", "PLUME", "-i", name, "{history}"] for level, name in
                   {"rc": "RC", "ra": "RA", "cc": "TCC"}.items()},
        "satisfied": "^ACCEPT", "violated": "^REJECT",
    },
    "dbcop": {
        "forms": ["dbcop-json"],
        "levels": {level: ["verify", "--consistency", name, "--input-dir", "{history}"] for level, name in {
            "rc": "committed-read", "ra": "atomic-read", "cc": "causal", "pc": "prefix", "si": "snapshot-isolation",
            "ser": "serializable"}.items()},
        "satisfied": ": PASS", "violated": ": FAIL",
    },
    "veristrong": {
        "forms": ["dbcop"],
        "levels": {level: ["--history-type", "dbcop", "--isolation-level", level, "--pruning", "fast", "{history}"]
                   for level in ("ser", "si")},
        "satisfied": "^accept: true", "violated": "^accept: false",
    },
    "polysi": {
        "forms": ["text", "cobra"],
        "levels": {"si": ["audit", "--type={form}", "{history}"]},
        "satisfied": r"\[ ACCEPT \]", "violated": r"\[ REJECT \]",
    },
    "elle": {
        "forms": ["edn"],
        "levels": {level: ["--model", "list-append", "--consistency-models", name, "{history}"] for level, name in
                   {"ser": "serializable", "si": "snapshot-isolation", "strict-ser": "strict-serializable"}.items()},
        "satisfied": r"\ttrue", "violated": r"\tfalse",
    },
}

# What is compared unless histories are named.
CASES = [
    ("cobra/one-shot/chengRW-100", ["rc", "ra", "cc", "si", "ser"]),
    ("cobra/one-shot/chengRW-10000", ["rc", "ra", "cc", "si", "ser"]),
    ("cobra/one-shot/chengRM-10000", ["cc", "ser"]),
    ("cobra/one-shot/tpcc-10000", ["rc", "ra", "cc", "ser"]),
    ("cobra/one-shot/rubis-10000", ["cc", "ser"]),
    ("cobra/one-shot/twitter-10000", ["cc", "ser"]),
    ("polysi/25_400_8_10000_0.5_uniform", ["rc", "ra", "cc", "si", "ser"]),
    ("polysi/violations/yugabyte/yugabyte.txt", ["rc", "ra", "cc", "si"]),
    ("polysi/violations/galera/galera.txt", ["rc", "ra", "cc", "si", "ser"]),
    ("cobra/violations/yuga-G2-a", ["cc", "ser"]),
    ("elle/paper-example.edn", ["si", "ser"]),
]


class Scratch:
    """Histories in the formats that checkers read, each written once."""

    def __init__(self, kingsnake, directory):
        self.kingsnake = kingsnake
        self.directory = Path(directory)
        self.known = {}

    def history(self, path, form):
        """The history in this form, or why it cannot be had."""
        if (path, form) not in self.known:
            self.known[path, form] = self.converted(path, form)
        return self.known[path, form]

    def converted(self, path, form):
        place = self.directory / str(len(self.known))
        place.mkdir()
        name = {"text": "history.txt", "dbcop": "history.bincode", "edn": "history.edn", "json": "history.json",
                "cobra": "logs", "kingsnake": "history.jsonl", "dbcop-json": "own.jsonl"}[form]
        own = "kingsnake" if form == "dbcop-json" else form
        own = {"edn": "jepsen-edn", "json": "jepsen-json"}.get(own, own)
        line = [self.kingsnake, "convert", path, str(place / name), "--to", own, "--drop", "times,version-order"]
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[-1] if done.stderr else "no conversion"
        if form != "dbcop-json":
            return str(place / name), None
        into = place / "dbcop"
        into.mkdir()
        # In a process of its own: a child counts as at least as large as the process that started it.
        child = os.fork()
        if child == 0:
            os._exit(dbcop_json(place / name, into / "0.json"))
        _, status = os.waitpid(child, 0)
        return (str(into), None) if status == 0 else (None, "it has more than reads and writes of numbers")


def dbcop_json(own, to):
    """Writes one of our own files of numbers as dbcop's JSON; returns 0, or 1 where it holds anything else. The initial value is no
    version there, and no number is negative."""
    sessions, keys, values = {}, {}, {}
    with open(own) as lines:
        header = json.loads(next(lines))
        for line in lines:
            txn = json.loads(line)
            if "ops" not in txn:
                return 1
            events = []
            for op in txn["ops"]:
                if op[0] not in ("r", "w") or not all(isinstance(it, int) for it in op[1:]):
                    return 1
                version = values.setdefault((op[1], op[2]), len(values) + 1)
                version = None if op[0] == "r" and op[2] == header.get("initial") else version
                variable = keys.setdefault(op[1], len(keys))
                events.append({"Write" if op[0] == "w" else "Read": {"variable": variable, "version": version}})
            is_committed = txn.get("status", "committed") == "committed"
            sessions.setdefault(txn["session"], []).append({"events": events, "committed": is_committed})
    with open(to, "w") as out:
        json.dump({"params": {"id": 0, "n_node": len(sessions), "n_variable": 1, "n_transaction": 1, "n_event": 1},
                   "info": "", "start": "2020-01-01T00:00:00Z", "end": "2020-01-01T00:00:00Z",
                   "data": list(sessions.values())}, out)
    return 0


def verdict(peer, outcome):
    """What a checker says, in one word."""
    if outcome.status is None:
        return "no answer in time"
    for word in ("satisfied", "violated"):
        if re.search(PEERS[peer][word], outcome.output, re.MULTILINE):
            return word
    return f"failed (exit {outcome.status})"


def median(numbers):
    return statistics.median(numbers)


def seconds(numbers):
    return f"{median(numbers):.3f} ({min(numbers):.3f}–{max(numbers):.3f})"


def megabytes(runs, floor):
    peak = max(it.peak for it in runs)
    return f"≤{floor >> 20}" if peak <= floor + (1 << 20) else str(peak >> 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers")
    parser.add_argument("--kingsnake", default="target/release/kingsnake")
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("more", nargs="*", metavar="HISTORY:LEVEL")
    args = parser.parse_intermixed_args()
    with open(args.peers, "rb") as file:
        installed = tomllib.load(file)
    for name, peer in installed.items():
        if isinstance(peer, dict):
            PEERS[name] = peer
            installed[name] = peer["command"]
        elif name not in PEERS:
            sys.exit(f"{args.peers}: {name} is not known here, so it needs a table with command, forms, levels, satisfied, violated")
    names = [name for name in installed if not args.only or name in args.only]
    cases = [(os.path.join(args.data, path), levels) for path, levels in CASES]
    if args.more:
        cases = [(path, [level]) for path, level in (it.rsplit(":", 1) for it in args.more)]
    version = subprocess.run([args.kingsnake, "--version"], capture_output=True, text=True).stdout.strip()
    # A child counts as at least as large as the process that started it.
    floor = run(["true"]).peak
    print(f"{version} beside {', '.join(names) or 'no other checker'}; {os.cpu_count()} cores, {platform.machine()}; "
          f"{args.runs} runs each, taking turns; seconds are medians (least–most); at most {args.timeout:.0f} s.\n")
    print("| history | level | checker | verdict | wall s | processor s | peak MB | ÷ Kingsnake wall | ÷ processor |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    notes, n_compared, n_apart = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="peers-") as directory:
        scratch = Scratch(args.kingsnake, directory)
        for path, levels in cases:
            if not os.path.exists(path):
                notes.append(f"{path}: absent")
                continue
            for level in levels:
                rows = compared(args, scratch, names, installed, path, level, notes)
                ours = rows[0]
                for name, said, runs in rows:
                    walls, used = [it.wall for it in runs], [it.processor for it in runs]
                    by = [median(walls) / median([it.wall for it in ours[2]]),
                          median(used) / max(median([it.processor for it in ours[2]]), 1e-9)]
                    mark = ""
                    if said in ("satisfied", "violated") and name != ours[0]:
                        n_compared += 1
                        if said != ours[1]:
                            n_apart += 1
                            mark = " **≠**"
                    ratio = ["", ""] if name == ours[0] else [f"{it:.1f}" for it in by]
                    print(f"| {os.path.basename(path)} | {level} | {name} | {said}{mark} | {seconds(walls)} | {seconds(used)} "
                          f"| {megabytes(runs, floor)} | {ratio[0]} | {ratio[1]} |", flush=True)
    print(f"\n{n_compared} verdicts compared, {n_apart} differ.")
    for note in notes:
        print(f"- {note}")


def compared(args, scratch, names, installed, path, level, notes):
    """Kingsnake and each checker that has the level, with their verdicts and runs. All read the same file where they can."""
    able = []
    for name in names:
        typed = PEERS[name]["levels"].get(level)
        if typed is None:
            continue
        for form in PEERS[name]["forms"]:
            history, why = scratch.history(path, form)
            if history:
                line = [it.format(history=history, form=form) for it in typed]
                able.append((name, installed[name] + line, history))
                break
        else:
            notes.append(f"{path} for {name}: {why}")
    text = [history for _, _, history in able if history.endswith(".txt")]
    ours = [args.kingsnake, "check", text[0] if text else path, "--level", level, "--quiet"]
    lines = [("Kingsnake", ours)] + [(name, line) for name, line, _ in able]
    runs = {name: [] for name, _ in lines}
    for _ in range(args.runs):
        for name, line in lines:
            if runs[name] and runs[name][-1].status is None:
                continue
            runs[name].append(run(line, args.timeout))
    words = {0: "satisfied", 1: "violated", 3: "unknown", None: "no answer in time"}
    rows = []
    for name, _ in lines:
        last = runs[name][-1]
        said = words.get(last.status, "error") if name == "Kingsnake" else verdict(name, last)
        rows.append((name, said, runs[name]))
    return rows


main()
