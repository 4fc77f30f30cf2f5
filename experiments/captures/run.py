#!/usr/bin/python3
"""Captures what real applications write to a drive: block traces, each with a JSON file that describes it.

    experiments/captures/run.py [--into FOLDER] [--program PATH] [--scratch FOLDER] [--size 768MiB] [--fills 5] [WORKLOAD...]

As root, on Linux with /dev/fuse and loop devices; says what else is missing. Each workload (all of workloads.py unless some are named) gets a new
drive of ours (`isotherm drive create`, `attach --record`; page-mapped, sectors of 4 KiB), a file system mounted with `discard`, and the application
with data that takes much of it. The application then works until the drive was asked to write `--fills` times its size, or `--seconds` are over.

FOLDER has NAME.csv.zst and NAME.json then. Seeds are fixed, but a capture is not repeated to the byte: it depends on the times at which kernel and
application write back. The image lies in `--scratch`, /dev/shm unless told, because a flush of the drive is a flush of the image.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

import workloads

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = 4096
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
# Seconds between two looks at how much was written.
LOOK_EVERY = 0.5


def run(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, timeout=1800, **more)


def output(*words):
    return run(*words, stdout=subprocess.PIPE, text=True).stdout.strip()


class Drive:
    """A drive with a file system on it, whose requests are recorded."""

    def __init__(self, program, folder, record, bytes_, system):
        self.program, self.image, self.mount = program, folder / "d.flash", folder / "files"
        self.mount.mkdir()
        self.create = ["drive", "create", self.image, "--logical-size", bytes_, "--op", "7%"]
        self.attach = ["drive", "attach", self.image, "--sector-size", PAGE, "--record", record]
        self.mkfs = MAKE[system]
        run(program, *self.create, stdout=subprocess.DEVNULL)
        self.device = output(program, *self.attach)
        try:
            run(*self.mkfs, self.device, stdout=subprocess.DEVNULL)
            self.formatted = self.requests()
            run("mount", "-o", "discard", self.device, self.mount)
        except BaseException:
            self.detach()
            raise

    def counters(self):
        return json.loads(output(self.program, "drive", "stats", self.image))

    def requests(self):
        """Of the recording, how many requests there are up to now."""
        run("sync")
        return self.counters()["host_requests"]

    def written(self):
        return self.counters()["host_bytes_written"]

    def used(self):
        """The share of the file system that is in use."""
        told = os.statvfs(self.mount)
        return 1 - told.f_bavail / told.f_blocks

    def detach(self):
        if os.path.ismount(self.mount):
            run("umount", self.mount)
        run(self.program, "drive", "detach", self.image)


class Goal:
    """Whether a workload is done, and how full the file system was on the way."""

    def __init__(self, drive, bytes_, seconds):
        self.drive, self.end, self.latest = drive, drive.written() + bytes_, time.monotonic() + seconds
        self.looked, self.fullest, self.is_reached = 0.0, drive.used(), False

    def __call__(self):
        now = time.monotonic()
        if now - self.looked >= LOOK_EVERY:
            self.looked, self.fullest = now, max(self.fullest, self.drive.used())
            self.is_reached = now >= self.latest or self.drive.written() >= self.end
        return self.is_reached


def times(record, rows):
    """The times of the requests with these numbers."""
    found, last = {}, 0
    with subprocess.Popen(["zstd", "-dcq", record], stdout=subprocess.PIPE, text=True) as lines:
        next(lines.stdout)
        for number, line in enumerate(lines.stdout):
            last = int(line.split(",", 1)[0])
            if number in rows:
                found[number] = last
    return [found.get(row, last) for row in rows]


def statistics(record, device_bytes, measured):
    """What a recording has; of the writes from row `measured` on too."""
    counts, bytes_ = dict.fromkeys("RWDF", 0), dict.fromkeys("RWDF", 0)
    touched, unaligned, measured_bytes, first, last = bytearray(device_bytes // PAGE), 0, 0, None, 0
    with subprocess.Popen(["zstd", "-dcq", record], stdout=subprocess.PIPE, text=True) as lines:
        columns = next(lines.stdout).strip().split(",")
        place = [columns.index(name) for name in ("ts_ns", "op", "offset", "length")]
        for number, line in enumerate(lines.stdout):
            cells = line.rstrip().split(",")
            last, op, offset, length = int(cells[place[0]]), cells[place[1]][0], int(cells[place[2]]), int(cells[place[3]])
            # Pages that are made zero are discarded.
            op = "D" if op == "Z" else op
            first = last if first is None else first
            counts[op] += 1
            bytes_[op] += length
            if op == "W":
                begin, end = offset // PAGE, -(-(offset + length) // PAGE)
                touched[begin:end] = b"\1" * (end - begin)
                unaligned += bool(offset % PAGE or length % PAGE)
                measured_bytes += length if number >= measured else 0
    footprint = PAGE * sum(touched)
    return {
        "requests": sum(counts.values()),
        "reads": counts["R"],
        "writes": counts["W"],
        "discards": counts["D"],
        "flushes": counts["F"],
        "written_bytes": bytes_["W"],
        "read_bytes": bytes_["R"],
        "discarded_bytes": bytes_["D"],
        "footprint_bytes": footprint,
        "overwrite_factor": round(bytes_["W"] / footprint, 2),
        "device_fills": round(bytes_["W"] / device_bytes, 2),
        "measured_device_fills": round(measured_bytes / device_bytes, 2),
        "read_write_request_ratio": round(counts["R"] / counts["W"], 4),
        "duration_s": round((last - first) / 1e9, 3),
        "mean_write_bytes": bytes_["W"] // counts["W"],
        "unaligned_writes": unaligned,
        "unaligned_write_share": round(unaligned / counts["W"], 4),
    }


def compress(record):
    """A recording grows by a piece a second; in one piece it is smaller."""
    smaller = record.with_suffix(".smaller")
    with subprocess.Popen(["zstd", "-dcq", record], stdout=subprocess.PIPE) as lines:
        run("zstd", "-19", "-q", "-f", "-o", smaller, stdin=lines.stdout)
    smaller.rename(record)


def capture(options, name):
    kind = workloads.WORKLOADS[name]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="captures-", dir=options.scratch))
    # Databases serve no superuser.
    folder.chmod(0o755)
    record = options.into / f"{name}.csv.zst"
    record.unlink(missing_ok=True)
    try:
        drive = Drive(options.program, folder, record, options.size, kind.system)
        try:
            work = kind(drive.mount, folder)
            with work:
                work.prepare()
                start, filled = drive.requests(), drive.used()
                goal = Goal(drive, int(options.fills * options.size), options.seconds)
                work.work(goal)
            stop = drive.requests()
        finally:
            drive.detach()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    compress(record)
    phases = dict(zip(("load", "measured", "stop"), times(record, [drive.formatted, start, stop])))
    commands = [["isotherm", *drive.create], ["isotherm", *drive.attach], [*drive.mkfs, "DEVICE"], ["mount", "-o", "discard", "DEVICE", "FILES"]]
    shown = [" ".join(map(str, words)).replace(str(folder), "FOLDER").replace(str(options.into) + "/", "") for words in commands]
    told = {
        "name": name,
        "format": "CSV, header ts_ns,op,offset,length; ts_ns = ns since the drive was served; op R read, W write, D discard, Z write zeroes (these with an F after them: force unit access), F flush; bytes",
        "event": "as the drive was asked, below the block layer, a loop device and FUSE",
        "script": "experiments/captures/run.py " + name,
        "device_bytes": options.size,
        "logical_block_size": PAGE,
        "filesystem": kind.system,
        "mkfs": " ".join(drive.mkfs),
        "mount_options": "discard",
        "application": kind.application,
        "versions": {**{words[0]: output(*words).splitlines()[0] for words in kind.versions}, "linux": platform.release()},
        "parameters": work.parameters,
        **statistics(record, options.size, start),
        "full_when_measured": round(filled, 3),
        "fullest": round(goal.fullest, 3),
        "measured_start_ts_ns": phases["measured"],
        "phases": [{"label": label, "ts_ns": at} for label, at in {"mkfs": 0, **phases}.items()],
        "commands": shown + work.commands,
        "captured_on": datetime.date.today().isoformat(),
    }
    (options.into / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")
    return told


def size(text):
    return int(text[:-3]) * {"MiB": 1 << 20, "GiB": 1 << 30}[text[-3:]]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--into", type=pathlib.Path, default=pathlib.Path("captures"))
    arguments.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/isotherm")
    arguments.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    arguments.add_argument("--size", type=size, default="768MiB")
    arguments.add_argument("--fills", type=float, default=5)
    arguments.add_argument("--seconds", type=float, default=400)
    arguments.add_argument("workloads", nargs="*", choices=[[], *workloads.WORKLOADS], metavar="WORKLOAD")
    options = arguments.parse_args()
    names = options.workloads or list(workloads.WORKLOADS)
    kinds = [workloads.WORKLOADS[name] for name in names]
    programs = {"losetup", "zstd"} | {MAKE[kind.system][0] for kind in kinds} | {program for kind in kinds for program in kind.programs}
    missing = sorted(program for program in programs if not shutil.which(program, path=workloads.PATH))
    if os.getuid() != 0 or not os.path.exists("/dev/fuse") or not options.program.exists() or missing:
        sys.exit(f"needs root, /dev/fuse and {options.program}; missing: {', '.join(missing) or 'one of these'}")
    os.environ["PATH"] = workloads.PATH
    options.into, options.program = options.into.resolve(), options.program.resolve()
    options.into.mkdir(parents=True, exist_ok=True)
    for name in names:
        told = capture(options, name)
        print(
            f"{name}: {told['requests']} requests in {told['duration_s']:.0f} s, {told['footprint_bytes'] >> 20} MiB written {told['overwrite_factor']} times, "
            f"{told['discards']} discards, {told['full_when_measured']:.0%} to {told['fullest']:.0%} full",
            flush=True,
        )


main()
