#!/usr/bin/env python3
"""How far a run whose verdict is plainly valid lies from one ten times as long.

    cargo build --release --package isotherm-cli && experiments/verdicts.py

Each setting is run once as it is and once with ten times the writes, on a drive of 4 KiB pages in blocks of 64. There are four grids:

- all: 32 Ki pages, seed 1; seven patterns, four preconditionings, five pairs of placement and victims with their over-provisioning,
  and two lengths: 280 settings.
- learning: 16 Ki pages, two seeds; four patterns that placements learn slowly, on drives that hold other data at first, six pairs of
  which the placements learn, and four lengths: 384 settings.
- slowest: the same of sfs, which learns for longer than the others, and two lengths: 32 settings.
- others: the same of placements that are not said to learn, and two lengths: 256 settings.

Wear levelling is off, since a long run reaches it and a short one does not. A verdict is plainly valid if it is valid without reserve:
steady, not light, and nothing said about the beginning of the window or about a placement that may still learn. Prints a table for each grid, and the
settings that lie furthest off. Needs about five minutes on two cores.
"""

import argparse
import concurrent.futures
import itertools
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGER = 10
GRIDS = {
    "all": {
        "pages": (32 * 1024,),
        "seed": (1,),
        "drive_writes": (2, 8),
        "pattern": (
            "uniform",
            "zipf,theta=0.8",
            "zipf,theta=0.99",
            "zipf,theta=1.2",
            "hotcold,hot=0.1,hot_writes=0.9",
            "hotcold,hot=0.5,hot_writes=0.95",
            "hotcold,hot=0.2,hot_writes=0.99",
        ),
        "precondition": ("none", "sequential", "random", "trace"),
        "drive": (
            ("single", "greedy", "7%"),
            ("single", "greedy", "28%"),
            ("multilog", "greedy", "28%"),
            ("host_gc", "cost_benefit", "14%"),
            ("isotherm", "isotherm", "14%"),
        ),
    },
}
LEARNED = {
    "pages": (16 * 1024,),
    "seed": (1, 3),
    "pattern": (
        "hotcold,hot=0.5,hot_writes=0.95",
        "hotcold,hot=0.4,hot_writes=0.95",
        "hotcold,hot=0.2,hot_writes=0.8",
        "zipf,theta=1",
    ),
    "precondition": ("sequential", "random"),
}
GRIDS["learning"] = LEARNED | {
    "drive_writes": (2, 4, 8, 32),
    "drive": (
        ("multilog", "greedy", "28%"),
        ("multilog", "cost_benefit", "20%"),
        ("midas", "greedy", "20%"),
        ("isotherm", "isotherm", "20%"),
        ("sfs", "cost_benefit", "28%"),
        ("asa", "greedy", "14%"),
    ),
}
GRIDS["slowest"] = LEARNED | {"drive_writes": (64, 128), "drive": (("sfs", "cost_benefit", "28%"),)}
GRIDS["others"] = LEARNED | {
    "drive_writes": (2, 8),
    "drive": (
        ("single", "cost_benefit", "20%"),
        ("host_gc", "cost_benefit", "20%"),
        ("epoch", "greedy", "20%"),
        ("dac", "cost_benefit", "20%"),
        ("sepbit", "cost_benefit", "20%"),
        ("mdc", "mdc", "20%"),
        ("hotness", "greedy", "20%"),
        ("hotness:wdac", "greedy", "20%"),
    ),
}


def run(isotherm, setting, times):
    """The result of `setting` with so many times its writes."""
    pages, (placement, victim, op) = setting["pages"], setting["drive"]
    writes, seed = setting["drive_writes"] * pages * times, str(setting["seed"])
    trace = f"synth:{setting['pattern']},pages={pages},writes={writes},seed={seed}"
    command = [isotherm, "run", trace, "--op", op, "--precondition", setting["precondition"], "--placement", placement]
    command += ["--victim", victim, "--set", "wear.leveling=false", "--seed", seed, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


KINDS = ("plainly valid", "valid, but early for a placement that learns", "anything else")


def kind(verdict):
    first = verdict["first_replay"] or ""
    is_early = first.startswith(KINDS[1].removeprefix("valid, but "))
    if not (verdict["valid"] and verdict["steady"]) or verdict["light"] or (first and not is_early):
        return KINDS[2]
    return KINDS[1] if first else KINDS[0]


def judge(isotherm, setting):
    short, long = (run(isotherm, setting, times) for times in (1, LONGER))
    difference = short["write_amplification"] / long["write_amplification"] - 1
    return setting, kind(short["verdict"]), difference, short, long


def report(judged):
    print("| verdict | runs | more than 2.5 % off | more than 5 % off | furthest off |")
    print("|---|---|---|---|---|")
    for name in KINDS:
        off = [abs(difference) for _, of_run, difference, _, _ in judged if of_run == name]
        counts = [sum(d > most for d in off) for most in (0.025, 0.05)]
        print(f"| {name} | {len(off)} | {counts[0]} | {counts[1]} | {max(off, default=0):.1%} |")
    print("\nPlainly valid and furthest off:")
    plain = [entry for entry in judged if entry[1] == KINDS[0]]
    for setting, _, difference, short, long in sorted(plain, key=lambda entry: -abs(entry[2]))[:8]:
        wa = f"{short['write_amplification']:.3f} for {long['write_amplification']:.3f}"
        words = f"{setting['pattern']}, {setting['precondition']}, {'/'.join(setting['drive'])}"
        print(f"- {words}, {setting['drive_writes']} drive writes, seed {setting['seed']}: {wa} ({difference:+.1%})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--isotherm", default=ROOT / "target/release/isotherm", help="the program to run")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--grid", choices=GRIDS, action="append", help="a grid of settings, instead of both")
    arguments = parser.parse_args()
    for name in arguments.grid or GRIDS:
        settings = [dict(zip(GRIDS[name], point)) for point in itertools.product(*GRIDS[name].values())]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            judged = list(pool.map(lambda setting: judge(arguments.isotherm, setting), settings))
        print(f"\nThe grid {name!r}, {len(settings)} settings:\n", flush=True)
        report(judged)


if __name__ == "__main__":
    main()
