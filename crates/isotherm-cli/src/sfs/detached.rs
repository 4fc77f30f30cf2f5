//! A server in the background: who started it and waits for the mount, and where its messages go afterwards.

use anyhow::{Context as _, bail};
use rustix::stdio::dup2_stderr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// A server's side of it. Standard input is a socket whose other end whoever started the server holds, and closes when it ends.
pub struct Detached {
    starter: UnixStream,
    file: Option<File>,
    /// Passes messages on to the system's log.
    forwarder: Mutex<Option<JoinHandle<()>>>,
}

impl Detached {
    /// `messages` is the file that messages go to, in place of the system's log.
    pub fn new(messages: Option<&Path>) -> anyhow::Result<Self> {
        let starter = std::io::stdin().as_fd().try_clone_to_owned().context("standard input")?;
        let starter = UnixStream::from(starter);
        starter.set_nonblocking(true).context("standard input")?;
        let open = |path: &Path| {
            File::options().append(true).create(true).open(path).with_context(|| path.display().to_string())
        };
        Ok(Self { starter, file: messages.map(open).transpose()?, forwarder: Mutex::new(None) })
    }

    /// Whether the mount is still waited for.
    pub fn is_wanted(&self) -> bool {
        // Nothing is ever sent to a server: there is something to read only when the other end is closed.
        matches!((&self.starter).read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// The volume is mounted: what is said from now on is for the log, and whoever started the server need not wait any more.
    ///
    /// # Errors
    /// Nobody waits any more.
    pub fn report_mounted(&self) -> anyhow::Result<()> {
        // A file system is not to be kept busy by a server that was started in it.
        std::env::set_current_dir("/").context("/")?;
        match &self.file {
            Some(file) => dup2_stderr(file).context("standard error")?,
            None => {
                let (said, stderr) = UnixStream::pair().context("a pair of sockets")?;
                let forwarder = std::thread::Builder::new().name("messages".into()).spawn(move || forward(said));
                dup2_stderr(&stderr).context("standard error")?;
                *self.forwarder.lock().unwrap_or_else(PoisonError::into_inner) = Some(forwarder.context("a thread")?);
            }
        }
        if (&self.starter).write_all(&[1]).is_err() {
            bail!("nobody waits for the mount any more");
        }
        Ok(())
    }

    /// Passes on what is left to be said.
    pub fn end(self, served: &anyhow::Result<()>) {
        let forwarder = self.forwarder.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some(forwarder) = forwarder else { return };
        if let Err(error) = served {
            eprintln!("isotherm: {error:#}");
        }
        // The forwarder ends with the last descriptor of its socket.
        if File::options().write(true).open("/dev/null").is_ok_and(|null| dup2_stderr(&null).is_ok()) {
            let _ = forwarder.join();
        }
    }
}

/// Passes messages on, line by line, to the system's log: its socket, or the kernel's log where nobody listens there. There is nobody
/// else to tell where neither can be had.
fn forward(said: UnixStream) {
    let process = std::process::id();
    for line in BufReader::new(said).split(b'\n').map_while(Result::ok).filter(|line| !line.is_empty()) {
        let line = String::from_utf8_lossy(&line);
        // Facility daemon, severity error.
        let message = format!("<27>isotherm-sfs[{process}]: {line}");
        let told = UnixDatagram::unbound().and_then(|socket| socket.send_to(message.as_bytes(), "/dev/log"));
        if told.is_err()
            && let Ok(mut log) = File::options().write(true).open("/dev/kmsg")
        {
            let _ = log.write_all(message.as_bytes());
        }
    }
}
