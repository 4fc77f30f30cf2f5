#!/usr/bin/env python3
"""What programs do to a mounted file system: a database, a mail server, a build of software, a database server.

    experiments/sfs-mounted/jobs.py JOB prepare|work FOLDER SCRATCH BYTES SEED

`prepare` makes what the job works on, about BYTES of it; `work` works on it until about BYTES were handed to write(2) and its kin. Prints as JSON
how many these were, and the seconds that it took. SCRATCH is a folder that does not count. Where no space is left it ends with the status 28,
which is ENOSPC.

  sqlite   SQLite in WAL mode, synchronous=FULL: transactions that update eight rows of 400 bytes; a fifth of the rows gets four fifths of that
  mail     messages of 1 to 64 KiB, 20 KB as a rule, are delivered (written, fsync), appended to (fsync), read and deleted; their number stays about the same
  source   a tree of sources is deleted with all that was made of it, unpacked from an archive by tar, and built: each source is read, an object of up to
           three times its size written and renamed, and all objects put into one file
  pgbench  PostgreSQL under pgbench's own transactions with 4 clients; a tenth of each page is free at first, so that the tables grow little
"""

import errno
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time

#: Files take whole blocks.
BLOCK = 4096


def written():
    """Bytes that this process and its children that ended have handed to the kernel to be written."""
    for line in open("/proc/self/io"):
        if line.startswith("wchar:"):
            return int(line.split()[1])
    raise OSError("/proc/self/io has no wchar")


class Sqlite:
    ROW = 400

    def __init__(self, folder, _):
        self.path = folder / "items.db"

    def open(self):
        database = sqlite3.connect(self.path, isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        return database

    def prepare(self, bytes_, rng):
        database = self.open()
        database.execute("CREATE TABLE items (number INTEGER PRIMARY KEY, payload BLOB)")
        count = bytes_ * 9 // 10 // self.ROW
        for first in range(0, count, 1000):
            database.execute("BEGIN")
            rows = ((number, rng.randbytes(self.ROW)) for number in range(first, min(first + 1000, count)))
            database.executemany("INSERT INTO items VALUES (?, ?)", rows)
            database.execute("COMMIT")
        database.close()

    def work(self, bytes_, rng):
        database = self.open()
        (count,) = database.execute("SELECT count(*) FROM items").fetchone()
        end = written() + bytes_
        while written() < end:
            database.execute("BEGIN")
            for _ in range(8):
                number = rng.randrange(count // 5 if rng.random() < 0.8 else count)
                database.execute("UPDATE items SET payload = ? WHERE number = ?", (rng.randbytes(self.ROW), number))
            database.execute("COMMIT")
        database.close()


class Mail:
    # The file systems make an inode for each 16 KiB of their own accord.
    MEAN = 20000

    def __init__(self, folder, _):
        self.folder = folder / "mail"

    def deliver(self, path, length, rng, flags):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags)
        os.write(descriptor, rng.randbytes(length))
        os.fsync(descriptor)
        os.close(descriptor)

    def length(self, rng):
        return min(1024 + int(rng.expovariate(1 / (self.MEAN - 1024))), 65536)

    def prepare(self, bytes_, rng):
        for box in range(16):
            (self.folder / str(box)).mkdir(parents=True)
        for number in range(bytes_ // (self.MEAN + BLOCK // 2)):
            (self.folder / str(number % 16) / f"m{number}").write_bytes(rng.randbytes(self.length(rng)))

    def work(self, bytes_, rng):
        messages = sorted(path for box in self.folder.iterdir() for path in box.iterdir())
        wanted, end, number = len(messages), written() + bytes_, 0
        while written() < end:
            at = rng.randrange(len(messages))
            what = rng.random()
            if what < 0.4:
                messages[at].read_bytes()
            elif what < 0.5:
                self.deliver(messages[at], 500 + rng.randrange(1500), rng, os.O_APPEND)
            elif len(messages) > wanted:
                messages[at], messages[-1] = messages[-1], messages[at]
                messages.pop().unlink()
            else:
                number += 1
                messages.append(self.folder / str(rng.randrange(16)) / f"{rng.getrandbits(64):x}-{number}")
                self.deliver(messages[-1], self.length(rng), rng, os.O_EXCL)


class Source:
    def __init__(self, folder, scratch):
        self.folder, self.archive = folder / "source", scratch / "source.tar"

    def prepare(self, bytes_, rng):
        # What is built of it takes three and a half times its room: half of that the objects, half the file of all of them. Of the last block of a
        # source and of its object a half is empty.
        origin = self.archive.with_suffix("")
        taken, number = 0, 0
        while taken < bytes_:
            path = origin / f"part{number // 40}" / f"file{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(rng.randbytes(200 + int(rng.expovariate(1 / 8000))))
            taken, number = taken + path.stat().st_size * 9 // 2 + BLOCK, number + 1
        with tarfile.open(self.archive, "w") as tar:
            for path in sorted(origin.rglob("file*")):
                tar.add(path, path.relative_to(origin))
        shutil.rmtree(origin)
        self.round(rng)

    def round(self, rng):
        self.folder.mkdir()
        subprocess.run(["tar", "-xf", self.archive, "-C", self.folder], check=True)
        sources, objects = sorted(self.folder.rglob("file*")), []
        for source in sources:
            length = int(len(source.read_bytes()) * rng.uniform(0.5, 3))
            objects.append(source.with_suffix(".o"))
            temporary = source.with_suffix(".new")
            temporary.write_bytes(rng.randbytes(length))
            temporary.rename(objects[-1])
        with open(self.folder / "library", "wb", buffering=65536) as library:
            for path in objects:
                library.write(path.read_bytes())

    def work(self, bytes_, rng):
        end = written() + bytes_
        while written() < end:
            shutil.rmtree(self.folder)
            self.round(rng)


class Pgbench:
    SETTINGS = {
        "unix_socket_directories": "/tmp",
        "listen_addresses": "",
        "port": "5499",
        "max_wal_size": "64MB",
        "min_wal_size": "32MB",
        "wal_recycle": "on",
        "checkpoint_timeout": "30s",
        "shared_buffers": "32MB",
        # The index is sorted in memory: files for that would take a tenth of the drive.
        "maintenance_work_mem": "512MB",
        # What a new table is filled with goes to the table alone: the log would outgrow its limit meanwhile.
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "autovacuum_naptime": "5s",
    }
    CLIENT = ["-h", "/tmp", "-p", "5499", "-U", "postgres"]
    # What a scale of one takes, and what the log and an empty cluster do.
    UNIT, OTHER = 33 << 19, 90 << 20

    def __init__(self, folder, _):
        self.data = folder / "postgres"

    def serve(self, what):
        """Has a server do something, and ends it with a checkpoint: what it and its children wrote is counted then."""
        words = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "postgres", "-D", str(self.data)]
        for name, value in self.SETTINGS.items():
            words += ["-c", f"{name}={value}"]
        server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                if subprocess.run(["pg_isready", "-q", *self.CLIENT], check=False).returncode == 0:
                    break
                time.sleep(0.05)
            what()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=120)

    def client(self, *words):
        ran = subprocess.run(["pgbench", *self.CLIENT, *words, "postgres"], check=False, capture_output=True, text=True)
        if ran.returncode:
            raise OSError(errno.ENOSPC if "No space left" in ran.stderr else errno.EIO, ran.stderr[-500:])

    def prepare(self, bytes_, _):
        self.data.mkdir()
        shutil.chown(self.data, "postgres", "postgres")
        privileges = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        subprocess.run([*privileges, "initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "--wal-segsize=4"], check=True, stdout=subprocess.DEVNULL)
        self.serve(lambda: self.client("-i", "-q", "-F", "90", "-s", str(max(1, (bytes_ - self.OTHER) // self.UNIT))))

    def work(self, bytes_, rng):
        # About 22 KiB each: the page that is first changed after a checkpoint goes to the log whole.
        transactions = bytes_ // (22 << 10) // 4
        self.serve(lambda: self.client("-n", "-c", "4", "-t", str(transactions), f"--random-seed={rng.randrange(1 << 30)}"))


JOBS = {"sqlite": Sqlite, "mail": Mail, "source": Source, "pgbench": Pgbench}


def main():
    name, phase, folder, scratch, bytes_, seed = sys.argv[1:]
    job = JOBS[name](pathlib.Path(folder), pathlib.Path(scratch))
    before, start = written(), time.monotonic()
    try:
        getattr(job, phase)(int(bytes_), random.Random(int(seed)))
    except (OSError, sqlite3.OperationalError) as problem:
        if getattr(problem, "errno", 0) == errno.ENOSPC or "disk is full" in str(problem):
            # At once: what SQLite has mapped cannot be written any more.
            os._exit(errno.ENOSPC)
        raise
    print(json.dumps({"written": written() - before, "seconds": time.monotonic() - start}))


if __name__ == "__main__":
    main()
