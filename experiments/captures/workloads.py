"""The applications that run.py captures.

A workload is made of the folder that its file system is mounted on and a scratch folder that is not captured. Within `with`, `prepare` makes the data
that it works on and `work(is_done)` works on it until that says so. What is drawn at random is drawn from a seed.
"""

import glob
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time

import distributions

PATH = os.pathsep.join([*sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True), "/usr/local/sbin:/usr/sbin:/sbin", os.environ.get("PATH", os.defpath)])
SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], check=False, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **more})
    if done.returncode != 0:
        sys.exit(f"{words[0]} ended with {done.returncode}: {done.stderr}")
    return done


def until(is_true, what):
    for _ in range(1200):
        if is_true():
            return
        time.sleep(0.05)
    sys.exit(f"{what} does not answer")


def succeeds(*words):
    return subprocess.run([str(word) for word in words], check=False, **SILENT).returncode == 0


class Workload:
    """What all have: programs that it needs, commands that are told, a server perhaps."""

    programs, versions = (), ()

    def __init__(self, files, scratch):
        self.files, self.scratch, self.server, self.commands = files, scratch, None, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.server:
            self.server.terminate()
            self.server.wait(timeout=300)

    def told(self, *words):
        """A command of the workload, as its description shows it."""
        shown = " ".join(map(str, words)).replace(str(self.files), "FILES").replace(str(self.scratch), "FOLDER")
        if shown not in self.commands:
            self.commands.append(shown)
        return [str(word) for word in words]

    def serve(self, *words):
        self.server = subprocess.Popen(self.told(*words), cwd="/", **SILENT)

    def until_done(self, is_done, *words):
        """Lets a client run until the work is done."""
        client = subprocess.Popen(self.told(*words), cwd="/", **SILENT)
        while not is_done():
            if client.poll() is not None:
                sys.exit(f"{words[0]} ended with {client.returncode}")
            time.sleep(0.1)
        client.terminate()
        client.wait(timeout=300)


class SqliteRollback(Workload):
    """Shop-like: skewed updates of accounts, and a log of events whose oldest are deleted."""

    system, application = "xfs", "SQLite with a rollback journal (journal_mode=DELETE, synchronous=FULL), from Python"
    versions = (("sqlite3", "--version"),)
    programs = ("sqlite3",)
    parameters = {"accounts": 1_050_000, "payload_bytes": 400, "events": 100_000, "updates_per_transaction": 4, "skew": "zipf 0.99, scattered", "seed": 11}

    def connect(self):
        database = sqlite3.connect(self.files / "shop.db", isolation_level=None)
        database.execute("PRAGMA journal_mode=DELETE")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("PRAGMA cache_size=-16384")
        return database

    def prepare(self):
        rng, database = random.Random(1), self.connect()
        database.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, grade INTEGER, payload BLOB)")
        database.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, account INTEGER, payload BLOB)")
        rows = ((n, rng.randrange(1 << 30), rng.randbytes(self.parameters["payload_bytes"])) for n in range(self.parameters["accounts"]))
        events = ((n, rng.randrange(1 << 20), rng.randbytes(200)) for n in range(self.parameters["events"]))
        database.execute("BEGIN")
        database.executemany("INSERT INTO accounts VALUES (?, ?, ?)", rows)
        database.executemany("INSERT INTO events VALUES (?, ?, ?)", events)
        database.execute("COMMIT")
        database.execute("CREATE INDEX events_account ON events (account)")
        database.close()

    def work(self, is_done):
        rng, database, event = random.Random(self.parameters["seed"]), self.connect(), self.parameters["events"]
        accounts = distributions.Zipf(self.parameters["accounts"], 0.99, rng)
        while not is_done():
            database.execute("BEGIN IMMEDIATE")
            for _ in range(self.parameters["updates_per_transaction"]):
                payload = rng.randbytes(self.parameters["payload_bytes"])
                database.execute("UPDATE accounts SET grade = ?, payload = ? WHERE id = ?", (rng.randrange(1 << 30), payload, accounts.draw()))
            database.execute("INSERT INTO events VALUES (?, ?, ?)", (event, accounts.draw(), rng.randbytes(200)))
            database.execute("DELETE FROM events WHERE id = ?", (event - self.parameters["events"],))
            database.execute("COMMIT")
            event += 1
        database.close()


class Innodb(Workload):
    """sysbench's read-write transactions."""

    system, application = "ext4", "MariaDB (InnoDB) under sysbench oltp_read_write"
    programs = ("mariadbd", "mariadb-install-db", "mariadb-admin", "sysbench")
    versions = (("mariadbd", "--version"), ("sysbench", "--version"))
    parameters = {"tables": 8, "rows_per_table": 200_000, "threads": 4, "skew": "pareto, h = 0.2", "seed": 12}
    SETTINGS = ("--innodb-buffer-pool-size=64M", "--innodb-log-file-size=48M", "--innodb-flush-log-at-trx-commit=1", "--innodb-io-capacity=2000")

    def prepare(self):
        self.data = self.files / "mariadb"
        self.data.mkdir()
        shutil.chown(self.data, "mysql", "mysql")
        sockets = self.scratch / "sockets"
        sockets.mkdir()
        shutil.chown(sockets, "mysql", "mysql")
        self.socket = sockets / "server"
        run(*self.told("mariadb-install-db", "--no-defaults", "--user=mysql", "--auth-root-authentication-method=normal", f"--datadir={self.data}"))
        place = ("--no-defaults", "--user=mysql", f"--datadir={self.data}", f"--socket={self.socket}", f"--pid-file={sockets}/pid", "--skip-networking")
        self.serve("mariadbd", *place, *self.SETTINGS)
        until(lambda: succeeds("mariadb-admin", "--no-defaults", f"--socket={self.socket}", "-u", "root", "create", "sbtest"), "mariadbd")
        self.sysbench = ["sysbench", "oltp_read_write", "--db-driver=mysql", f"--mysql-socket={self.socket}", "--mysql-user=root"]
        self.sysbench += [f"--tables={self.parameters['tables']}", f"--table-size={self.parameters['rows_per_table']}"]
        run(*self.told(*self.sysbench, "--threads=2", "prepare"))

    def work(self, is_done):
        load = ("--range-selects=off", "--rand-type=pareto", "--rand-pareto-h=0.2", f"--rand-seed={self.parameters['seed']}", f"--threads={self.parameters['threads']}", "--time=3600", "run")
        self.until_done(is_done, *self.sysbench, *load)


class Lmdb(Workload):
    """Puts into a copy-on-write tree, each transaction durable."""

    system, application = "ext4", "LMDB, transactions of five puts, each synced, from Python"
    programs = ("python3",)
    parameters = {"keys": 1_000_000, "value_bytes": 400, "puts_per_transaction": 5, "map_mib": 680, "skew": "zipf 0.99, scattered", "seed": 13}

    def open(self):
        import lmdb  # Debian's python3-lmdb

        self.parameters["lmdb"] = ".".join(map(str, lmdb.version()))
        return lmdb.open(str(self.files / "lmdb"), map_size=self.parameters["map_mib"] << 20)

    def key(self, number):
        # Hashed, as keys of a cache are.
        return distributions.scatter(number).to_bytes(8, "big") + number.to_bytes(8, "big")

    def prepare(self):
        rng, tree = random.Random(1), self.open()
        keys = sorted(map(self.key, range(self.parameters["keys"])))
        for first in range(0, len(keys), 20_000):
            with tree.begin(write=True) as transaction:
                for key in keys[first : first + 20_000]:
                    transaction.put(key, rng.randbytes(self.parameters["value_bytes"]))
        tree.close()

    def work(self, is_done):
        rng, tree = random.Random(self.parameters["seed"]), self.open()
        keys = distributions.Zipf(self.parameters["keys"], 0.99, rng)
        while not is_done():
            with tree.begin(write=True) as transaction:
                for _ in range(self.parameters["puts_per_transaction"]):
                    transaction.put(self.key(keys.draw()), rng.randbytes(self.parameters["value_bytes"]))
        tree.close()


class Redis(Workload):
    """Sets of random keys; the log of commands is rewritten whenever it has grown by half."""

    system, application = "btrfs", "Redis with an append-only file that is rewritten by and by, under redis-benchmark"
    programs = ("redis-server", "redis-benchmark", "redis-cli")
    versions = (("redis-server", "--version"),)
    parameters = {"keys": 440_000, "value_bytes": 512, "fsync": "everysec", "rewritten_when_grown_by": "50 %", "clients": 8, "skew": "uniform", "seed": "the benchmark's own"}

    def prepare(self):
        self.socket = self.scratch / "redis.sock"
        log = ("--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", 50, "--auto-aof-rewrite-min-size", "32mb")
        place = ("--port", 0, "--unixsocket", self.socket, "--dir", self.files, "--save", "", "--rdbcompression", "no")
        self.serve("redis-server", *place, *log)
        until(lambda: succeeds("redis-cli", "-s", self.socket, "ping"), "redis-server")
        self.benchmark("-n", 3 * self.parameters["keys"])
        run("redis-cli", "-s", self.socket, "bgrewriteaof")
        until(lambda: "aof_rewrite_in_progress:0" in self.told_by_server(), "the rewriting of the log")

    def told_by_server(self):
        return run("redis-cli", "-s", self.socket, "info", "persistence", stdout=subprocess.PIPE).stdout

    def benchmark(self, *more):
        words = ("redis-benchmark", "-s", self.socket, "-t", "set", "-q", "-r", self.parameters["keys"], "-d", self.parameters["value_bytes"], "-c", 8)
        run(*self.told(*words, *more))

    def work(self, is_done):
        while not is_done():
            self.benchmark("-n", 50_000)


class Pgbench(Workload):
    """Transactions of an own script: a skewed update, a line of history, a look."""

    system, application = "xfs", "PostgreSQL under pgbench with a Zipf script"
    programs = ("postgres", "initdb", "pgbench", "pg_isready", "setpriv")
    versions = (("postgres", "--version"),)
    parameters = {"scale": 24, "clients": 4, "fillfactor": 90, "skew": "zipf 1.05, scattered by permute()", "seed": 15}
    SETTINGS = ("max_wal_size=96MB", "min_wal_size=32MB", "checkpoint_timeout=60s", "shared_buffers=48MB", "autovacuum_naptime=5s", "listen_addresses=")
    SCRIPT = r"""\set drawn random_zipfian(1, 100000 * :scale, 1.05)
\set aid 1 + permute(:drawn - 1, 100000 * :scale)
\set looked random(1, 100000 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :looked;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, :delta, CURRENT_TIMESTAMP);
END;
"""

    def words(self, *more):
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *more]

    def prepare(self):
        self.data, self.sockets, self.script = self.files / "postgres", self.scratch / "sockets", self.scratch / "script.sql"
        self.script.write_text(self.SCRIPT)
        for path in (self.data, self.sockets):
            path.mkdir()
            shutil.chown(path, "postgres", "postgres")
        run(*self.told(*self.words("initdb", "-A", "trust", "--wal-segsize=4", "-D", self.data)), cwd="/")
        self.serve(*self.words("postgres", "-D", self.data, "-k", self.sockets, *(word for setting in self.SETTINGS for word in ("-c", setting))))
        until(lambda: succeeds("pg_isready", "-q", "-h", self.sockets), "postgres")
        client = self.words("pgbench", "-h", self.sockets, "-U", "postgres")
        run(*self.told(*client, "-i", "-q", "-s", self.parameters["scale"], "-F", self.parameters["fillfactor"], "postgres"), cwd="/")

    def work(self, is_done):
        load = ("-n", "-c", 4, "-T", 3600, "-f", self.script, "-D", f"scale={self.parameters['scale']}", f"--random-seed={self.parameters['seed']}")
        self.until_done(is_done, *self.words("pgbench", "-h", self.sockets, "-U", "postgres", *load, "postgres"))
        self.commands.append("script.sql: " + self.SCRIPT)


class Git(Workload):
    """Commits on topic branches that are squashed into the main one and deleted, with a collection of garbage after each."""

    system, application = "ext4", "git: commits, squashed merges, gc of a repository"
    programs = ("git",)
    versions = (("git", "--version"),)
    parameters = {"files": 12_000, "mean_file_bytes": 24_000, "files_per_commit": 60, "commits_per_branch": 12, "skew": "zipf 0.9, scattered", "seed": 16}
    SETTINGS = {"gc.auto": "0", "core.compression": "1", "user.name": "n", "user.email": "n@example.org", "core.fsync": "all", "commit.gpgSign": "false"}

    def git(self, *words):
        run(*self.told("git", "-C", self.repository, *words), env={**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.scratch)})

    def write(self, number, rng):
        # Text of a few words a line, as compressible as sources are.
        path = self.repository / f"part{number % 97}" / f"file{number}.txt"
        length = 500 + int(rng.expovariate(1 / (self.parameters["mean_file_bytes"] - 500)))
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{word:07x}{' ' if word % 9 else chr(10)}" for word in (rng.getrandbits(28) for _ in range(length // 8))))

    def prepare(self):
        self.repository = self.files / "repository"
        self.repository.mkdir()
        self.git("init", "-q", "-b", "main")
        for name, value in self.SETTINGS.items():
            self.git("config", name, value)
        rng = random.Random(1)
        for number in range(self.parameters["files"]):
            self.write(number, rng)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "first")
        self.git("gc", "-q")

    def work(self, is_done):
        rng = random.Random(self.parameters["seed"])
        files = distributions.Zipf(self.parameters["files"], 0.9, rng)
        while not is_done():
            self.git("checkout", "-q", "-b", "topic")
            for _ in range(self.parameters["commits_per_branch"]):
                for _ in range(self.parameters["files_per_commit"]):
                    self.write(files.draw(), rng)
                self.git("add", "--all")
                self.git("commit", "-q", "-m", "change")
            # The main branch keeps what the topic came to, as its one commit: history does not grow without bounds.
            self.git("reset", "-q", "--soft", "main")
            self.git("commit", "-q", "--amend", "-m", "squashed")
            self.git("branch", "-f", "main")
            self.git("checkout", "-q", "main")
            self.git("branch", "-q", "-D", "topic")
            self.git("reflog", "expire", "--expire=now", "--all")
            self.git("gc", "-q", "--prune=now")


WORKLOADS = {
    "sqlite-rollback-xfs": SqliteRollback,
    "innodb-oltp-ext4": Innodb,
    "lmdb-zipf-ext4": Lmdb,
    "redis-aof-btrfs": Redis,
    "pgbench-zipf-xfs": Pgbench,
    "git-topics-ext4": Git,
}
