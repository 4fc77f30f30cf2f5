//! The trace of what a drive served.

use anyhow::Context as _;
use isotherm::request::Request;
use isotherm_drive::Recorder;
use isotherm_trace::TraceWriter;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Requests that go to the writer at a time.
const BATCH: usize = 1024;
/// Batches that wait for it. A drive whose writer is slower waits.
const BATCHES_MAX: usize = 256;

/// A trace that is being written. It appears under its name when it is finished.
pub struct Recording {
    writer: JoinHandle<anyhow::Result<u64>>,
}

impl Recording {
    /// Begins a trace at `path`, with a column that says who asks where there are several handles.
    ///
    /// # Errors
    /// A name whose ending is no form of trace, or a file that cannot be made.
    pub fn begin(path: &Path, has_handles: bool) -> anyhow::Result<(Self, Recorder)> {
        let name = path.to_str().with_context(|| format!("{}: the name is not UTF-8", path.display()))?;
        let writer = TraceWriter::create(name, false)?;
        let writer = if has_handles { writer.with_streams()? } else { writer };
        let (batches, received) = sync_channel(BATCHES_MAX);
        let writer = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || write(writer, &received))?;
        let mut sender = Sender { batches, batch: Vec::with_capacity(BATCH) };
        Ok((Self { writer }, Box::new(move |request| sender.take(request))))
    }

    /// Ends the trace once the drive has let its recorder go. Returns the number of requests.
    ///
    /// # Errors
    /// The trace could not be written.
    pub fn finish(self) -> anyhow::Result<u64> {
        self.writer.join().map_err(|_| anyhow::anyhow!("the recorder failed"))?
    }
}

struct Sender {
    batches: SyncSender<Vec<Request>>,
    batch: Vec<Request>,
}

impl Sender {
    fn take(&mut self, request: &Request) {
        self.batch.push(*request);
        if self.batch.len() == BATCH {
            // A writer that has failed is heard of at the end.
            let _ = self.batches.send(std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH)));
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.batches.send(std::mem::take(&mut self.batch));
    }
}

fn write(mut writer: TraceWriter, batches: &Receiver<Vec<Request>>) -> anyhow::Result<u64> {
    let mut requests = 0;
    for batch in batches {
        writer.write(&batch)?;
        requests += batch.len() as u64;
    }
    writer.finish()?;
    Ok(requests)
}
