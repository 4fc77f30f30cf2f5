#!/usr/bin/env python3
"""SFS and the kernel's file systems on the same simulated drive, under the same work: who writes how much flash.

    experiments/sfs-mounted/run.py [--size 1GiB] [--utilisation 70,85] [--systems sfs,lfs,ext4,xfs,btrfs,btrfs-nodatacow]
                                   [--jobs zipf:1.1,zipf:1.1+filler,random,random+filler,sqlite,mail,source,pgbench] > table.md

As root, on Linux, with fio, losetup, the makers of the file systems, and PostgreSQL for its job; says what is missing otherwise. For each
system, a new drive in memory (page-mapped FTL, host and copies in streams of their own, greedy, 7 % over-provisioning, latencies of MLC), and
on it what a job works on, as much as the share of the drive that is asked. Then the job works: half of the drive's size is written before
counting begins, all of its size after. SFS and LFS run on the drive in one process; the kernel's file systems on a loop device over the
drive's FUSE file.

Jobs with a distribution's name are random writes of 4 KiB into one file, by fio's psync engine with direct I/O. The others are programs, see
jobs.py: what they hand to write(2) counts as the host's. Of a distribution with "+filler" a fifth of the drive is overwritten; the rest of what
is in use is a file that is written first, and never again.

Prints a table in Markdown: blocks that the file system wrote for each block of the host, bytes of flash for each byte of the file system,
their product, erases, and what the host wrote for each second of simulated flash time.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DRIVE = ["--op", "7%", "--placement", "host_gc", "--victim", "greedy", "--timing", "mlc"]
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
UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}


def size(text):
    return int(text[:-3]) * UNITS[text[-3:]]


def run(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, timeout=1800, **more)


def read(*words):
    return json.loads(run(*words, stdout=subprocess.PIPE).stdout)


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

    def __init__(self, program, system, bytes_, folder):
        self.program, self.mount = program, folder / "mnt"
        self.mount.mkdir()
        drive = " ".join(["--logical-size", str(bytes_), *DRIVE])
        words = [program, "sfs", "serve", self.mount, "--on", f"sim:{drive}", "-o", f"log={system},suid,dev,allow_other"]
        self.server = subprocess.Popen([str(word) for word in words])
        wait_for(lambda: os.path.ismount(self.mount), self.server)

    def counters(self):
        run(self.program, "sfs", "sync", self.mount)
        told = read(self.program, "sfs", "stats", self.mount)
        device = told["device"]
        return {
            "device": device["host_bytes_written"],
            "media": device["media_bytes_written"],
            "flash_ns": device["flash_time_ns"],
            "erases": device["blocks_erased"],
            "absorbed": 4096 * told["absorbed_blocks"],
        }

    def close(self):
        run("umount", self.mount)
        self.server.wait(timeout=120)


class Kernel:
    """A file system of the kernel on a loop device over the drive's file."""

    def __init__(self, program, system, bytes_, folder):
        self.program, self.mount, self.disk, self.control = program, folder / "mnt", folder / "drive", folder / "ctl"
        self.mount.mkdir()
        self.disk.mkdir()
        words = [program, "drive", "serve", "--ram", "--logical-size", bytes_, *DRIVE, "--fuse", self.disk, "--control", self.control]
        self.server = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: (self.disk / "disk").exists(), self.server)
        found = run("losetup", "--find", "--show", "--direct-io=on", self.disk / "disk", stdout=subprocess.PIPE, text=True)
        self.loop = found.stdout.strip()
        run(*MAKE[system], self.loop, stdout=subprocess.DEVNULL)
        run("mount", "-o", OPTIONS[system], self.loop, self.mount)

    def counters(self):
        run("sync", "-f", self.mount)
        told = read(self.program, "drive", "stats", self.control)
        return {
            "device": told["host_bytes_written"],
            "media": told["media_bytes_written"],
            "flash_ns": told["flash_time_ns"],
            "erases": told["erase_count"]["total"],
            "absorbed": 0,
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


def measure(program, system, bytes_, utilisation, job):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sfs-mounted-"))
    # PostgreSQL serves no superuser.
    folder.chmod(0o755)
    make = Log if system in ("sfs", "lfs") else Kernel
    place = make(program, system, bytes_, folder)
    try:
        work = (Program if job in PROGRAMS else Fio)(job, place.mount, folder)
        work.prepare(int(bytes_ * utilisation) // 4096 * 4096, bytes_, 0)
        work.work(bytes_ // 2, 1)
        before = place.counters()
        host, seconds = work.work(bytes_, 2)
        after = place.counters()
    finally:
        place.close()
        shutil.rmtree(folder, ignore_errors=True)
    told = {key: after[key] - before[key] for key in after}
    return {**told, "host": host, "seconds": seconds}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=ROOT / "target/release/isotherm")
    arguments.add_argument("--size", default="1GiB")
    arguments.add_argument("--utilisation", default="70,85")
    arguments.add_argument("--systems", default="sfs,lfs,ext4,xfs,btrfs,btrfs-nodatacow")
    arguments.add_argument("--jobs", default=",".join(["zipf:1.1", "zipf:1.1+filler", "random", "random+filler", *PROGRAMS]))
    options = arguments.parse_args()
    systems = options.systems.split(",")
    jobs = options.jobs.split(",")
    needed = {"losetup", *(MAKE[s][0] for s in systems if s in MAKE)}
    needed |= {name for job in jobs for name in PROGRAMS.get(job, ["fio"])}
    missing = sorted(name for name in needed if not shutil.which(name))
    if os.getuid() != 0 or not os.path.exists("/dev/fuse") or missing:
        sys.exit(f"skipped: needs root and /dev/fuse; missing: {', '.join(missing) or 'rights'}")
    bytes_ = size(options.size)
    print("| job | utilisation | file system | file system WA | flash WA | end to end | absorbed | erases | MB/s of flash time | wall, s |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for job in jobs:
        for utilisation in options.utilisation.split(","):
            for system in systems:
                place = f"| {job} | {utilisation} % | {system} |"
                try:
                    told = measure(options.program, system, bytes_, int(utilisation) / 100, job)
                except (subprocess.SubprocessError, OSError) as problem:
                    print(f"{place} failed: {problem} | | | | | | |", flush=True)
                    continue
                own, flash = told["device"] / told["host"], told["media"] / max(told["device"], 1)
                rate = told["host"] / (told["flash_ns"] / 1e9) / 1e6
                absorbed = 100 * told["absorbed"] / told["host"]
                print(
                    f"{place} {own:.3f} | {flash:.3f} | {own * flash:.3f} | {absorbed:.1f} % | {told['erases']} | {rate:.2f} | {told['seconds']:.0f} |",
                    flush=True,
                )


main()
