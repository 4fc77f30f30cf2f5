//! The control socket of a served drive: one JSON object a line asks, one answers. Only who owns the socket may connect.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of a question.
const QUESTION_BYTES_MAX: u64 = 64 << 10;
/// What the folder is called in which a socket is made; the number of the process follows.
const HIDDEN: &str = ".isotherm-";
/// Connections at a time.
const CONNECTIONS_MAX: usize = 16;
/// Time that a question and an answer may take on the socket.
const PATIENCE: Duration = Duration::from_secs(5);

/// What answers: an object with what was asked for, or why not.
pub type Answer = Result<Value, String>;

/// A control socket that is open.
pub struct Control {
    path: PathBuf,
    is_ending: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
    /// Questions that are being answered.
    answering: Arc<AtomicUsize>,
}

impl Control {
    /// Listens at `path`, which a dead server may have left. `answer` is called for each question, from several threads.
    ///
    /// # Errors
    /// Somebody listens there, or a socket cannot be made there.
    pub fn listen(path: &Path, answer: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> io::Result<Self> {
        let listener = bind(path)?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let (ending, answer, open) = (is_ending.clone(), Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        let answering = Arc::new(AtomicUsize::new(0));
        let counted = answering.clone();
        let listener = std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if ending.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                if open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
                    open.fetch_sub(1, Ordering::AcqRel);
                    continue;
                }
                let (answer, open, answering) = (answer.clone(), open.clone(), counted.clone());
                std::thread::spawn(move || {
                    // A client that goes away or says nothing loses its own connection.
                    let _ = converse(&stream, &*answer, &answering);
                    open.fetch_sub(1, Ordering::AcqRel);
                });
            }
        })?;
        Ok(Self { path: path.to_owned(), is_ending, listener: Some(listener), answering })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Release);
        // Wakes the listener up.
        let _ = UnixStream::connect(&self.path);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        // Whoever asked for the end hears that it comes.
        let start = Instant::now();
        while self.answering.load(Ordering::Acquire) > 0 && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A socket that only its owner may connect to, from its first moment on.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Ok(metadata) = std::fs::symlink_metadata(path) {
        if !metadata.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something else than a socket is there"));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there"));
        }
        std::fs::remove_file(path)?;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    remove_left(folder);
    // Made where nobody else can reach it, and moved to its place once its mode is right.
    let hidden = folder.join(format!("{HIDDEN}{}-{}", std::process::id(), path.file_name().map_or(0, |n| n.len())));
    std::fs::create_dir(&hidden)?;
    let made = (|| {
        std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o700))?;
        let inner = hidden.join("s");
        let listener = UnixListener::bind(&inner)?;
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&inner, path)?;
        Ok(listener)
    })();
    let _ = std::fs::remove_dir_all(&hidden);
    made
}

/// Removes what servers left in this folder that were killed while they made a socket: theirs are told by their number.
fn remove_left(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(HIDDEN)?.split_once('-')?.0.parse::<i32>().ok());
        let Some(process) = number.and_then(rustix::process::Pid::from_raw) else { continue };
        // A process of somebody else lives on too.
        if rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH) {
            // Nothing but the socket is in it. What cannot be removed does no harm.
            let _ = std::fs::remove_file(entry.path().join("s"));
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

fn converse(stream: &UnixStream, answer: &dyn Fn(&Value) -> Answer, answering: &AtomicUsize) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    answer_all(BufReader::new(stream), stream, answer, answering)
}

/// Answers every question of a conversation: a line each. `answering` counts those that are under way.
///
/// # Errors
/// The connection breaks.
pub fn answer_all(
    mut reader: impl BufRead,
    mut writer: impl Write,
    answer: &dyn Fn(&Value) -> Answer,
    answering: &AtomicUsize,
) -> io::Result<()> {
    loop {
        let mut line = Vec::new();
        if reader.by_ref().take(QUESTION_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n");
        answering.fetch_add(1, Ordering::AcqRel);
        let said = match serde_json::from_slice::<Value>(&line) {
            Ok(question) if is_whole => answer(&question),
            Ok(_) => Err("a question ends with a line break".to_owned()),
            Err(error) => Err(format!("this is no JSON: {error}")),
        };
        let said = match said {
            Ok(value) => json!({ "ok": value }),
            Err(message) => json!({ "error": message }),
        };
        let mut bytes = said.to_string().into_bytes();
        bytes.push(b'\n');
        let written = writer.write_all(&bytes);
        answering.fetch_sub(1, Ordering::AcqRel);
        written?;
        if !is_whole {
            return Ok(());
        }
    }
}

/// Asks the drive that listens at `path`.
///
/// # Errors
/// Nobody listens there, or the connection breaks; what the drive refuses is the inner error.
pub fn ask(path: &Path, question: &Value) -> io::Result<Answer> {
    let stream = UnixStream::connect(path)?;
    // A snapshot copies the whole image.
    stream.set_read_timeout(Some(Duration::from_secs(600)))?;
    (&stream).write_all(format!("{question}\n").as_bytes())?;
    let mut line = Vec::new();
    if BufReader::new(&stream).read_until(b'\n', &mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the drive ended without an answer"));
    }
    // An NBD server, for one, says something of its own.
    let stranger =
        |_| io::Error::new(io::ErrorKind::InvalidData, "this is no control socket of a drive; give that, or the image");
    let mut said: Value = serde_json::from_slice(&line).map_err(stranger)?;
    match said.get("error").and_then(Value::as_str) {
        Some(message) => Ok(Err(message.to_owned())),
        None => Ok(Ok(said["ok"].take())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_removes_what_a_killed_one_left_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let left = |process: u32| {
            let path = folder.path().join(format!(".isotherm-{process}-5"));
            std::fs::create_dir(&path).unwrap();
            drop(UnixListener::bind(path.join("s")).unwrap());
            path
        };
        // The first process of the machine lives.
        let (dead, living) = (left(gone.id()), left(1));
        let other = folder.path().join(".isotherm-notes");
        std::fs::create_dir(&other).unwrap();
        let control = Control::listen(&folder.path().join("d.ctl"), |_| Ok(Value::Null)).unwrap();
        assert!(!dead.exists() && living.join("s").exists() && other.exists());
        drop(control);
    }
}
