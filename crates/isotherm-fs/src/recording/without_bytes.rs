//! What a machine acts through in a replay: names and heats of blocks that wait, and no bytes.

use super::event::{Event, Heats, Name, heat};
use super::replay::ReplayError;
use crate::log::{Room, hotness_of};
use isotherm_sfs::machine::{Machine, Mechanism, RunWrite};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io;

/// Events with their numbers, the first being 1.
pub(super) struct Events<I> {
    source: I,
    number: u64,
}

impl<I: Iterator<Item = io::Result<Event>>> Events<I> {
    pub fn new(source: I) -> Self {
        Self { source, number: 0 }
    }
    /// The next one, if the recording goes on.
    pub fn next(&mut self) -> Result<Option<Event>, ReplayError> {
        self.number += 1;
        Ok(self.source.next().transpose()?)
    }
    /// How many were read.
    pub fn number(&self) -> u64 {
        self.number
    }
    /// The next one, in the middle of something.
    fn inner(&mut self) -> Result<Event, ReplayError> {
        self.next()?.ok_or(ReplayError::CutOff)
    }
    /// That the machine does something else than was recorded.
    pub fn differs(&self, recorded: &impl std::fmt::Debug, replayed: &impl std::fmt::Debug) -> ReplayError {
        ReplayError::Differs {
            event: self.number,
            recorded: format!("{recorded:?}"),
            replayed: format!("{replayed:?}"),
        }
    }
}

/// A block of file data that waits.
struct Waiting {
    name: Name,
    heat: Heats,
    file_heat: Heats,
}

/// Numbers of metadata that a segment write has to do with; the kind stands above them, as in the file system, where it orders
/// the blocks of a write.
#[derive(Default)]
struct Metadata {
    names: Vec<Name>,
    numbers: HashMap<Name, u32>,
    /// What waits.
    dirty: HashSet<u32>,
}

const KIND_SHIFT: u32 = 30;
const PAGE: u32 = 2;
const TABLE: u32 = 3;

impl Metadata {
    fn number(&mut self, name: Name) -> u32 {
        let kind = if matches!(name, Name::Table(_)) { TABLE } else { PAGE };
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            kind << KIND_SHIFT | (self.names.len() as u32 - 1)
        })
    }
    fn name(&self, number: u32) -> Name {
        self.names[(number & ((1 << KIND_SHIFT) - 1)) as usize]
    }
}

/// What the machine learns in the middle of its questions.
struct Learnt<I> {
    events: Events<I>,
    metadata: Metadata,
    guarded: HashSet<u32>,
    fault: Option<ReplayError>,
}

/// See the module's text.
pub(super) struct WithoutBytes<I> {
    room: Room,
    /// In the order in which they began to wait.
    data: BTreeMap<u32, Waiting>,
    by_name: HashMap<Name, u32>,
    next_number: u32,
    /// Lengths of the transactions that wait.
    transactions: VecDeque<u32>,
    transaction_bytes: usize,
    chosen: HashSet<u32>,
    /// Metadata that a segment write is about, with its heat.
    shown: Option<Vec<(u32, Heats)>>,
    heats: HashMap<u32, Heats>,
    learnt: RefCell<Learnt<I>>,
}

impl<I: Iterator<Item = io::Result<Event>>> WithoutBytes<I> {
    pub fn new(segment_blocks: u32, events: Events<I>) -> Self {
        let learnt = Learnt { events, metadata: Metadata::default(), guarded: HashSet::new(), fault: None };
        Self {
            room: Room::of(segment_blocks),
            data: BTreeMap::new(),
            by_name: HashMap::new(),
            next_number: 0,
            transactions: VecDeque::new(),
            transaction_bytes: 0,
            chosen: HashSet::new(),
            shown: None,
            heats: HashMap::new(),
            learnt: RefCell::new(learnt),
        }
    }

    pub fn events(&mut self) -> &mut Events<I> {
        &mut self.learnt.get_mut().events
    }

    /// A block of file data waits, or is written again.
    pub fn waits(&mut self, name: Name, heat: Heats, file_heat: Heats) -> Result<(), ReplayError> {
        if !matches!(name, Name::Data(..)) {
            return Err(ReplayError::Nonsense(self.events().number()));
        }
        if let Some(block) = self.by_name.get(&name).and_then(|number| self.data.get_mut(number)) {
            block.heat = heat;
            return Ok(());
        }
        if self.next_number >> KIND_SHIFT != 0 {
            return Err(ReplayError::TooLong);
        }
        self.data.insert(self.next_number, Waiting { name, heat, file_heat });
        self.by_name.insert(name, self.next_number);
        self.next_number += 1;
        Ok(())
    }

    /// A block that waited is gone.
    pub fn forget(&mut self, name: Name) {
        if let Some(number) = self.by_name.remove(&name) {
            self.data.remove(&number);
        }
    }

    /// A transaction waits.
    pub fn transact(&mut self, bytes: u32) {
        self.transactions.push_back(bytes);
        self.transaction_bytes += bytes as usize;
    }

    /// A segment write begins.
    pub fn begin(&mut self, chosen: &[Name], metadata: Option<Vec<(Name, Heats)>>) {
        self.chosen = chosen.iter().filter_map(|name| self.by_name.get(name).copied()).collect();
        let learnt = self.learnt.get_mut();
        learnt.metadata = Metadata::default();
        learnt.guarded.clear();
        let (numbers, by_name) = (&mut learnt.metadata, &self.by_name);
        self.shown = metadata.map(|shown| {
            let numbered = |(name, heats): (Name, Heats)| match name {
                // One that does not wait is missed when it is written.
                Name::Data(..) => Some((*by_name.get(&name)?, heats)),
                _ => {
                    let number = numbers.number(name);
                    numbers.dirty.insert(number);
                    Some((number, heats))
                }
            };
            shown.into_iter().filter_map(numbered).collect()
        });
        self.heats = self.shown.iter().flatten().copied().collect();
    }

    /// What went wrong in the middle of a question.
    pub fn take_fault(&mut self) -> Option<ReplayError> {
        self.learnt.get_mut().fault.take()
    }

    fn end_of_write(&self) -> (usize, usize) {
        self.room.end_of_write(self.transaction_bytes, self.transactions.iter().map(|bytes| *bytes as usize))
    }

    fn guarded(&self, segment: u32, out: &mut Vec<u32>) -> Result<(), ReplayError> {
        let learnt = &mut *self.learnt.borrow_mut();
        let event = learnt.events.inner()?;
        let Event::Guarded { segment: recorded, blocks } = &event else {
            return Err(learnt.events.differs(&event, &format!("blocks of segment {segment} are guarded")));
        };
        if *recorded != segment {
            return Err(learnt.events.differs(recorded, &segment));
        }
        learnt.guarded.clear();
        for name in blocks {
            let number = match name {
                Name::Data(..) => *self.by_name.get(name).ok_or(ReplayError::Nonsense(learnt.events.number))?,
                _ => learnt.metadata.number(*name),
            };
            if !matches!(name, Name::Data(..)) {
                learnt.metadata.dirty.insert(number);
            }
            learnt.guarded.insert(number);
            out.push(number);
        }
        Ok(())
    }

    fn name(&self, number: u32) -> Name {
        match self.data.get(&number) {
            Some(block) => block.name,
            None => self.learnt.borrow().metadata.name(number),
        }
    }

    /// What happened to the blocks of a write.
    fn place(&mut self, machine: &mut Machine, write: &RunWrite<'_>, number: u32) -> Result<bool, ReplayError> {
        if let Some(block) = self.data.remove(&number) {
            self.by_name.remove(&block.name);
        }
        let learnt = self.learnt.get_mut();
        learnt.metadata.dirty.remove(&number);
        loop {
            match learnt.events.inner()? {
                Event::Death { segment, heat } => super::replay::die(machine, segment, heat, learnt.events.number)?,
                Event::Dirty(name) => {
                    let number = learnt.metadata.number(name);
                    learnt.metadata.dirty.insert(number);
                }
                Event::Placed { from, heat: heats, cleaned } => {
                    if let Some(from) = from {
                        super::replay::check_referenced(machine, from, learnt.events.number)?;
                    }
                    machine.on_written(write, from, heat(heats), heats.1);
                    return Ok(cleaned);
                }
                _ => return Err(ReplayError::Nonsense(learnt.events.number)),
            }
        }
    }
}

impl<I: Iterator<Item = io::Result<Event>>> Mechanism for WithoutBytes<I> {
    type Error = ReplayError;

    fn waiting(&self) -> impl Iterator<Item = u32> {
        let data = self.data.keys().copied().filter(|_| self.shown.is_none());
        let shown = self.shown.iter().flatten().map(|(number, _)| *number);
        data.chain(shown.filter(|number| self.is_waiting(*number)))
    }

    fn waiting_blocks(&self) -> usize {
        self.shown.as_ref().map_or(self.data.len(), Vec::len)
    }

    fn is_waiting(&self, number: u32) -> bool {
        self.data.contains_key(&number) || self.learnt.borrow().metadata.dirty.contains(&number)
    }

    fn is_homed_in(&self, number: u32, _segment: u32) -> bool {
        self.learnt.borrow().guarded.contains(&number)
    }

    fn homed_in(&self, segment: u32, out: &mut Vec<u32>) {
        if let Err(fault) = self.guarded(segment, out) {
            self.learnt.borrow_mut().fault = Some(fault);
        }
    }

    fn hotness(&self, number: u32, ticks: u64) -> f64 {
        match self.data.get(&number) {
            Some(block) => hotness_of(heat(block.heat), heat(block.file_heat), ticks as u32),
            None if number >> KIND_SHIFT == TABLE => f64::INFINITY,
            None => heat(self.heats.get(&number).copied().unwrap_or_default()).hotness(ticks as u32),
        }
    }

    fn is_chosen(&self, number: u32) -> bool {
        self.chosen.contains(&number)
    }

    fn has_records(&self) -> bool {
        self.transaction_bytes > 0
    }

    fn payload(&self, room: u32) -> u32 {
        self.room.payload(self.transaction_bytes, room)
    }

    fn overhead(&self, blocks: u32) -> u32 {
        self.room.overhead(blocks, self.end_of_write().0)
    }

    fn write(&mut self, machine: &mut Machine, write: &RunWrite<'_>) -> Result<u32, ReplayError> {
        if let Some(fault) = self.take_fault() {
            return Err(fault);
        }
        let mut numbers = write.blocks.to_vec();
        numbers.sort_by_key(|number| number >> KIND_SHIFT);
        let replayed = Event::Write {
            segment: write.segment,
            at: write.at,
            overhead: write.overhead_blocks,
            group: write.group,
            sequence: write.sequence,
            next: write.next_segment,
            blocks: numbers.iter().map(|number| self.name(*number)).collect(),
        };
        let recorded = self.events().inner()?;
        if recorded != replayed {
            return Err(self.events().differs(&recorded, &replayed));
        }
        let mut cleaned = 0;
        for number in numbers {
            cleaned += u32::from(self.place(machine, write, number)?);
        }
        let (bytes, transactions) = self.end_of_write();
        self.transactions.drain(..transactions);
        self.transaction_bytes -= bytes;
        match self.events().inner()? {
            Event::Written => Ok(cleaned),
            other => Err(self.events().differs(&other, &Event::Written)),
        }
    }

    fn forget_written(&mut self) {
        self.learnt.get_mut().guarded.clear();
    }

    fn commit(&mut self, _machine: &mut Machine) -> Result<(), ReplayError> {
        Err(ReplayError::Stopped)
    }

    fn no_space(&self, _machine: &Machine) -> ReplayError {
        ReplayError::Stopped
    }
}
