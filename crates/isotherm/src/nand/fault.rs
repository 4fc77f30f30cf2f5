//! Faults, as a decorator: loss of power at a chosen operation, and programs and erases that fail at random.

use super::{Medium, MediumError, Move, Oob, Owner, PageMut, PageRef, copy_each};
use crate::address::{BlockId, Geometry, Lpn, PageSet, Ppn};
use crate::cause::Cause;
use crate::random::Random;
use crate::stats::MediumCounters;

/// Which faults a [`Faulty`] medium shows.
#[derive(Clone, Copy, Debug)]
pub struct FaultPlan {
    /// Operations (programs, copies, erases) before power is lost; `u64::MAX` for never.
    pub operations_until_power_loss: u64,
    /// The operation at which power is lost leaves its page or block unreadable, rather than untouched.
    pub torn: bool,
    /// Share of programs and copies that fail, 0 to 1.
    pub program_failures: f64,
    /// Share of erases that fail, 0 to 1.
    pub erase_failures: f64,
    /// Seed of the failures.
    pub seed: u64,
}

impl Default for FaultPlan {
    fn default() -> Self {
        Self { operations_until_power_loss: u64::MAX, torn: false, program_failures: 0.0, erase_failures: 0.0, seed: 0 }
    }
}

/// A medium that fails as planned.
#[derive(Clone, Debug)]
pub struct Faulty<M> {
    inner: M,
    plan: FaultPlan,
    random: Random,
    failed_erases: Vec<bool>,
}

/// What becomes of one operation.
enum Fate {
    Succeeds,
    Fails,
    PowerLost { torn: bool },
}

impl<M: Medium> Faulty<M> {
    /// Puts faults before `inner`.
    pub fn new(inner: M, plan: FaultPlan) -> Self {
        let failed_erases = vec![false; inner.geometry().blocks as usize];
        Self { inner, plan, random: Random::new(plan.seed), failed_erases }
    }

    /// Power is there, and will be lost after `operations` more (`u64::MAX` for never). Failed erases stay failed.
    pub fn lose_power_after(&mut self, operations: u64) {
        self.plan.operations_until_power_loss = operations;
    }

    /// Whether power has been lost.
    pub fn is_dead(&self) -> bool {
        self.plan.operations_until_power_loss == 0
    }

    fn fate(&mut self, failures: f64) -> Fate {
        match self.plan.operations_until_power_loss {
            0 => return Fate::PowerLost { torn: false },
            1 => {
                self.plan.operations_until_power_loss = 0;
                return Fate::PowerLost { torn: self.plan.torn };
            }
            u64::MAX => {}
            left => self.plan.operations_until_power_loss = left - 1,
        }
        if failures > 0.0 && self.random.chance(failures) { Fate::Fails } else { Fate::Succeeds }
    }

    fn fate_of_program(&mut self, at: Ppn) -> Result<(), MediumError> {
        match self.fate(self.plan.program_failures) {
            Fate::Succeeds => Ok(()),
            Fate::Fails => {
                self.inner.spoil_page(at);
                Err(MediumError::ProgramFailed(at))
            }
            Fate::PowerLost { torn } => {
                if torn {
                    self.inner.spoil_page(at);
                }
                Err(MediumError::PowerLost)
            }
        }
    }
}

impl<M: Medium> Medium for Faulty<M> {
    type Content = M::Content;
    type Clock = M::Clock;

    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn program(&mut self, at: Ppn, oob: Oob, page: PageRef<'_, Self>, cause: Cause) -> Result<(), MediumError> {
        self.fate_of_program(at)?;
        self.inner.program(at, oob, page, cause)
    }
    fn program_meta(&mut self, at: Ppn, oob: Oob, content: &[u8], cause: Cause) -> Result<(), MediumError> {
        self.fate_of_program(at)?;
        self.inner.program_meta(at, oob, content, cause)
    }
    fn read(&mut self, at: Ppn, out: PageMut<'_, Self>, cause: Cause) -> Result<(), MediumError> {
        if self.is_dead() {
            return Err(MediumError::PowerLost);
        }
        self.inner.read(at, out, cause)
    }
    fn read_meta(&mut self, at: Ppn, out: &mut Vec<u8>, cause: Cause) -> Result<(), MediumError> {
        if self.is_dead() {
            return Err(MediumError::PowerLost);
        }
        self.inner.read_meta(at, out, cause)
    }
    fn counts_meta_reads(&self) -> bool {
        false
    }
    fn count_meta_reads(&mut self, _: u64, _: Cause) {
        unreachable!("each read meets its own fate");
    }
    fn copy(&mut self, source: Ppn, target: Ppn, cause: Cause) -> Result<(), MediumError> {
        self.fate_of_program(target)?;
        self.inner.copy(source, target, cause)
    }
    /// One page at a time: each meets its own fate.
    fn copy_run(&mut self, moves: &[Move], target: Ppn, cause: Cause) -> (usize, Result<(), MediumError>) {
        copy_each(self, moves, target, cause)
    }
    fn copies_owners(&self) -> bool {
        false
    }
    fn holds_data_only(&self, block: BlockId) -> bool {
        self.inner.holds_data_only(block)
    }
    fn copy_data(&mut self, _: PageSet, _: Ppn, _: Cause, _: &mut PageSet, _: impl FnMut(Lpn, Ppn, Option<Owner>)) {
        unreachable!("each copy meets its own fate");
    }
    fn programs_runs(&self) -> bool {
        false
    }
    fn program_run(&mut self, _: &[Lpn], _: Ppn, _: u64, _: Cause) {
        unreachable!("each program meets its own fate");
    }
    fn erase(&mut self, block: BlockId, cause: Cause) -> Result<(), MediumError> {
        match self.fate(self.plan.erase_failures) {
            Fate::Succeeds => self.inner.erase(block, cause),
            Fate::Fails => {
                self.failed_erases[block.0 as usize] = true;
                self.inner.spoil_block(block);
                Err(MediumError::EraseFailed(block))
            }
            Fate::PowerLost { torn } => {
                if torn {
                    self.inner.spoil_block(block);
                }
                Err(MediumError::PowerLost)
            }
        }
    }
    fn owner(&self, at: Ppn) -> Owner {
        self.inner.owner(at)
    }
    fn sequence(&self, at: Ppn) -> u64 {
        self.inner.sequence(at)
    }
    fn programmed_pages(&self, block: BlockId) -> u32 {
        self.inner.programmed_pages(block)
    }
    fn erase_count(&self, block: BlockId) -> u32 {
        self.inner.erase_count(block)
    }
    fn is_bad(&self, block: BlockId) -> bool {
        self.failed_erases[block.0 as usize] || self.inner.is_bad(block)
    }
    fn counters(&self) -> &MediumCounters {
        self.inner.counters()
    }
    fn table_bytes(&self) -> u64 {
        self.inner.table_bytes()
    }
    fn keeps_content(&self) -> bool {
        self.inner.keeps_content()
    }
    fn flush(&mut self) -> Result<(), MediumError> {
        self.inner.flush()
    }
    fn save_frame(&mut self, frame: u32, held: Option<(Lpn, PageRef<'_, Self>)>) -> Result<(), MediumError> {
        self.inner.save_frame(frame, held)
    }
    fn prefetch_owner(&self, at: Ppn) {
        self.inner.prefetch_owner(at);
    }
    fn prefetch_block(&self, block: BlockId) {
        self.inner.prefetch_block(block);
    }
    fn spoil_page(&mut self, at: Ppn) {
        self.inner.spoil_page(at);
    }
    fn spoil_block(&mut self, block: BlockId) {
        self.inner.spoil_block(block);
    }
    fn clock(&self) -> &M::Clock {
        self.inner.clock()
    }
    fn clock_mut(&mut self) -> &mut M::Clock {
        self.inner.clock_mut()
    }
}
