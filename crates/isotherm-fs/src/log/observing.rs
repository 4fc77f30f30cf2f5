//! What an observer is told of: everything that the machine's decisions follow from, and the decisions.

use super::Log;
use super::planning::View;
use super::waiting::Origin;
use crate::recording::{Digest, Event, Name, Observer, Outcome, Start, heats};
use crate::store::{Heat, Slot};
use isotherm_sfs::machine::{Extent, Machine};
use std::cell::RefCell;

impl Log {
    /// From here on `observer` is told what happens to the machine. To be called when the log was opened, and nothing was done.
    pub fn observe(&mut self, mut observer: Box<dyn Observer>) {
        debug_assert!(self.redo.is_empty() && self.waiting.len() == 0, "a recording begins with nothing that waits");
        observer.on_event(Event::Start(Box::new(Start::of(&self.settings.name, self.machine()))));
        self.observer = Some(RefCell::new(observer));
    }

    pub(super) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(observer) = &self.observer {
            observer.borrow_mut().on_event(event());
        }
    }

    /// A block of file data waits, or has been written again.
    pub(super) fn tell_waiting(&self, number: u32) {
        self.tell(|| {
            let block = self.waiting.get(number);
            Event::Waits {
                block: block.slot.into(),
                file: if block.origin == Origin::Cleaning { 0 } else { block.owner },
                heat: heats(block.heat),
                file_heat: heats(block.file),
            }
        });
    }

    pub(super) fn tell_forgotten(&self, slot: Slot) {
        self.tell(|| Event::Forgotten(slot.into()));
    }

    pub(super) fn tell_death(&self, segment: u32, heat: Heat) {
        self.tell(|| Event::Death { segment, heat: heats(heat) });
    }

    /// A segment write begins.
    pub(super) fn tell_pass(&self, extent: Extent, most: u32) {
        self.tell(|| {
            let chosen: &[u32] = if extent == Extent::Chosen { &self.shown } else { &[] };
            let with_heat = |number: &u32| (self.name(*number), heats(self.metadata_heat(*number)));
            Event::Pass {
                scope: extent.into(),
                most,
                chosen: chosen.iter().map(|number| self.name(*number)).collect(),
                metadata: (self.view != View::Blocks).then(|| self.shown.iter().map(with_heat).collect()),
            }
        });
    }

    /// It has ended.
    pub(super) fn tell_passed(&self, machine: &Machine, outcome: Outcome) {
        self.tell(|| Event::Passed {
            outcome,
            centres: machine.centres().iter().map(|centre| centre.to_bits()).collect(),
        });
    }

    /// A block of a write has its place.
    pub(super) fn tell_placed(&self, from: Option<u32>, heat: Heat, cleaned: bool) {
        self.tell(|| Event::Placed { from, heat: heats(heat), cleaned });
    }

    /// A page has become dirty by a write.
    pub(super) fn tell_dirty(&self, name: Name) {
        self.tell(|| Event::Dirty(name));
    }

    /// A checkpoint, before the machine learns of it.
    pub(super) fn tell_checkpoint(&self, is_last: bool) {
        self.tell(|| Event::Checkpoint { is_last, digest: Box::new(Digest::of(self.machine())) });
    }
}
