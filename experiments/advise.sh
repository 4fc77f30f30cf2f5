#!/bin/sh
# What `isotherm advise` says of each trace of a folder, as a table in Markdown; with --grid, beside what trying every combination finds.
#   experiments/advise.sh FOLDER [--grid] [options of advise]
# The traces are those of the folder that end in .csv.zst. Needs a built target/release/isotherm.
set -eu
cd "$(dirname "$0")/.."
folder=${1:?name a folder of traces}
shift
grid=no
if [ "${1:-}" = --grid ]; then
    grid=yes
    shift
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for trace in "$folder"/*.csv.zst; do
    name=$(basename "$trace" .csv.zst)
    target/release/isotherm advise "$trace" --json --out "$out/$name" "$@" > "$out/$name.json"
    if [ "$grid" = yes ]; then
        target/release/isotherm advise "$trace" --json --exhaustive --out "$out/$name" "$@" > "$out/$name.grid.json"
    fi
done
python3 - "$out" "$grid" <<'PYTHON'
import json, pathlib, sys

folder, grid = pathlib.Path(sys.argv[1]), sys.argv[2] == "yes"
names = sorted(path.stem for path in folder.glob("*.json") if not path.stem.endswith(".grid"))


def free(rows):
    """What costs no capacity and no flash, and can be trusted."""
    kept = [row for row in rows if row["valid"] and (row["promise"] is None or row["promise"]["is_kept"])]
    return [row for row in kept if row["kind"] not in ("knows_future", "over_provisioning")]


def wa(row):
    return row["write_amplification_bytes"]


def best(rows, kinds=None):
    rows = [row for row in free(rows) if kinds is None or row["kind"] in kinds]
    return min(rows, key=wa, default=None)


def cell(row):
    return "-" if row is None else f"{wa(row):.3f}"


if grid:
    print("| trace | as it is | found | what | every combination | what | over it | dropped on samples | page writes, M |")
    print("|---|---:|---:|---|---:|---|---:|---:|---:|")
    for name in names:
        searched = json.loads((folder / f"{name}.json").read_text())
        exhaustive = json.loads((folder / f"{name}.grid.json").read_text())
        found, every = best(searched["rows"]), best(exhaustive["rows"])
        all_rows = exhaustive["rows"]
        dropped = sum(dropped["ratio"] is not None for dropped in searched["dropped"])
        pages = " / ".join(f"{advice['pages_replayed'] / 1e6:.0f}" for advice in (searched, exhaustive))
        text = [row["what"].lstrip("+ ") for row in (found, every)]
        print(f"| {name} | {cell(all_rows[0])} | {cell(found)} | {text[0]} | {cell(every)} | {text[1]} | {100 * (wa(found) / wa(every) - 1):+.1f} % | {dropped} | {pages} |")
else:
    print("| trace | drive writes a replay | as it is | without / with trim | handles | firmware | together | OP 28 % / 50 % | SFS | knows the future | promise, kept |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name in names:
        advice = json.loads((folder / f"{name}.json").read_text())
        rows = advice["rows"]
        of = lambda kind: [row for row in rows if row["kind"] == kind]
        handles = best(rows, ("handles_by_address", "handles_by_size", "handles_by_source"))
        spare = " / ".join(cell(row) for row in of("over_provisioning")[-2:])
        promise = "-" if handles is None else f"{handles['promise']['ratio']:.3f}, {handles['promise']['ratio_kept']:.3f}"
        valid = "" if rows[0]["valid"] else " (not valid)"
        print(
            f"| {name} | {advice['situation']['drive_writes_per_replay']:.2f} | {cell(rows[0])}{valid} | {cell(next(iter(of('trim')), None))} "
            f"| {cell(handles)} | {cell(best(rows, ('firmware',)))} | {cell(best(rows, ('combination',)))} | {spare or '-'} "
            f"| {cell(best(rows, ('file_system',)))} | {cell(next(iter(of('knows_future')), None))} | {promise} |"
        )
PYTHON
