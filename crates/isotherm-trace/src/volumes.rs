//! Several volumes in one trace (ASUs, disks, LUNs, device numbers) are laid end to end in one address space.
//!
//! Where a volume begins depends on how far the ones before it reach, so a file is read twice: once to measure, once to
//! replay. A stream that cannot be read again may hold one volume only, unless one is named: then the others are left out, and
//! it lies at 0. Volumes follow each other in numeric order of
//! their names, each rounded up to [`VOLUME_ALIGNMENT`], so that no page straddles two of them.

use crate::row::{Excerpt, Fault, Field};
use std::collections::HashMap;

/// Volumes begin at multiples of this many bytes: no page size in use is larger.
pub const VOLUME_ALIGNMENT: u64 = 1 << 20;

/// Volumes that one trace may hold.
const VOLUMES_MAX: usize = 1 << 20;

/// Index of a volume in the order of first appearance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct VolumeId(u32);

impl VolumeId {
    /// Its number where it stands for who asks; beyond 65,535 volumes, the rest share the last.
    pub(crate) fn number(self) -> u16 {
        u16::try_from(self.0).unwrap_or(u16::MAX)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The first volume lies at 0 and a second one is an error.
    Single,
    /// Every volume lies at 0 and its extent is recorded.
    Measuring,
    /// Every volume lies at its base.
    LaidOut,
    /// One volume lies at 0 and the others are left out.
    Only,
}

/// A volume, and where it lies among the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VolumeSpan {
    /// As the trace calls it.
    pub(crate) name: Box<[u8]>,
    /// First byte.
    pub(crate) base: u64,
}

/// The volumes of one trace and where each begins.
pub(crate) struct Volumes {
    state: State,
    /// Looked up, never iterated: its order cannot reach a result.
    index: HashMap<Box<[u8]>, u32>,
    names: Vec<Box<[u8]>>,
    extents: Vec<u64>,
    bases: Vec<u64>,
    /// The volume of the row before, which is most often the volume of this one.
    latest: u32,
    /// The volume that is asked for, where it is one alone.
    only: Option<VolumeId>,
}

impl Volumes {
    fn new(state: State) -> Self {
        Self {
            state,
            index: HashMap::new(),
            names: Vec::new(),
            extents: Vec::new(),
            bases: Vec::new(),
            latest: 0,
            only: None,
        }
    }

    /// For streams that cannot be read twice.
    pub(crate) fn single() -> Self {
        Self::new(State::Single)
    }

    /// For the first of two passes.
    pub(crate) fn measuring() -> Self {
        Self::new(State::Measuring)
    }

    /// The volume `name` alone.
    pub(crate) fn only(name: &str) -> Self {
        let mut volumes = Self::new(State::Only);
        let first = volumes.insert(name.as_bytes());
        volumes.only = Some(VolumeId(first));
        volumes
    }

    /// Numbers of the volumes, in the order in which they are laid out.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by(|&a, &b| numeric_order(&self.names[a]).cmp(&numeric_order(&self.names[b])));
        order
    }

    /// The names met, in the order in which they are laid out.
    pub(crate) fn names(&self) -> Vec<String> {
        self.order().into_iter().map(|volume| String::from_utf8_lossy(&self.names[volume]).into_owned()).collect()
    }

    /// The volumes by ascending base; known once they are laid out.
    pub(crate) fn spans(&self) -> Vec<VolumeSpan> {
        assert_eq!(self.state, State::LaidOut, "bases are known once volumes are laid out");
        let span = |volume: usize| VolumeSpan { name: self.names[volume].clone(), base: self.bases[volume] };
        self.order().into_iter().map(span).collect()
    }

    /// Whether requests of a volume are left out.
    #[inline(always)]
    pub(crate) fn leaves_out(&self, volume: VolumeId) -> bool {
        self.only.is_some_and(|only| only != volume)
    }

    /// Ends the first pass: every volume gets its base.
    pub(crate) fn lay_out(mut self) -> Self {
        let mut base = 0u64;
        for volume in self.order() {
            self.bases[volume] = base;
            // One that was only flushed has a place too, so that no two begin at one address.
            base = base.saturating_add(self.extents[volume].max(1).next_multiple_of(VOLUME_ALIGNMENT));
        }
        self.state = State::LaidOut;
        self
    }

    /// The volume called `name`.
    #[inline(always)]
    pub(crate) fn find(&mut self, name: &[u8]) -> Result<VolumeId, Box<Fault>> {
        match self.names.get(self.latest as usize) {
            Some(latest) if **latest == *name => {}
            _ => self.latest = self.find_other(name)?,
        }
        Ok(VolumeId(self.latest))
    }

    fn find_other(&mut self, name: &[u8]) -> Result<u32, Box<Fault>> {
        if let Some(&volume) = self.index.get(name) {
            return Ok(volume);
        }
        let fault = |problem: String, fix: &str| Err(Fault::new(Field::Volume, problem, fix));
        match self.state {
            _ if name.is_empty() => {
                return fault("is missing".to_owned(), "correct the row, or skip it with --skip-bad N");
            }
            State::Single if !self.names.is_empty() => {
                return fault(
                    format!("{} is a second volume, and a stream cannot be measured ahead", Excerpt(name)),
                    "write the trace to a file and open that, or name one volume with --volume",
                );
            }
            State::LaidOut => {
                return fault(format!("{} has just appeared", Excerpt(name)), "do not change a trace while it is read");
            }
            _ if self.names.len() >= VOLUMES_MAX => {
                return fault(
                    format!("{} is one volume too many", Excerpt(name)),
                    "split the trace: it may have 1 Mi volumes",
                );
            }
            _ => {}
        }
        Ok(self.insert(name))
    }

    fn insert(&mut self, name: &[u8]) -> u32 {
        let volume = self.names.len() as u32;
        self.index.insert(name.into(), volume);
        self.names.push(name.into());
        self.extents.push(0);
        self.bases.push(0);
        volume
    }

    /// Where the volume begins; while measuring, records that it reaches to `end`.
    #[inline(always)]
    pub(crate) fn base(&mut self, volume: VolumeId, end: u64) -> u64 {
        if self.state == State::Measuring {
            let extent = &mut self.extents[volume.0 as usize];
            *extent = (*extent).max(end);
        }
        self.bases[volume.0 as usize]
    }
}

/// Numbers in numeric order ("9" before "10", "8,16" before "8,17"), then everything else by its bytes.
fn numeric_order(name: &[u8]) -> (Vec<u64>, &[u8]) {
    let numbers = name
        .split(|b| !b.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map(|part| part.iter().fold(0u64, |n, &b| n.saturating_mul(10).saturating_add(u64::from(b - b'0'))))
        .collect();
    (numbers, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_follow_each_other_in_numeric_order() {
        let mut volumes = Volumes::measuring();
        for (name, end) in [("10", 5), ("9", VOLUME_ALIGNMENT + 1), ("10", 3 * VOLUME_ALIGNMENT), ("2", 1)] {
            let id = volumes.find(name.as_bytes()).unwrap();
            assert_eq!(volumes.base(id, end), 0);
        }
        let mut volumes = volumes.lay_out();
        let mut base = |name: &str| {
            let id = volumes.find(name.as_bytes()).unwrap();
            volumes.base(id, 0)
        };
        assert_eq!((base("2"), base("9"), base("10")), (0, VOLUME_ALIGNMENT, 3 * VOLUME_ALIGNMENT));
        assert!(volumes.find(b"3").is_err());
    }

    #[test]
    fn one_volume_alone_lies_at_nought() {
        let mut volumes = Volumes::only("9");
        let ids = ["10", "9", "2"].map(|name| volumes.find(name.as_bytes()).unwrap());
        assert_eq!(ids.map(|id| volumes.leaves_out(id)), [true, false, true]);
        assert_eq!(volumes.base(ids[1], 5), 0);
        assert_eq!(volumes.names(), ["2", "9", "10"]);
    }

    #[test]
    fn a_stream_may_hold_one_volume_only() {
        let mut volumes = Volumes::single();
        assert!(volumes.find(b"a").is_ok() && volumes.find(b"a").is_ok());
        assert!(volumes.find(b"b").unwrap_err().fix.contains("file"));
    }
}
