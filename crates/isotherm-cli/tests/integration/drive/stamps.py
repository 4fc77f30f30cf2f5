"""A client of a served drive that knows afterwards what the drive owes it.

Every page that it writes bears a stamp: page, version, seed, over its whole length. For each page a ledger, which lies outside the
drive, keeps the last version that is durable (a flush that began after its acknowledgement has ended, or it was written with FUA)
and all versions that were asked for since. After a loss of power a page may bear the durable one or any later one, and nothing else;
after an end in order the acknowledged one or a later one. Pages that were trimmed are zeros.

    stamps.py write URI LEDGER SEED [--count N] [--depth N] [--flush-every N] [--no-trims] [--first PAGE] [--then COMMAND...]
    stamps.py verify URI LEDGER [--acknowledged] [--first PAGE]

`write` goes on until the count is reached or the drive goes away, and leaves the ledger in both cases. It prints "flushed" when
the first flush ends. With --then it runs a command in the middle, while it writes on, and leaves beside the ledger, as
LEDGER.then, what was owed when the command began. `verify` exits with 1 where a page bears anything else. With --first both leave
the pages before that one alone.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import time

import nbd

PAGE = 4096
MAGIC = 0x6D726568746F7369
CHUNK = 1 << 20


def stamp(page, version, seed):
    return struct.pack("<QQQQ", MAGIC, page, version, seed) * (PAGE // 32)


class Ledger:
    """For each page: the versions it may bear, [version, is_trim], the durable one first; and the acknowledged one."""

    def __init__(self, seed):
        self.seed, self.version, self.owed, self.acknowledged = seed, 0, {}, {}

    @classmethod
    def load(cls, path):
        ledger = cls(0)
        with open(path) as file:
            fields = json.load(file)
        ledger.seed, ledger.version = fields["seed"], fields["version"]
        ledger.owed = {int(page): versions for page, versions in fields["owed"].items()}
        ledger.acknowledged = {int(page): version for page, version in fields["acknowledged"].items()}
        return ledger

    def save(self, path):
        with open(path + ".new", "w") as file:
            json.dump(vars(self), file)
        os.replace(path + ".new", path)

    def copy(self):
        other = Ledger(self.seed)
        other.version = self.version
        other.owed = {page: list(versions) for page, versions in self.owed.items()}
        other.acknowledged = dict(self.acknowledged)
        return other

    def ask(self, pages, version, is_trim):
        for page in pages:
            # Version 0: the zeros of a drive that was never written.
            self.owed.setdefault(page, [[0, True]]).append([version, is_trim])

    def durable(self, page, version):
        self.owed[page] = [entry for entry in self.owed[page] if entry[0] >= version]


class Writer:
    def __init__(self, handle, ledger, options):
        self.handle, self.options = handle, options
        self.books = [ledger]
        self.pages = handle.get_size() // PAGE - options.first
        self.random = random.Random(options.seed)
        self.busy = set()
        self.in_flight = self.asked = self.flushes = 0
        self.since_flush = {}
        self.is_flushing = False
        self.may_use_fua = bool(options.flush_every)
        self.command = None

    def run(self):
        try:
            while self.asked < self.options.count:
                if self.options.then and self.command is None and self.asked >= self.options.count // 2:
                    self.begin_command()
                depth = self.options.depth
                if self.command is not None and self.command.poll() is None:
                    # Slowly: else what was owed at the beginning is written over before the command looks at the drive.
                    depth = 1
                    time.sleep(0.001)
                elif self.command is not None:
                    self.may_use_fua = bool(self.options.flush_every)
                while self.in_flight < depth and self.asked < self.options.count:
                    self.ask()
                self.handle.poll(-1)
            self.drain()
        except nbd.Error as error:
            print(f"the drive went away: {error}", flush=True)
        if self.command is not None and self.command.wait() != 0:
            sys.exit(f"{self.options.then} failed")

    def begin_command(self):
        """Begins it when only a flush has made durable what was written last: a write with FUA may take other pages with it."""
        self.may_use_fua = False
        for _ in range(64):
            self.ask()
        self.drain()
        self.ask_flush()
        self.drain()
        self.books.append(self.books[0].copy())
        self.command = subprocess.Popen(self.options.then)

    def drain(self):
        while self.in_flight:
            self.handle.poll(-1)

    def ask(self):
        self.asked += 1
        if self.options.flush_every and self.asked % self.options.flush_every == 0 and not self.is_flushing:
            return self.ask_flush()
        count = self.random.choice((1, 1, 1, 2, 4, 8))
        # Half of the requests go to an eighth of the drive, so that blocks are cleaned beside others that keep their data.
        first = self.random.randrange(self.pages // 8 if self.random.random() < 0.5 else self.pages - 8) + self.options.first
        pages = range(first, first + count)
        if not self.busy.isdisjoint(pages):
            return
        book = self.books[0]
        book.version += 1
        version = book.version
        is_trim = not self.options.no_trims and self.random.random() < 0.05
        has_fua = self.may_use_fua and self.random.random() < 0.02
        flags = nbd.CMD_FLAG_FUA if has_fua else 0
        for each in self.books:
            each.ask(pages, version, is_trim)
        self.busy.update(pages)
        self.in_flight += 1

        def done(error):
            self.in_flight -= 1
            self.busy.difference_update(pages)
            if error:
                return 1
            for page in pages:
                book.acknowledged[page] = version
                if has_fua:
                    book.durable(page, version)
                else:
                    self.since_flush[page] = version
            return 1

        if is_trim:
            self.handle.aio_trim(count * PAGE, first * PAGE, done, flags)
        else:
            data = b"".join(stamp(page, version, book.seed) for page in pages)
            self.handle.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(data)), first * PAGE, done, flags)

    def ask_flush(self):
        covered, self.since_flush = self.since_flush, {}
        self.is_flushing = True
        self.in_flight += 1

        def done(error):
            self.in_flight -= 1
            self.is_flushing = False
            if error:
                return 1
            self.flushes += 1
            if self.flushes == 1:
                print("flushed", flush=True)
            for page, version in covered.items():
                self.books[0].durable(page, version)
            return 1

        self.handle.aio_flush(done)


def bears(data, page, ledger):
    """The version that a page bears; None for zeros."""
    if data == bytes(PAGE):
        return None
    version = struct.unpack_from("<Q", data, 16)[0]
    if data != stamp(page, version, ledger.seed):
        raise ValueError(f"page {page} is torn or foreign: {data[:32].hex()}")
    return version


def verify(handle, ledger, needs_acknowledged, first):
    """Problems, and how many pages bear a version that was not acknowledged as durable."""
    problems, later = [], 0
    size = handle.get_size()
    for offset in range(first * PAGE, size, CHUNK):
        chunk = bytes(handle.pread(min(CHUNK, size - offset), offset))
        for at in range(0, len(chunk), PAGE):
            page = (offset + at) // PAGE
            owed = ledger.owed.get(page, [[0, True]])
            least = ledger.acknowledged.get(page, 0) if needs_acknowledged else 0
            allowed = [entry for entry in owed if entry[0] >= least]
            try:
                version = bears(chunk[at : at + PAGE], page, ledger)
            except ValueError as error:
                problems.append(str(error))
                continue
            if version is None:
                found = max((entry for entry in allowed if entry[1]), default=None)
            else:
                found = next((entry for entry in allowed if entry == [version, False]), None)
            if found is None:
                problems.append(f"page {page} bears {version or 'zeros'}, owed is one of {allowed[:5]}")
                continue
            later += found != owed[0]
            # What was found lies on flash: it is durable from now on.
            if page in ledger.owed:
                ledger.owed[page] = [found]
                ledger.acknowledged[page] = found[0]
    return problems, later


def main():
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write")
    write.add_argument("uri")
    write.add_argument("ledger")
    write.add_argument("seed", type=int)
    write.add_argument("--count", type=int, default=1 << 60)
    write.add_argument("--depth", type=int, default=16)
    write.add_argument("--flush-every", type=int, default=100)
    write.add_argument("--no-trims", action="store_true")
    write.add_argument("--first", type=int, default=0)
    write.add_argument("--then", nargs=argparse.REMAINDER)
    check = verbs.add_parser("verify")
    check.add_argument("uri")
    check.add_argument("ledger")
    check.add_argument("--acknowledged", action="store_true")
    check.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    handle = nbd.NBD()
    handle.connect_uri(options.uri)
    if options.verb == "write":
        ledger = Ledger.load(options.ledger) if os.path.exists(options.ledger) else Ledger(options.seed)
        writer = Writer(handle, ledger, options)
        writer.run()
        for name, book in zip(("", ".then"), writer.books):
            book.save(options.ledger + name)
        print(f"{writer.asked} requests, {writer.flushes} flushes", flush=True)
        return 0
    ledger = Ledger.load(options.ledger)
    problems, later = verify(handle, ledger, options.acknowledged, options.first)
    for problem in problems[:20]:
        print(problem)
    print(f"{len(ledger.owed)} pages looked at, {later} bear more than was owed, {len(problems)} are wrong")
    if problems:
        return 1
    ledger.save(options.ledger)
    return 0


if __name__ == "__main__":
    sys.exit(main())
