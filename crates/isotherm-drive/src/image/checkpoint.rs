//! The checkpoint: all tables of an image that is not in use, so that opening it need not look at every page.

use super::disk::Disk;
use super::flash::Tables;
use super::layout::{Layout, owner_of, u32_at, u64_at};
use isotherm::address::{BlockId, Ppn};
use isotherm::memory::zeroed_table;
use isotherm::nand::Medium;
use isotherm::nand::array::ArrayState;
use isotherm::stats::MediumCounters;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Bytes that go to the disk or come from it at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks that are read ahead of the one that is taken apart.
const CHUNKS_AHEAD: usize = 3;
/// Bytes of a block, and of a page.
const BLOCK_ENTRY: usize = 24;
const PAGE_ENTRY: usize = 16;

/// Writes `tables`, and what `array` knows of its pages. Returns bytes and checksum.
pub(super) fn write(disk: &impl Disk, layout: &Layout, tables: &Tables, array: &impl Medium) -> io::Result<(u64, u32)> {
    let mut sink =
        Sink { disk, at: layout.checkpoint_at, buffer: Vec::with_capacity(CHUNK_BYTES), check: Default::default() };
    for block in (0..layout.geometry.blocks).map(BlockId) {
        let index = block.0 as usize;
        sink.put(&tables.slots[index].to_le_bytes())?;
        sink.put(&array.programmed_pages(block).to_le_bytes())?;
        sink.put(&tables.erases[index].to_le_bytes())?;
        sink.put(&[0; 4])?;
        sink.put(&tables.erased_by[index].to_le_bytes())?;
    }
    let written = |block: BlockId| {
        let first = layout.geometry.first_page(block).0;
        (first..first + array.programmed_pages(block)).map(Ppn)
    };
    // A block's pages column by column: what is read back is copied, not taken apart.
    for block in (0..layout.geometry.blocks).map(BlockId) {
        for at in written(block) {
            let owner = array.owner(at);
            sink.put(&((owner.kind() as u32) << 30 | owner.address()).to_le_bytes())?;
        }
        for at in written(block) {
            sink.put(&tables.checks[at.0 as usize].to_le_bytes())?;
        }
        for at in written(block) {
            sink.put(&array.sequence(at).to_le_bytes())?;
        }
    }
    sink.write_out()?;
    Ok((sink.at - layout.checkpoint_at, sink.check.finalize()))
}

struct Sink<'a, D> {
    disk: &'a D,
    at: u64,
    buffer: Vec<u8>,
    check: crc32fast::Hasher,
}

impl<D: Disk> Sink<'_, D> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > CHUNK_BYTES {
            self.write_out()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.check.update(&self.buffer);
        self.disk.write(self.at, &self.buffer)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Reads a checkpoint of `bytes`; none where it is not what `check` says.
pub(super) fn read(
    disk: &impl Disk,
    layout: &Layout,
    bytes: u64,
    check: u32,
) -> io::Result<Option<(Tables, ArrayState)>> {
    let blocks = layout.geometry.blocks as usize;
    if bytes < (blocks * BLOCK_ENTRY) as u64 || bytes > layout.checkpoint_bytes {
        return Ok(None);
    }
    std::thread::scope(|scope| {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let (spent, empty) = channel();
        let reader = scope.spawn(move || read_ahead(disk, layout, bytes, &sender, &empty));
        let found = take_apart(layout, &chunks, spent);
        // A reader that is still at it ends.
        drop(chunks);
        let is_whole = reader.join().map_err(|_| io::Error::other("the reader of the checkpoint failed"))? == check;
        Ok(found?.filter(|_| is_whole))
    })
}

/// The tables that the chunks of a checkpoint tell; none where they cannot be those of this image.
fn take_apart(
    layout: &Layout,
    chunks: &Receiver<io::Result<Vec<u8>>>,
    spent: Sender<Vec<u8>>,
) -> io::Result<Option<(Tables, ArrayState)>> {
    let blocks = layout.geometry.blocks as usize;
    let (mut tables, mut state) = empty(layout);
    let mut source = Source { chunks, spent, chunk: Vec::new(), taken: 0, joined: Vec::new() };
    for block in 0..blocks {
        let Some(entry) = source.take(BLOCK_ENTRY)? else { return Ok(None) };
        tables.slots[block] = u32_at(entry, 0);
        let programmed = u32_at(entry, 4);
        tables.erases[block] = u32_at(entry, 8);
        tables.erased_by[block] = u64_at(entry, 16);
        state.next_pages[block] = programmed as u16;
        if programmed > layout.slot_pages() || (programmed > 0) != (tables.slots[block] < layout.slots) {
            return Ok(None);
        }
    }
    for block in (0..blocks).filter(|block| state.next_pages[*block] > 0).collect::<Vec<_>>() {
        let first = layout.geometry.first_page(BlockId(block as u32)).0 as usize;
        let pages = first..first + usize::from(state.next_pages[block]);
        let Some(entries) = source.take(pages.len() * PAGE_ENTRY)? else { return Ok(None) };
        let (owners, rest) = entries.split_at(pages.len() * 4);
        let (checks, sequences) = rest.split_at(pages.len() * 4);
        for (owner, bytes) in state.owners[pages.clone()].iter_mut().zip(owners.chunks_exact(4)) {
            *owner = owner_of(u32_at(bytes, 0));
        }
        for (check, bytes) in tables.checks[pages.clone()].iter_mut().zip(checks.chunks_exact(4)) {
            *check = u32_at(bytes, 0);
        }
        for (sequence, bytes) in state.sequences[pages].iter_mut().zip(sequences.chunks_exact(8)) {
            *sequence = u64_at(bytes, 0);
        }
    }
    state.erase_counts.clone_from(&tables.erases);
    Ok(source.is_at_end().then_some((tables, state)))
}

/// The tables of an array in which nothing is programmed.
pub(super) fn empty(layout: &Layout) -> (Tables, ArrayState) {
    let (blocks, pages) = (layout.geometry.blocks as usize, layout.geometry.pages() as usize);
    let tables = Tables {
        slots: vec![super::flash::NO_SLOT; blocks],
        checks: zeroed_table(pages),
        erases: vec![0; blocks],
        erased_by: vec![0; blocks],
        number: 0,
    };
    let state = ArrayState {
        owners: zeroed_table(pages),
        sequences: zeroed_table(pages),
        next_pages: vec![0; blocks],
        erase_counts: vec![0; blocks],
        counters: MediumCounters::default(),
    };
    (tables, state)
}

/// The bytes of a checkpoint in order, as entries: whole chunks come from a thread that reads ahead of who takes them apart.
struct Source<'a> {
    chunks: &'a Receiver<io::Result<Vec<u8>>>,
    /// Where chunks go that were taken, to be filled again: memory that is new costs more than what is read into it.
    spent: Sender<Vec<u8>>,
    chunk: Vec<u8>,
    taken: usize,
    /// An entry that lies in more than one chunk.
    joined: Vec<u8>,
}

impl Source<'_> {
    /// The next entry; none at the end.
    fn take(&mut self, bytes: usize) -> io::Result<Option<&[u8]>> {
        if self.chunk.len() - self.taken >= bytes {
            self.taken += bytes;
            return Ok(Some(&self.chunk[self.taken - bytes..self.taken]));
        }
        self.joined.clear();
        while self.joined.len() < bytes {
            if self.taken == self.chunk.len() {
                let Ok(chunk) = self.chunks.recv() else { return Ok(None) };
                // Once all is read, nobody needs them.
                let _ = self.spent.send(std::mem::replace(&mut self.chunk, chunk?));
                self.taken = 0;
            }
            let more = (bytes - self.joined.len()).min(self.chunk.len() - self.taken);
            self.joined.extend_from_slice(&self.chunk[self.taken..self.taken + more]);
            self.taken += more;
        }
        Ok(Some(&self.joined))
    }

    /// Whether everything was taken.
    fn is_at_end(&mut self) -> bool {
        self.taken == self.chunk.len() && self.chunks.recv().is_err()
    }
}

/// Reads a checkpoint of `bytes` to its end, or until nobody takes it, and says its checksum.
fn read_ahead(
    disk: &impl Disk,
    layout: &Layout,
    bytes: u64,
    chunks: &SyncSender<io::Result<Vec<u8>>>,
    spent: &Receiver<Vec<u8>>,
) -> u32 {
    let mut check = crc32fast::Hasher::new();
    for from in (0..bytes).step_by(CHUNK_BYTES) {
        let mut chunk = spent.try_recv().unwrap_or_default();
        chunk.resize((bytes - from).min(CHUNK_BYTES as u64) as usize, 0);
        let read = disk.read(layout.checkpoint_at + from, &mut chunk);
        check.update(&chunk);
        if chunks.send(read.map(|()| chunk)).is_err() {
            break;
        }
    }
    check.finalize()
}
