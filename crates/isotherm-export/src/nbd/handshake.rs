//! The handshake: fixed newstyle negotiation (proto.md, "Newstyle negotiation", "Option types"), up to the export that the
//! client settles for.

use std::sync::Arc;

use rustls::ServerConfig;

use super::end::End;
use super::export::NamedExport;
use super::link::{LARGE_PAYLOAD_BYTES, Link};
use super::socket::Socket;
use super::tls::TlsMode;
use super::wire::{
    BASE_ALLOCATION, BASE_ALLOCATION_ID, Fields, NBD_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, STRING_BYTES_MAX,
    handshake_flag, info, option, option_reply,
};

/// Options that a client may send. A client that lists exports asks for each of them.
const OPTIONS_MAX: usize = 4096;
/// Bytes of an option's data that are looked at: a name and as many queries as anyone sends.
const OPTION_BYTES_MAX: usize = LARGE_PAYLOAD_BYTES;

/// What was agreed on.
pub(super) struct Session<'a> {
    pub export: &'a NamedExport,
    /// Reads are answered by structured replies.
    pub structured: bool,
    /// The client may ask for `base:allocation`.
    pub allocation: bool,
}

/// What a handshake offers.
#[derive(Clone, Copy)]
pub(super) struct Offer<'a> {
    pub exports: &'a [NamedExport],
    pub tls: TlsMode,
    pub tls_config: Option<&'a Arc<ServerConfig>>,
}

/// Negotiates with a client.
pub(super) fn negotiate<'a, S: Socket>(link: &mut Link<S>, offer: Offer<'a>) -> Result<Session<'a>, End> {
    link.output().put_u64(NBD_MAGIC);
    link.output().put_u64(OPTION_MAGIC);
    let flags = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
    link.output().put_u16(flags);
    let client_flags = u32::from_be_bytes(link.read_array(false)?);
    if client_flags & !u32::from(flags) != 0 {
        return Err(End::Misbehaved("client flags that were not offered"));
    }
    let is_set = |flag: u16| client_flags & u32::from(flag) != 0;
    let mut handshake = Handshake {
        link,
        offer,
        no_zeroes: is_set(handshake_flag::NO_ZEROES),
        structured: false,
        allocation: None,
        option: 0,
    };
    for _ in 0..OPTIONS_MAX {
        let (option, length) = handshake.read_header()?;
        if option != option::EXPORT_NAME && !is_set(handshake_flag::FIXED_NEWSTYLE) {
            return Err(End::Misbehaved("an option without fixed newstyle"));
        }
        if let Some(session) = handshake.answer(option, length)? {
            link.end_handshake();
            return Ok(session);
        }
    }
    Err(End::Misbehaved("too many options"))
}

struct Handshake<'l, 'a, S> {
    link: &'l mut Link<S>,
    offer: Offer<'a>,
    no_zeroes: bool,
    structured: bool,
    /// The export whose `base:allocation` was selected.
    allocation: Option<&'a NamedExport>,
    /// The option being answered.
    option: u32,
}

impl<'a, S: Socket> Handshake<'_, 'a, S> {
    fn read_header(&mut self) -> Result<(u32, usize), End> {
        let header: [u8; 16] = self.link.read_array(false)?;
        let mut fields = Fields(&header);
        match (fields.u64(), fields.u32(), fields.u32()) {
            (Some(OPTION_MAGIC), Some(option), Some(length)) => Ok((option, length as usize)),
            _ => Err(End::Misbehaved("no magic number before an option")),
        }
    }

    /// Answers an option; with a session where the handshake ends with it.
    fn answer(&mut self, option: u32, length: usize) -> Result<Option<Session<'a>>, End> {
        self.option = option;
        // Replies to options that came together do not pile up without bound.
        self.link.begin_reply(0)?;
        if option == option::EXPORT_NAME {
            return self.export_name(length).map(Some);
        }
        if length > OPTION_BYTES_MAX {
            self.link.skip(length)?;
            self.reply_error(option_reply::ERR_TOO_BIG, "the option's data is too long");
            return Ok(None);
        }
        let data = self.link.read(length, true)?.0.to_vec();
        if self.tls_is_missing() && !matches!(option, option::STARTTLS | option::ABORT) {
            self.reply_error(option_reply::ERR_TLS_REQD, "this server requires TLS");
            return Ok(None);
        }
        match option {
            option::INFO | option::GO => return Ok(self.info(&data)),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.meta_context(&data),
            option::ABORT | option::LIST | option::STRUCTURED_REPLY | option::STARTTLS if !data.is_empty() => {
                self.reply_error(option_reply::ERR_INVALID, "this option has no data");
            }
            option::ABORT => {
                self.reply(option_reply::ACK, &[]);
                return Err(End::Disconnected);
            }
            option::LIST => self.list(),
            option::STRUCTURED_REPLY => {
                self.structured = true;
                self.reply(option_reply::ACK, &[]);
            }
            option::STARTTLS => self.start_tls()?,
            _ => self.reply_error(option_reply::ERR_UNSUP, "this option is not known here"),
        }
        Ok(None)
    }

    fn tls_is_missing(&self) -> bool {
        self.offer.tls == TlsMode::Require && !self.link.is_tls()
    }

    /// The old way to choose an export, which knows no error: whatever is wrong ends the connection.
    fn export_name(&mut self, length: usize) -> Result<Session<'a>, End> {
        if self.tls_is_missing() {
            return Err(End::Misbehaved("no TLS, which is required here"));
        }
        if length > STRING_BYTES_MAX {
            return Err(End::Misbehaved("a name that is too long"));
        }
        let name = self.link.read(length, true)?.0.to_vec();
        let export = std::str::from_utf8(&name).ok().and_then(|name| self.find(name));
        let export = export.ok_or(End::Misbehaved("a name that no export has"))?;
        let output = self.link.output();
        output.put_u64(export.export.size_bytes());
        output.put_u16(export.flags(self.structured));
        if !self.no_zeroes {
            output.put(&[0; 124]);
        }
        Ok(self.session(export))
    }

    fn list(&mut self) {
        for export in self.offer.exports {
            let mut data = Vec::with_capacity(4 + export.name.len() + export.description.len());
            data.extend((export.name.len() as u32).to_be_bytes());
            data.extend(export.name.as_bytes());
            data.extend(export.description.as_bytes());
            self.reply(option_reply::SERVER, &data);
        }
        self.reply(option_reply::ACK, &[]);
    }

    /// Whatever was agreed on before is void: it may have come from someone in between.
    fn start_tls(&mut self) -> Result<(), End> {
        match self.offer.tls_config {
            _ if self.link.is_tls() => self.reply_error(option_reply::ERR_INVALID, "TLS is on already"),
            None => self.reply_error(option_reply::ERR_POLICY, "this server has no certificate"),
            Some(config) => {
                self.reply(option_reply::ACK, &[]);
                self.link.start_tls(Arc::clone(config))?;
                (self.structured, self.allocation) = (false, None);
            }
        }
        Ok(())
    }

    /// `INFO` and `GO`, which differ only in that the latter ends the handshake.
    fn info(&mut self, data: &[u8]) -> Option<Session<'a>> {
        let mut fields = Fields(data);
        let name = fields.string();
        let wanted: Option<Vec<u16>> = fields.u16().and_then(|count| (0..count).map(|_| fields.u16()).collect());
        let (Some(name), Some(wanted), true) = (name, wanted, fields.is_empty()) else {
            self.reply_error(option_reply::ERR_INVALID, "the option's data is malformed");
            return None;
        };
        let Some(export) = self.find(name) else {
            self.reply_error(option_reply::ERR_UNKNOWN, "no export has this name");
            return None;
        };
        let mut facts = Vec::from(export.export.size_bytes().to_be_bytes());
        facts.extend(export.flags(self.structured).to_be_bytes());
        self.reply_info(info::EXPORT, &facts);
        self.reply_info(info::BLOCK_SIZE, &export.block_bytes().map(u32::to_be_bytes).concat());
        for (kind, text) in [(info::NAME, &export.name), (info::DESCRIPTION, &export.description)] {
            if wanted.contains(&kind) {
                self.reply_info(kind, text.as_bytes());
            }
        }
        self.reply(option_reply::ACK, &[]);
        (self.option == option::GO).then(|| self.session(export))
    }

    /// Lists or selects contexts, of which there is one.
    fn meta_context(&mut self, data: &[u8]) {
        let is_set = self.option == option::SET_META_CONTEXT;
        if is_set {
            self.allocation = None;
        }
        if !self.structured {
            self.reply_error(option_reply::ERR_INVALID, "structured replies must be agreed on before");
            return;
        }
        let mut fields = Fields(data);
        let name = fields.string();
        let queries: Option<Vec<&str>> = fields.u32().and_then(|count| (0..count).map(|_| fields.string()).collect());
        let (Some(name), Some(queries), true) = (name, queries, fields.is_empty()) else {
            self.reply_error(option_reply::ERR_INVALID, "the option's data is malformed");
            return;
        };
        let Some(export) = self.find(name) else {
            self.reply_error(option_reply::ERR_UNKNOWN, "no export has this name");
            return;
        };
        let is_listed = |query: &&str| *query == BASE_ALLOCATION || (!is_set && *query == "base:");
        if queries.iter().any(is_listed) || (!is_set && queries.is_empty()) {
            let id = if is_set { BASE_ALLOCATION_ID } else { 0 };
            self.reply(option_reply::META_CONTEXT, &[&id.to_be_bytes(), BASE_ALLOCATION.as_bytes()].concat());
            if is_set {
                self.allocation = Some(export);
            }
        }
        self.reply(option_reply::ACK, &[]);
    }

    fn session(&self, export: &'a NamedExport) -> Session<'a> {
        // A context that was selected for another export does not hold for this one.
        let allocation = self.allocation.is_some_and(|selected| std::ptr::eq(selected, export));
        Session { export, structured: self.structured, allocation }
    }

    /// The export of a name; the empty one stands for the first.
    fn find(&self, name: &str) -> Option<&'a NamedExport> {
        let exports = self.offer.exports;
        exports.iter().find(|export| export.name == name).or_else(|| exports.first().filter(|_| name.is_empty()))
    }

    fn reply_info(&mut self, kind: u16, data: &[u8]) {
        self.reply(option_reply::INFO, &[&kind.to_be_bytes(), data].concat());
    }

    fn reply_error(&mut self, error: u32, message: &str) {
        self.reply(error, message.as_bytes());
    }

    fn reply(&mut self, kind: u32, data: &[u8]) {
        let output = self.link.output();
        output.put_u64(OPTION_REPLY_MAGIC);
        output.put_u32(self.option);
        output.put_u32(kind);
        output.put_u32(data.len() as u32);
        output.put(data);
    }
}
