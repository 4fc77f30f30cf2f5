//! Hotness of blocks, files and segments (Min et al., SFS, FAST'12): write count over age.
//!
//! `Hb = Wb / (T - Tb)` for a block, the same for a file, and for a segment the mean count over the mean age of its live blocks,
//! `Hs = sum(Wb) / (n T - sum(Tb))`, kept in O(1) by subtracting what a block added when it dies. Ages count from one, so that
//! nothing is infinitely hot. The clock counts host block writes: a replay as fast as possible writes at an even pace.
//!
//! What the age counts from is a switch. As published it is the time since the last modification ([`AgeFrom::Modified`]): hotness then goes with
//! the square of a block's rate of writing, and among blocks that have just been written with the order in which they were. Our
//! variant, the default, is the time since creation ([`AgeFrom::Created`]), where hotness is the rate itself
//! (`experiments/sfs_published.toml`).

/// A time in host block writes, modulo 2^32: ages are right as long as they stay below that.
pub type Time = u32;

/// What the age of a block or file counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AgeFrom {
    /// Its first write.
    #[default]
    Created,
    /// Its last write.
    Modified,
}

impl AgeFrom {
    /// The switch's names, for parameters.
    pub const NAMES: &[(&str, Self)] = &[("created", Self::Created), ("modified", Self::Modified)];
}

/// Which writes count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CountWrites {
    /// Every write of the host.
    #[default]
    Host,
    /// Writes that reach the log: those of a block that is dirty already do not.
    Logged,
}

impl CountWrites {
    /// The switch's names, for parameters.
    pub const NAMES: &[(&str, Self)] = &[("host", Self::Host), ("logged", Self::Logged)];
}

/// Write count and time of a block or of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Heat {
    /// Writes so far, the first one included; 0 for a block that does not exist.
    pub writes: u32,
    /// What its age counts from.
    pub time: Time,
}

impl Heat {
    /// Counts a write.
    #[inline(always)]
    pub fn on_write(&mut self, now: Time, age: AgeFrom) {
        if self.writes == 0 || age == AgeFrom::Modified {
            self.time = now;
        }
        self.writes = self.writes.saturating_add(1);
    }

    /// Writes per unit of age.
    #[inline(always)]
    pub fn hotness(self, now: Time) -> f64 {
        f64::from(self.writes) / (f64::from(now.wrapping_sub(self.time)) + 1.0)
    }
}

/// Sums over the live blocks of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeatSums {
    writes: u64,
    times: u64,
}

impl HeatSums {
    /// The sums of counts and of times that [`HeatSums::writes`] and [`HeatSums::times`] gave.
    pub fn of(writes: u64, times: u64) -> Self {
        Self { writes, times }
    }

    /// A block became live.
    #[inline(always)]
    pub fn add(&mut self, heat: Heat) {
        self.writes += u64::from(heat.writes);
        self.times += u64::from(heat.time);
    }

    /// A block that was added with this heat died.
    #[inline(always)]
    pub fn remove(&mut self, heat: Heat) {
        self.writes -= u64::from(heat.writes);
        self.times -= u64::from(heat.time);
    }

    /// Sum of the counts.
    #[inline(always)]
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Sum of the times that their ages count from.
    pub fn times(&self) -> u64 {
        self.times
    }

    /// Mean count over mean age of `live` blocks.
    #[inline(always)]
    pub fn hotness(&self, live: u32, now: u64) -> f64 {
        let ages = (u64::from(live) * (now + 1)).saturating_sub(self.times).max(1);
        // Both are below 2^63, and signed numbers are converted by one instruction.
        self.writes as i64 as f64 / ages as i64 as f64
    }
}

/// Hotness of files, where a file is a range of consecutive blocks: all that a block trace lets one say.
#[derive(Clone, Debug)]
pub struct Files {
    log2_blocks: u32,
    heats: Vec<Heat>,
}

impl Files {
    /// Files of `2^log2_blocks` blocks each that together hold `blocks`.
    pub fn new(blocks: u32, log2_blocks: u32) -> Self {
        let files = (blocks as usize).div_ceil(1 << log2_blocks);
        Self { log2_blocks, heats: vec![Heat::default(); files] }
    }

    /// Counts a write of a block.
    #[inline(always)]
    pub fn on_write(&mut self, block: u32, now: Time, age: AgeFrom) {
        self.heats[(block >> self.log2_blocks) as usize].on_write(now, age);
    }

    /// Counts what is known of a block, where nothing is known of files: writes of their blocks together, age from the first of
    /// them or from the last.
    pub fn restore(&mut self, block: u32, heat: Heat, age: AgeFrom, now: Time) {
        let file = &mut self.heats[(block >> self.log2_blocks) as usize];
        let is_older = now.wrapping_sub(heat.time) > now.wrapping_sub(file.time);
        if file.writes == 0 || is_older == (age == AgeFrom::Created) {
            file.time = heat.time;
        }
        file.writes = file.writes.saturating_add(heat.writes);
    }

    /// Hotness of the file that a block belongs to.
    #[inline(always)]
    pub fn hotness(&self, block: u32, now: Time) -> f64 {
        self.heats[(block >> self.log2_blocks) as usize].hotness(now)
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> u64 {
        (self.heats.len() * size_of::<Heat>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hotness_is_writes_over_age() {
        let mut modified = Heat::default();
        let mut created = Heat::default();
        for now in [10, 20, 30] {
            modified.on_write(now, AgeFrom::Modified);
            created.on_write(now, AgeFrom::Created);
        }
        assert_eq!(modified.hotness(39), 3.0 / 10.0);
        assert_eq!(created.hotness(39), 3.0 / 30.0);
    }

    #[test]
    fn segment_hotness_is_mean_count_over_mean_age() {
        let mut sums = HeatSums::default();
        let (a, b, c) = (Heat { writes: 4, time: 10 }, Heat { writes: 2, time: 30 }, Heat { writes: 9, time: 5 });
        [a, b, c].into_iter().for_each(|heat| sums.add(heat));
        sums.remove(c);
        assert_eq!(sums.hotness(2, 49), 6.0 / (2.0 * 50.0 - 40.0));
    }

    #[test]
    fn files_are_restored_from_their_blocks() {
        for age in [AgeFrom::Created, AgeFrom::Modified] {
            let (mut files, mut restored) = (Files::new(8, 2), Files::new(8, 2));
            let mut blocks = [Heat::default(); 8];
            // The clock wraps on the way.
            let start = Time::MAX - 4;
            for (turn, block) in [6, 1, 0, 1, 7, 3, 0, 1].into_iter().enumerate() {
                let now = start.wrapping_add(turn as Time);
                files.on_write(block, now, age);
                blocks[block as usize].on_write(now, age);
            }
            let now = start.wrapping_add(8);
            for (block, heat) in (0..).zip(blocks).filter(|(_, heat)| heat.writes > 0) {
                restored.restore(block, heat, age, now);
            }
            assert_eq!(restored.heats, files.heats, "{age:?}");
        }
    }
}
