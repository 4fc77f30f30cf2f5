#!/usr/bin/env python3
"""SFS and the kernel's file systems on the same simulated drive, under the same work: who writes how much flash.

    experiments/sfs-mounted/run.py [--size 1GiB] [--utilisation 70,85] [--systems sfs,lfs,ext4,xfs,btrfs,btrfs-nodatacow]
                                   [--jobs zipf:1.1,zipf:1.1+filler,random,random+filler,sqlite,mail,source,pgbench]
                                   [--drives "--op 7% --placement host_gc --victim greedy --timing mlc"] [--settle] [--segments] > table.md

As root, on Linux, with fio, losetup, the makers of the file systems, and PostgreSQL for its job; says what is missing otherwise. For each
system, a new drive in memory (page-mapped FTL, host and copies in streams of their own, greedy, 7 % over-provisioning, latencies of MLC, or what
--drives says: several, parted by semicolons, each after a name and an equals sign), and on it what a job works on, as much as the share of the drive that is asked. Then the job works: half of the drive's size is written before
counting begins, all of its size after. SFS and LFS run on the drive in one process; the kernel's file systems on a loop device over the
drive's FUSE file. With --settle all of the drive's size is written again and again before counting begins, until the file system has written the drive
once (16 times at most; of a trace once): what waits in memory absorbs much, and a log that has not been round does not clean.

Jobs with a distribution's name are random writes of 4 KiB into one file, by fio's psync engine with direct I/O. The others are programs, see
jobs.py: what they hand to write(2) counts as the host's. Of a distribution with "+filler" a fifth of the drive is overwritten; the rest of what
is in use is a file that is written first, and never again. A job "trace:FILE" writes what a block trace does, in its order and as fast as it goes,
into a file as large as what the trace touches; the drive is as large as the utilisation asks then, and the trace goes round.

Prints a table in Markdown: the share of the drive that files hold when the work is done, blocks that the file system wrote for each block of the
host, bytes of flash for each byte of the file system, their product, the share of the blocks handed to SFS or LFS that replaced one that still
waited in memory (a piece of a block counts as one; what the kernel's cache absorbs is not known), erases, and what the host wrote for each second
of simulated flash time. With --segments a second one, of SFS and LFS: of the segments that hold data, the share in each tenth of utilisation,
when the work is done.
"""

import argparse
import errno
import itertools
import json
import mmap
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRIVE = "--op 7% --placement host_gc --victim greedy --timing mlc"
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "--mixed"],
    "btrfs-nodatacow": ["mkfs.btrfs", "-q", "-f", "--mixed"],
}
OPTIONS = {"ext4": "discard", "xfs": "discard", "btrfs": "discard", "btrfs-nodatacow": "discard,nodatacow"}
PROGRAMS = {"sqlite": [], "mail": [], "source": ["tar"], "pgbench": ["initdb", "postgres", "pgbench", "setpriv"]}
# Of a job's name, and the share of the drive that is overwritten then.
FILLER, ACTIVE = "+filler", 0.2
# Before the file of a trace.
TRACE = "trace:"
# Of the drive's size, that are written before a file system counts as settled.
MOST_ROUNDS = 16
UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}


def size(text):
    return int(text[:-3]) * UNITS[text[-3:]]


def run(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, timeout=1800, **more)


def read(*words):
    return json.loads(run(*words, stdout=subprocess.PIPE).stdout)


def held(folder):
    """Bytes that the files in a folder take."""
    return int(run("du", "-s", "-B1", folder, stdout=subprocess.PIPE).stdout.split()[0])


def wait_for(what, server):
    for _ in range(1500):
        if what():
            return
        if server.poll() is not None:
            sys.exit(f"the server ended with {server.returncode}")
        time.sleep(0.02)
    sys.exit("the server does not answer")


class Log:
    """SFS, or LFS by the same code, on a drive in its own process."""

    def __init__(self, program, system, bytes_, options, folder):
        self.program, self.mount = program, folder / "mnt"
        self.mount.mkdir()
        drive = f"--logical-size {bytes_} {options}"
        words = [program, "sfs", "serve", self.mount, "--on", f"sim:{drive}", "-o", f"log={system},suid,dev,allow_other"]
        self.server = subprocess.Popen([str(word) for word in words])
        wait_for(lambda: os.path.ismount(self.mount), self.server)

    def segments(self):
        """Segments by tenths of utilisation."""
        told = read(self.program, "sfs", "stats", self.mount)["utilisation_histogram"]
        return [sum(told[at : at + 2]) for at in range(0, len(told), 2)]

    def counters(self):
        run(self.program, "sfs", "sync", self.mount)
        told = read(self.program, "sfs", "stats", self.mount)
        device = told["device"]
        return {
            "device": device["host_bytes_written"],
            "media": device["media_bytes_written"],
            "flash_ns": device["flash_time_ns"],
            "erases": device["blocks_erased"],
            "absorbed": told["absorbed_blocks"],
            "handed": told["host_blocks"],
        }

    def close(self):
        run("umount", self.mount)
        self.server.wait(timeout=120)


class Kernel:
    """A file system of the kernel on a loop device over the drive's file."""

    def __init__(self, program, system, bytes_, options, folder):
        self.program, self.mount, self.disk, self.control = program, folder / "mnt", folder / "drive", folder / "ctl"
        self.mount.mkdir()
        self.disk.mkdir()
        words = [program, "drive", "serve", "--ram", "--logical-size", bytes_, *options.split(), "--fuse", self.disk, "--control", self.control]
        self.server = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: (self.disk / "disk").exists(), self.server)
        found = run("losetup", "--find", "--show", "--direct-io=on", self.disk / "disk", stdout=subprocess.PIPE, text=True)
        self.loop = found.stdout.strip()
        run(*MAKE[system], self.loop, stdout=subprocess.DEVNULL)
        run("mount", "-o", OPTIONS[system], self.loop, self.mount)

    def segments(self):
        return None

    def counters(self):
        run("sync", "-f", self.mount)
        told = read(self.program, "drive", "stats", self.control)
        return {
            "device": told["host_bytes_written"],
            "media": told["media_bytes_written"],
            "flash_ns": told["flash_time_ns"],
            "erases": told["erase_count"]["total"],
            "absorbed": 0,
            "handed": 0,
        }

    def close(self):
        run("umount", self.mount)
        run("losetup", "--detach", self.loop)
        self.server.terminate()
        self.server.wait(timeout=120)


class Fio:
    """Random writes into one file."""

    def __init__(self, distribution, mount, _):
        self.distribution, self.path = distribution.removesuffix(FILLER), mount / "file"
        self.has_filler = distribution.endswith(FILLER)

    def prepare(self, bytes_, drive_bytes, _):
        active = int(drive_bytes * ACTIVE) // 4096 * 4096 if self.has_filler else bytes_
        if active < bytes_:
            self.fill(self.path.with_name("filler"), bytes_ - active)
        self.fill(self.path, active)

    def fill(self, path, bytes_):
        with open(path, "wb") as file:
            block = os.urandom(1 << 20)
            for at in range(0, bytes_, 1 << 20):
                file.write(block[: min(1 << 20, bytes_ - at)])
            os.fsync(file.fileno())

    def work(self, bytes_, seed):
        """What was written, and the seconds that it took."""
        words = ["fio", "--name=w", f"--filename={self.path}", f"--size={self.path.stat().st_size}", "--rw=randwrite", "--bs=4k", "--ioengine=psync"]
        words += [f"--random_distribution={self.distribution}", f"--io_size={bytes_}", f"--randseed={seed}", "--direct=1", "--norandommap"]
        told = read(*words, "--fallocate=none", "--output-format=json", "--thread")["jobs"][0]["write"]
        return told["io_bytes"], told["runtime"] / 1000


class Trace:
    """What a block trace writes, into one file; every turn goes on where the one before ended."""

    def __init__(self, writes, mount, _):
        self.writes, self.path = itertools.cycle(writes), mount / "file"
        self.longest = max(blocks for _, blocks in writes)

    def prepare(self, bytes_, *_):
        Fio("random", self.path.parent, None).fill(self.path, bytes_)

    def work(self, bytes_, _):
        buffer = mmap.mmap(-1, 4096 * self.longest)
        buffer.write(os.urandom(4096 * self.longest))
        view, written, start = memoryview(buffer), 0, time.monotonic()
        with open(self.path, "r+b", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_DIRECT)) as file:
            while written < bytes_:
                first, blocks = next(self.writes)
                written += os.pwrite(file.fileno(), view[: 4096 * blocks], 4096 * first)
        return written, time.monotonic() - start


def writes_of(program, source):
    """The first block and the number of blocks of each write of a block trace, and the number of blocks that it touches: others have no number."""
    with tempfile.TemporaryDirectory(prefix="sfs-mounted-") as folder:
        plain = pathlib.Path(folder) / "trace.csv"
        converted = subprocess.run([program, "trace", "convert", source, plain], check=False, capture_output=True, text=True)
        if converted.returncode:
            sys.exit(converted.stderr.strip())
        spans = []
        with open(plain) as rows:
            columns = next(rows).strip().split(",")
            op, offset, length = (columns.index(name) for name in ("op", "offset", "length"))
            for row in rows:
                cells = row.rstrip().split(",")
                if cells[op] == "W":
                    spans.append((int(cells[offset]) // 4096, -(-(int(cells[offset]) + int(cells[length])) // 4096)))
    touched = sorted({block for first, end in spans for block in range(first, end)})
    if not touched:
        sys.exit(f"{source}: it has no write; give a trace with some")
    number = {block: at for at, block in enumerate(touched)}
    return [(number[first], end - first) for first, end in spans], len(touched)


class Program:
    """One of the programs of jobs.py."""

    def __init__(self, job, mount, scratch):
        self.job, self.mount, self.scratch = job, mount, scratch

    def run(self, phase, bytes_, seed):
        told = read(pathlib.Path(__file__).with_name("jobs.py"), self.job, phase, self.mount, self.scratch, bytes_, seed)
        return told["written"], told["seconds"]

    def prepare(self, bytes_, _, seed):
        self.run("prepare", bytes_, seed)

    def work(self, bytes_, seed):
        return self.run("work", bytes_, seed)


def reason(problem):
    """Of a failure, in a few words."""
    # The programs of jobs.py end with the error's number.
    status = getattr(problem, "returncode", None)
    if errno.ENOSPC in (status, getattr(problem, "errno", None)):
        return "no space left"
    return problem if status is None else f"{pathlib.Path(problem.cmd[0]).name} ended with {status}"


def measure(program, system, bytes_, drive, utilisation, job, trace, settles):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sfs-mounted-"))
    # PostgreSQL serves no superuser.
    folder.chmod(0o755)
    make = Log if system in ("sfs", "lfs") else Kernel
    live = int(bytes_ * utilisation) // 4096 * 4096
    if trace:
        writes, touched = trace
        work, live = Trace(writes, folder / "mnt", folder), 4096 * touched
        bytes_ = int(live / utilisation) >> 21 << 21
    else:
        work = (Program if job in PROGRAMS else Fio)(job, folder / "mnt", folder)
    place = make(program, system, bytes_, drive, folder)
    try:
        work.prepare(live, bytes_, 0)
        start = place.counters()["device"] if settles else 0
        work.work(bytes_ // 2, 1)
        # Of a trace always as much, so that all rows are about the same requests.
        most = (1 if trace else MOST_ROUNDS) if settles else 0
        for seed in range(3, 3 + most):
            if not trace and place.counters()["device"] - start >= bytes_:
                break
            work.work(bytes_, seed)
        before = place.counters()
        host, seconds = work.work(bytes_, 2)
        after = place.counters()
        share = held(place.mount) / bytes_
        segments = place.segments()
    finally:
        place.close()
        shutil.rmtree(folder, ignore_errors=True)
    told = {key: after[key] - before[key] for key in after}
    return {**told, "host": host, "seconds": seconds, "segments": segments, "share": share}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=ROOT / "target/release/isotherm")
    arguments.add_argument("--size", default="1GiB")
    arguments.add_argument("--utilisation", default="70,85")
    arguments.add_argument("--systems", default="sfs,lfs,ext4,xfs,btrfs,btrfs-nodatacow")
    arguments.add_argument("--jobs", default=",".join(["zipf:1.1", "zipf:1.1+filler", "random", "random+filler", *PROGRAMS]))
    arguments.add_argument("--drives", default=DRIVE)
    arguments.add_argument("--settle", action="store_true")
    arguments.add_argument("--segments", action="store_true")
    options = arguments.parse_args()
    systems = options.systems.split(",")
    jobs = options.jobs.split(",")
    # A name, and options of `drive create`; a drive alone has no name.
    drives = [(words.split("=", 1) if not words.startswith("-") else ("", words)) for words in options.drives.split(";")]
    needed = {"losetup", *(MAKE[s][0] for s in systems if s in MAKE)}
    needed |= {name for job in jobs if not job.startswith(TRACE) for name in PROGRAMS.get(job, ["fio"])}
    missing = sorted(name for name in needed if not shutil.which(name))
    if os.getuid() != 0 or not os.path.exists("/dev/fuse") or missing:
        sys.exit(f"skipped: needs root and /dev/fuse; missing: {', '.join(missing) or 'rights'}")
    bytes_ = size(options.size)
    traces = {job: writes_of(options.program, job.removeprefix(TRACE)) for job in jobs if job.startswith(TRACE)}
    print("| job | utilisation | file system | held | file system WA | flash WA | end to end | absorbed | erases | MB/s of flash time | wall, s |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    histograms = []
    for drive, job, utilisation, system in itertools.product(drives, jobs, options.utilisation.split(","), systems):
        name = ", ".join(word for word in (pathlib.Path(job).name.split(".csv")[0], drive[0]) if word)
        place = f"| {name} | {utilisation} % | {system} |"
        try:
            told = measure(options.program, system, bytes_, drive[1], int(utilisation) / 100, job, traces.get(job), options.settle)
        except (subprocess.SubprocessError, OSError) as problem:
            print(f"{place} failed: {reason(problem)} | | | | | | | |", flush=True)
            continue
        own, flash = told["device"] / told["host"], told["media"] / max(told["device"], 1)
        rate = told["host"] / (told["flash_ns"] / 1e9) / 1e6
        absorbed = f"{100 * told['absorbed'] / told['handed']:.1f} %" if told["handed"] else "–"
        print(
            f"{place} {100 * told['share']:.0f} % | {own:.3f} | {flash:.3f} | {own * flash:.3f} | {absorbed} | {told['erases']} | {rate:.2f} | {told['seconds']:.0f} |",
            flush=True,
        )
        if options.segments and told["segments"]:
            shares = (f"{100 * count / sum(told['segments']):.0f} %" for count in told["segments"])
            histograms.append(f"{place} {' | '.join(shares)} |")
    if histograms:
        tenths = " | ".join(f"to {upper} %" for upper in range(10, 101, 10))
        print(f"\n| job | utilisation | file system | {tenths} |\n|---|---:|---|{'---:|' * 10}")
        print("\n".join(histograms))


main()
