//! The transmission: requests are checked, carried out one after the other, and answered (proto.md, "Transmission", "Request
//! types", "Error values").

use std::convert::Infallible;
use std::time::Instant;

use super::end::End;
use super::handshake::Session;
use super::link::Link;
use super::reply::{self, DATA_HEADER_BYTES, HOLE_BYTES_MIN, SIMPLE_BYTES};
use super::socket::Socket;
use super::wire::{PAYLOAD_BYTES_MAX, Request, command, command_flag as flag, errno, errno_of};
use crate::{Due, Export, ExportError, Extent, Zeroes};

/// Extents of an answer to `BLOCK_STATUS`; clients ask again for the rest.
const EXTENTS_MAX: usize = 4096;
/// From this size on, a read is looked through for holes, which then need not be sent.
const HOLES_FROM_BYTES: usize = 64 << 10;
/// Extents that a read is cut into; where there are more, it is sent as it is.
const READ_EXTENTS_MAX: usize = 64;

/// A request that is refused before the export hears of it.
type Refusal = (u32, &'static str);

/// Serves requests until the connection ends; `report` hears of every request that the export failed.
pub(super) fn serve<S: Socket>(
    link: &mut Link<S>,
    session: &Session<'_>,
    report: &dyn Fn(ExportError),
) -> Result<Infallible, End> {
    let size_bytes = session.export.export.size_bytes();
    let mut server = RequestServer { link, session, export: &*session.export.export, size_bytes, report };
    loop {
        let header = server.link.read_array(false)?;
        let request = Request::parse(&header).ok_or(End::Misbehaved("no magic number before a request"))?;
        if request.command == command::DISC {
            return Err(End::Disconnected);
        }
        server.link.release()?;
        server.answer(&request)?;
    }
}

struct RequestServer<'l, 's, S> {
    link: &'l mut Link<S>,
    session: &'s Session<'s>,
    export: &'s dyn Export,
    size_bytes: u64,
    report: &'s dyn Fn(ExportError),
}

impl<S: Socket> RequestServer<'_, '_, S> {
    fn answer(&mut self, request: &Request) -> Result<(), End> {
        if let Err((errno, message)) = self.check(request) {
            if request.command == command::WRITE {
                self.link.skip(request.length as usize)?;
            }
            let mark = self.link.begin_reply(0)?;
            self.put_error(request.cookie, errno, message);
            self.link.end_reply(mark, None);
            return Ok(());
        }
        match request.command {
            command::READ => self.read(request),
            command::WRITE => self.write(request),
            command::BLOCK_STATUS => self.block_status(request),
            _ => {
                let done = self.carry_out(request);
                self.reply(request, done)
            }
        }
    }

    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let Session { export, structured, allocation } = *self.session;
        let &Request { flags, command, offset, length, .. } = request;
        let (known_flags, changes, beyond) = match command {
            command::READ => (if structured { flag::DF } else { 0 }, false, errno::EINVAL),
            command::WRITE => (0, true, errno::ENOSPC),
            command::TRIM => (0, true, errno::EINVAL),
            command::WRITE_ZEROES => (flag::NO_HOLE | flag::FAST_ZERO, true, errno::ENOSPC),
            command::FLUSH | command::CACHE => (0, false, errno::EINVAL),
            command::BLOCK_STATUS if allocation => (flag::REQ_ONE, false, errno::EINVAL),
            command::BLOCK_STATUS => return Err((errno::EINVAL, "base:allocation was not selected")),
            _ => return Err((errno::EINVAL, "this command is not known here")),
        };
        // FUA is valid with every command.
        if flags & !(known_flags | flag::FUA) != 0 {
            return Err((errno::EINVAL, "this command has no such flag"));
        }
        if changes && export.read_only {
            return Err((errno::EPERM, "this export is read-only"));
        }
        if command == command::FLUSH {
            return if (offset, length) == (0, 0) { Ok(()) } else { Err((errno::EINVAL, "a flush has no range")) };
        }
        if matches!(command, command::READ | command::WRITE) && length > PAYLOAD_BYTES_MAX {
            let errno = if flags & flag::DF != 0 { errno::EOVERFLOW } else { errno::EINVAL };
            return Err((errno, "the request is longer than 32 MiB"));
        }
        if offset.checked_add(length.into()).is_none_or(|end| end > self.size_bytes) {
            return Err((beyond, "the request goes beyond the end"));
        }
        if command == command::BLOCK_STATUS && length == 0 {
            return Err((errno::EINVAL, "the range is empty"));
        }
        Ok(())
    }

    fn read(&mut self, request: &Request) -> Result<(), End> {
        let &Request { cookie, offset, length, .. } = request;
        let length = length as usize;
        let mark = self.link.begin_reply(DATA_HEADER_BYTES + length)?;
        let output = self.link.output();
        if length == 0 {
            if self.session.structured {
                reply::put_none(output, cookie)
            } else {
                reply::put_simple(output, cookie, 0)
            }
            return Ok(());
        }
        if self.session.structured {
            reply::put_data_header(output, cookie, offset, length);
        } else {
            reply::put_simple(output, cookie, 0);
        }
        let due = match self.export.read(offset, output.room(length)) {
            Ok(due) => due,
            Err(error) => {
                output.truncate(mark);
                return self.fail(cookie, error);
            }
        };
        if self.session.structured && request.flags & flag::DF == 0 && length >= HOLES_FROM_BYTES {
            self.cut_holes(mark, request);
        }
        self.link.end_reply(mark, due);
        Ok(())
    }

    /// Takes holes out of the reply to a read. They are asked for after the data was read: a range that was trimmed in between
    /// may already read as zeros, and one that was written in between is data.
    fn cut_holes(&mut self, mark: usize, request: &Request) {
        let &Request { cookie, offset, length, .. } = request;
        // Where the extents cannot be had, the data can still be sent.
        let Ok(extents) = self.export.extents(offset, length.into(), READ_EXTENTS_MAX) else { return };
        let extents = covering(extents, length.into(), HOLE_BYTES_MIN);
        if extents.iter().any(|extent| !extent.is_data) {
            reply::cut_holes(self.link.output(), mark, cookie, offset, &extents);
        }
    }

    fn write(&mut self, request: &Request) -> Result<(), End> {
        let is_durable = request.flags & flag::FUA != 0;
        let (data, _) = self.link.read_payload(request.length as usize)?;
        let done = if data.is_empty() { Ok(None) } else { self.export.write(request.offset, data, is_durable) };
        self.link.payload_done();
        self.reply(request, done)
    }

    fn carry_out(&self, request: &Request) -> Result<Due, ExportError> {
        let &Request { flags, command, offset, length, .. } = request;
        let (is_durable, length) = (flags & flag::FUA != 0, u64::from(length));
        match command {
            command::FLUSH => self.export.flush(),
            _ if length == 0 => Ok(None),
            command::TRIM => self.export.trim(offset, length, is_durable),
            command::WRITE_ZEROES => {
                let how = Zeroes { may_trim: flags & flag::NO_HOLE == 0, fast_only: flags & flag::FAST_ZERO != 0 };
                self.export.write_zeroes(offset, length, how, is_durable)
            }
            // CACHE announces reads. What to keep near is the export's own affair.
            _ => Ok(None),
        }
    }

    fn block_status(&mut self, request: &Request) -> Result<(), End> {
        let &Request { cookie, offset, length, flags, .. } = request;
        let most = if flags & flag::REQ_ONE != 0 { 1 } else { EXTENTS_MAX };
        match self.export.extents(offset, length.into(), most) {
            Ok(mut extents) => {
                extents.truncate(most);
                let mut extents = merged(extents, length.into(), 1);
                if extents.is_empty() {
                    extents.push(Extent { length: length.into(), is_data: true });
                }
                self.link.begin_reply(SIMPLE_BYTES + 8 * extents.len())?;
                reply::put_extents(self.link.output(), cookie, &extents);
                Ok(())
            }
            Err(error) => self.fail(cookie, error),
        }
    }

    /// Answers a request whose success carries no data.
    fn reply(&mut self, request: &Request, done: Result<Due, ExportError>) -> Result<(), End> {
        let due: Option<Instant> = match done {
            Ok(due) => due,
            Err(error) => return self.fail(request.cookie, error),
        };
        let mark = self.link.begin_reply(SIMPLE_BYTES)?;
        reply::put_simple(self.link.output(), request.cookie, 0);
        self.link.end_reply(mark, due);
        Ok(())
    }

    fn fail(&mut self, cookie: u64, error: ExportError) -> Result<(), End> {
        self.link.begin_reply(0)?;
        self.put_error(cookie, errno_of(error.kind), &error.message);
        (self.report)(error);
        Ok(())
    }

    fn put_error(&mut self, cookie: u64, errno: u32, message: &str) {
        let output = self.link.output();
        if self.session.structured {
            reply::put_error(output, cookie, errno, message);
        } else {
            reply::put_simple(output, cookie, errno);
        }
    }
}

/// Extents within `length` bytes, neighbours of one kind as one; holes shorter than `hole_bytes_min` count as data.
fn merged(extents: Vec<Extent>, length: u64, hole_bytes_min: u64) -> Vec<Extent> {
    let mut merged: Vec<Extent> = Vec::with_capacity(extents.len());
    let mut rest = length;
    for extent in extents {
        let length = extent.length.min(rest);
        let is_data = extent.is_data || length < hole_bytes_min;
        rest -= length;
        match merged.last_mut() {
            _ if length == 0 => {}
            Some(last) if last.is_data == is_data => last.length += length,
            _ => merged.push(Extent { length, is_data }),
        }
    }
    merged
}

/// As [`merged`], with data up to `length` where the extents end before.
fn covering(mut extents: Vec<Extent>, length: u64, hole_bytes_min: u64) -> Vec<Extent> {
    let covered: u64 = extents.iter().map(|extent| extent.length).sum();
    extents.push(Extent { length: length.saturating_sub(covered), is_data: true });
    merged(extents, length, hole_bytes_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(list: &[(u64, bool)]) -> Vec<Extent> {
        list.iter().map(|&(length, is_data)| Extent { length, is_data }).collect()
    }

    #[test]
    fn extents_are_merged_cut_and_filled_up() {
        let list = extents(&[(10, true), (5, true), (0, false), (3, false), (7, true), (100, false)]);
        assert_eq!(merged(list.clone(), 30, 1), extents(&[(15, true), (3, false), (7, true), (5, false)]));
        assert_eq!(merged(list.clone(), 30, 4), extents(&[(25, true), (5, false)]));
        assert_eq!(covering(extents(&[(8, false)]), 20, 4), extents(&[(8, false), (12, true)]));
        assert_eq!(covering(list, 30, 100), extents(&[(30, true)]));
    }
}
