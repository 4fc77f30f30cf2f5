//! The protocol's details through libnbd, by its shell (nbdsh), which is a module of Python.

use std::path::PathBuf;
use std::sync::Arc;

use crate::memory::Memory;
use crate::serving::{Serving, named};
use crate::tools::{self, Running};

/// Runs a script with an open handle `h`, over a unix socket and over TCP; it has 16 MiB of zeros to begin with.
fn script(text: &str) {
    let Some(python) = python() else { return };
    for is_unix in [true, false] {
        let export = named("it", Arc::new(Memory::new(16 << 20)));
        let serving = Serving::with(vec![export], Default::default(), is_unix);
        let uri = serving.uri();
        let uri_is = format!("uri = {uri:?}");
        tools::run(&python, &["-m", "nbd", "--base-allocation", "--uri", &uri, "-c", &uri_is, "-c", text]);
    }
}

/// A Python that has libnbd: the one of the system, where libnbd was installed with it, or the first on the path. The program
/// `nbdsh` itself always takes the latter.
fn python() -> Option<PathBuf> {
    let candidates = [Some(PathBuf::from("/usr/bin/python3")).filter(|path| path.exists()), tools::find("python3")];
    let has_libnbd = |python: &PathBuf| Running::start(python, &["-c".as_ref(), "import nbd".as_ref()]).wait().0;
    let found = candidates.into_iter().flatten().find(has_libnbd);
    if found.is_none() {
        tools::skip("no python3 has the module nbd of libnbd");
    }
    found
}

#[test]
fn structured_reads_come_in_chunks_unless_they_must_not() {
    script(
        "
h.pwrite(b'x' * 8192, 1 << 20)
def read(flags):
    chunks = []
    buffer = h.pread_structured(4 << 20, 0, lambda data, offset, status, error: chunks.append((offset, len(data), status)), flags)
    assert buffer == bytes(1 << 20) + b'x' * 8192 + bytes((3 << 20) - 8192)
    return chunks
assert h.get_structured_replies_negotiated()
chunks = read(0)
assert [status for _, _, status in chunks] == [nbd.READ_HOLE, nbd.READ_DATA, nbd.READ_HOLE], chunks
assert read(nbd.CMD_FLAG_DF) == [(0, 4 << 20, nbd.READ_DATA)]
",
    );
}

#[test]
fn block_status_follows_writes_trims_and_zeros() {
    script(
        "
def status(offset, length, flags=0):
    found = []
    def extent(context, at, entries, error):
        assert (context, at) == ('base:allocation', offset)
        found.extend(entries)
    h.block_status(length, offset, extent, flags)
    return found
h.pwrite(b'x' * 4096, 4096)
h.pwrite(b'y' * 8192, 65536, nbd.CMD_FLAG_FUA)
assert status(0, 1 << 20) == [4096, 3, 4096, 0, 57344, 3, 8192, 0, 974848, 3]
assert status(0, 1 << 20, nbd.CMD_FLAG_REQ_ONE) == [4096, 3]
h.trim(4096, 4096, nbd.CMD_FLAG_FUA)
assert status(0, 65536) == [65536, 3]
h.zero(8192, 65536, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
assert status(0, 1 << 20) == [65536, 3, 8192, 0, 974848, 3]
assert h.pread(8192, 65536) == bytes(8192)
h.zero(8192, 65536, nbd.CMD_FLAG_FAST_ZERO)
assert status(0, 1 << 20) == [1 << 20, 3]
h.cache(8192, 0)
h.flush()
",
    );
}

#[test]
fn errors_have_their_numbers() {
    script(
        "
import errno
h.set_strict_mode(0)
size = h.get_size()
def fails(expected, call, *arguments):
    try:
        call(*arguments)
    except nbd.Error as error:
        assert error.errnum == expected, error
    else:
        raise AssertionError('no error')
fails(errno.EINVAL, h.pread, 1024, size - 512)
fails(errno.ENOSPC, h.pwrite, b'x' * 1024, size - 512)
fails(errno.ENOSPC, h.zero, 1024, size - 512)
fails(errno.EINVAL, h.trim, 1024, size - 512)
fails(errno.EINVAL, h.cache, 1024, size - 512)
fails(errno.EINVAL, h.block_status, 1024, size - 512, lambda *a: 0)
fails(errno.EINVAL, h.block_status, 0, 0, lambda *a: 0)
fails(errno.ENOTSUP, h.zero, 512, 0, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE)
fails(errno.EINVAL, h.trim, 512, 0, nbd.CMD_FLAG_REQ_ONE)
assert h.pread(512, size - 512) == bytes(512)
",
    );
}

#[test]
fn several_connections_see_one_export() {
    script(
        "
assert h.can_multi_conn()
others = [nbd.NBD() for _ in range(8)]
for index, other in enumerate(others):
    other.connect_uri(uri)
    other.pwrite(bytes([index + 1]) * 4096, index * 4096)
others[0].flush()
for index in range(8):
    assert h.pread(4096, index * 4096) == bytes([index + 1]) * 4096
cookies = [others[i % 8].aio_pread(nbd.Buffer(4096), i * 4096) for i in range(64)]
for i, cookie in enumerate(cookies):
    while not others[i % 8].aio_command_completed(cookie):
        others[i % 8].poll(-1)
for other in others:
    other.shutdown()
",
    );
}

#[test]
fn clients_without_structured_replies_and_by_the_old_option_are_served() {
    script(
        "
for structured in (True, False):
    for mask in (nbd.HANDSHAKE_FLAG_MASK, nbd.HANDSHAKE_FLAG_FIXED_NEWSTYLE, nbd.HANDSHAKE_FLAG_NO_ZEROES, 0):
        other = nbd.NBD()
        other.set_request_structured_replies(structured)
        other.set_handshake_flags(mask)
        other.connect_uri(uri)
        assert other.get_size() == 16 << 20
        assert other.get_structured_replies_negotiated() == (structured and bool(mask & nbd.HANDSHAKE_FLAG_FIXED_NEWSTYLE))
        other.pwrite(b'abc' * 1024, 512)
        assert other.pread(3072, 512) == b'abc' * 1024
        other.shutdown()
",
    );
}
