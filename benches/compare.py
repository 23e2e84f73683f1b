#!/usr/bin/env python3
"""Compares two builds of kingsnake: the least processor time of many runs of each check, the builds taking turns.

usage: benches/compare.py OLD NEW [HISTORY:LEVEL …] [--runs 25] [--data ../shared/data]

Prints, for each history and level, seconds of processor time of both and their ratio. Processor time is what a busy machine
disturbs least, and the least of many runs what it disturbs least of all.
"""
import argparse
import os
import sys

from processes import run

CHECKS = [
    ("cobra/one-shot/tpcc-10000", "ser"),
    ("cobra/one-shot/tpcc-10000", "si"),
    ("cobra/one-shot/chengRW-10000", "ser"),
    ("cobra/one-shot/chengRW-10000", "si"),
    ("polysi/25_400_8_10000_0.5_uniform", "ser"),
    ("polysi/25_400_8_10000_0.5_uniform", "si"),
]


def processor_seconds(program, history, level):
    line = [program, "check", history, "--level", level, "--device", "cpu", "--threads", "1"]
    done = run(line)
    if done.status not in (0, 1):
        sys.exit(f"{' '.join(line)}: exit {done.status}: {done.output.strip()}")
    return done.processor


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("more", nargs="*", metavar="HISTORY:LEVEL")
    args = parser.parse_intermixed_args()
    checks = [(os.path.join(args.data, history), level) for history, level in CHECKS]
    checks = [it for it in checks if os.path.exists(it[0])]
    print(f"{len(CHECKS) - len(checks)} of {len(CHECKS)} checks left out: their data is absent")
    checks += [tuple(it.rsplit(":", 1)) for it in args.more]
    print("| history | level | old | new | new / old |")
    print("| --- | --- | --- | --- | --- |")
    for history, level in checks:
        least = [float("inf")] * 2
        for _ in range(args.runs):
            for at, program in enumerate((args.old, args.new)):
                least[at] = min(least[at], processor_seconds(program, history, level))
        old, new = least
        print(f"| {os.path.basename(history)} | {level} | {old:.3f} s | {new:.3f} s | {new / old:.3f} |", flush=True)


main()
