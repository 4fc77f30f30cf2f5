//! What is asked: a workload, a drive, how full it is. From this follows the drive that is simulated.

use crate::drives::DriveClass;
use isotherm::ftl::{Design as _, Wishes, read_design};
use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::{PolicyName, SpecError};
use isotherm_eval::{EvalError, Policies, Precondition, Replay, RunSpec, Survey, SystemSpec, TraceSource};

/// Bytes of a page, as drives map them.
pub const PAGE_BYTES: u64 = 4096;
/// Erase blocks (superblocks) that a simulated drive has at least, as drives of the market have.
const BLOCKS_MIN: u64 = 1024;
/// Pages that a trace must touch: a drive of fewer has no blocks worth the name.
const TOUCHED_MIN: u64 = 4096;
/// Host writes that a run makes at least before the last two replays are measured, over the logical pages.
const DRIVE_WRITES_BEFORE: f64 = 2.0;
/// Bytes of an entry of a map that is held whole.
const MAP_ENTRY_BYTES: u64 = 4;
/// Most replays of the trace.
const REPLAYS_MAX: u64 = 48;
/// Below this many drive writes a replay, a trace says little of how long data lives.
pub const DRIVE_WRITES_WANTED: f64 = 0.5;

/// A workload and a drive.
#[derive(Clone, Debug)]
pub struct Question {
    /// The trace.
    pub trace: TraceSource,
    /// The drive.
    pub drive: DriveClass,
    /// Share of the drive's capacity that holds data, as the file system counts it: above 0, to 1.
    pub fill: f64,
    /// Share of that data that the trace neither reads nor writes: from 0, below 1.
    pub untouched: f64,
    /// The drive's FTL: with the whole map in memory, or with a part of it.
    pub ftl: PolicyName,
    /// DRAM of the real drive that map and write buffer share; needed where a part of the map is in memory.
    pub dram_bytes: Option<u64>,
    /// How the drive as it is splits it.
    pub split: PolicyName,
    /// The placement of the drive as it is.
    pub placement: PolicyName,
    /// Its victim policy.
    pub victim: PolicyName,
    /// Most handles that the drive offers: 2 to 16.
    pub handles_max: usize,
    /// How many times as fast as the trace the host writes.
    pub scale_rate: f64,
    /// Whether every candidate is simulated in full, and every combination of them.
    pub exhaustive: bool,
    /// Seed of every random choice.
    pub seed: u64,
}

/// How the trace relates to the drive that is simulated.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Situation {
    /// Logical pages of the simulated drive.
    pub logical_pages: u64,
    /// Pages that the trace reads or writes.
    pub touched_pages: u64,
    /// Host page writes of one replay.
    pub page_writes: u64,
    /// The same over the logical pages.
    pub drive_writes_per_replay: f64,
    /// Size of the simulated drive over that of the real one.
    pub scale: f64,
    /// Whether the trace trims.
    pub has_trims: bool,
    /// DRAM of the simulated drive that map and write buffer share; none where there is nothing to share.
    pub dram_bytes: Option<u64>,
    /// Share of the logical pages that hold data that the file system has deleted, and that the drive still keeps.
    pub stale_share: f64,
    /// Times that the trace is replayed.
    pub replays: u32,
    /// What that costs in confidence, in words.
    pub notes: Vec<String>,
}

impl Question {
    /// Whether what is asked lies within its ranges.
    ///
    /// # Errors
    /// The value that does not.
    pub fn check(&self) -> Result<(), SpecError> {
        let wrong = |option: &str, value: String, range: &str| {
            Err(SpecError::new(option, format!("{value} is out of range"), format!("give {range}")))
        };
        if !(self.fill > 0.0 && self.fill <= 1.0) {
            return wrong("--fill", Share(self.fill).to_string(), "above 0% to 100%");
        }
        if !(0.0..1.0).contains(&self.untouched) {
            return wrong("--untouched", Share(self.untouched).to_string(), "0% to below 100%");
        }
        if !(2..=16).contains(&self.handles_max) {
            return wrong("--handles", self.handles_max.to_string(), "2 to 16");
        }
        if !(self.scale_rate.is_finite() && self.scale_rate > 0.0) {
            return wrong("--scale-rate", self.scale_rate.to_string(), "a number above 0");
        }
        Ok(())
    }

    /// The situation that a survey of the trace shows.
    ///
    /// # Errors
    /// The trace touches too little, writes nothing, or holds more than the drive.
    pub fn situation(&self, survey: &Survey, has_trims: bool) -> Result<Situation, EvalError> {
        let touched_pages = survey.touched.as_ref().map_or(0, |touched| touched.count());
        let wrong = |problem: String, fix: &str| Err(SpecError::new(&self.trace.name, problem, fix).into());
        if survey.page_writes == 0 {
            return wrong(
                "the trace writes nothing, so that there is nothing to advise on".to_owned(),
                "give a trace with writes",
            );
        }
        if touched_pages < TOUCHED_MIN {
            let problem = format!(
                "the trace touches {touched_pages} pages of {PAGE_BYTES} bytes, and at least {TOUCHED_MIN} are needed"
            );
            return wrong(problem, "give a longer trace, of a whole drive or partition");
        }
        let logical_pages = (touched_pages as f64 / ((1.0 - self.untouched) * self.fill)).ceil() as u64;
        let scale = (logical_pages * PAGE_BYTES) as f64 / self.drive.capacity_bytes as f64;
        if scale > 1.0 {
            let problem = format!(
                "the trace touches {} GiB, which is more than a drive of {} GB holds at a fill of {:.0} %",
                (touched_pages * PAGE_BYTES) >> 30,
                self.drive.capacity_bytes / 1_000_000_000,
                self.fill * 100.0
            );
            return wrong(
                problem,
                "choose a larger drive with --drive or --capacity, or one volume of the trace with --volume",
            );
        }
        let drive_writes_per_replay = survey.page_writes as f64 / logical_pages as f64;
        let before = (DRIVE_WRITES_BEFORE / drive_writes_per_replay).ceil().max(1.0) as u64;
        let replays = (before + 2).min(REPLAYS_MAX) as u32;
        let mut notes = vec![format!(
            "the drive is simulated at 1:{:.0}, with the proportions of the real one: what the trace touches is taken for {} of the \
             data that is on it",
            (1.0 / scale).max(1.0),
            if self.untouched == 0.0 { "all".to_owned() } else { format!("{:.0} %", (1.0 - self.untouched) * 100.0) }
        )];
        notes.push(format!(
            "the trace writes the drive {drive_writes_per_replay:.2} times and is replayed {replays} times{}",
            if drive_writes_per_replay < DRIVE_WRITES_WANTED {
                "; that little says less of how long data lives than of what is repeated, so that the answer is as uncertain"
            } else {
                ""
            }
        ));
        let stale_share = if has_trims { 0.0 } else { 1.0 - self.fill };
        if stale_share > 0.0 {
            notes.push(format!(
                "the trace has no discards: the {:.0} % of the drive that the file system calls free hold what was deleted there, \
                 and the drive copies it",
                stale_share * 100.0
            ));
        }
        let dram_bytes = self.dram(logical_pages, &mut notes)?;
        Ok(Situation {
            logical_pages,
            touched_pages,
            page_writes: survey.page_writes,
            drive_writes_per_replay,
            scale,
            has_trims,
            dram_bytes,
            stale_share,
            replays,
            notes,
        })
    }

    /// DRAM of a simulated drive of so many pages: as much of the real one's as it is of the drive, in whole KiB.
    fn scaled_dram(&self, logical_pages: u64) -> Option<u64> {
        let share = (logical_pages * PAGE_BYTES) as f64 / self.drive.capacity_bytes as f64;
        self.dram_bytes.map(|bytes| ((bytes as f64 * share) as u64 >> 10).max(1) << 10)
    }

    /// DRAM of the simulated drive that map and write buffer share, with what is to be said of it.
    fn dram(&self, logical_pages: u64, notes: &mut Vec<String>) -> Result<Option<u64>, SpecError> {
        let uses = read_design(&self.ftl, &Wishes::default())?.uses();
        if !(uses.placement && uses.victim) {
            let problem = format!("{} places and cleans by itself, so that there is nothing to advise on", self.ftl);
            return Err(SpecError::new(
                "--ftl",
                problem,
                "give page, or dftl for a drive that holds a part of its map",
            ));
        }
        let (Some(bytes), Some(simulated)) = (self.dram_bytes, self.scaled_dram(logical_pages)) else {
            let problem = format!("how much of its map the FTL {} holds depends on the drive's DRAM", self.ftl);
            let fix = "say how much it has, for instance --dram 256MiB, or give --ftl page";
            return if uses.shared_dram { Err(SpecError::new("--dram", problem, fix)) } else { Ok(None) };
        };
        if uses.shared_dram {
            notes.push(format!(
                "map and write buffer share {} of DRAM, {} in the simulation, and the buffer is safe from power loss; no placement that knows the future is told, \
                 since what a buffer lets through, and when, depends on more than the trace",
                ByteSize(bytes),
                ByteSize(simulated)
            ));
            return Ok(Some(simulated));
        }
        let map_bytes = self.drive.capacity_bytes / PAGE_BYTES * MAP_ENTRY_BYTES;
        notes.push(match map_bytes <= bytes {
            true => format!(
                "the drive holds its whole map in memory, {} of its {} of DRAM: there is no split to search",
                ByteSize(map_bytes),
                ByteSize(bytes)
            ),
            false => format!(
                "the whole map of the drive takes {}, more than its {} of DRAM: such a drive holds a part of it, as --ftl dftl does",
                ByteSize(map_bytes),
                ByteSize(bytes)
            ),
        });
        Ok(None)
    }

    /// The run of `trace`, which may be a part of the whole with its own `survey`, on the drive as it is. `discards` says whether
    /// the drive hears of what is deleted.
    pub fn run(&self, trace: TraceSource, survey: &Survey, situation: &Situation, discards: bool) -> RunSpec {
        let touched = survey.touched.as_ref().map_or(0, |touched| touched.count());
        let logical = (touched as f64 / ((1.0 - self.untouched) * self.fill)).ceil() as u64;
        let live = if discards { (logical as f64 * self.fill).round() as u64 } else { logical };
        let over_provisioning = self.drive.over_provisioning();
        let mut device = SystemSpec::default();
        device.device.logical_size = Some(ByteSize(logical * PAGE_BYTES));
        device.device.over_provisioning = Some(Share(over_provisioning));
        let most = (logical as f64 * (1.0 + over_provisioning)) as u64 / BLOCKS_MIN;
        device.device.pages_per_block = 1 << most.clamp(16, 16_384).ilog2();
        device.ftl.name = self.ftl.clone();
        if let Some(bytes) = situation.dram_bytes.and_then(|_| self.scaled_dram(logical)) {
            device.dram.size = Some(ByteSize(bytes));
            device.dram.split = Some(self.split.clone());
            device.dram.power_loss_protection = true;
        }
        device.placement.name = self.placement.clone();
        device.gc.victim = self.victim.clone();
        self.drive.timing.clone_into(&mut device.timing.preset);
        let replay = Replay {
            address: isotherm_eval::AddressMode::Compact,
            fill: filled(live, touched, logical),
            precondition: Precondition::Sequential,
            repeat: situation.replays,
            measure_last: Some(2 * survey.page_writes),
        };
        RunSpec { trace, device, replay, seed: self.seed, policies: Policies::default() }
    }
}

/// The fill that leaves `live` of `logical` pages live, of which the trace touches `touched`. Without a page of filler,
/// preconditioning would write what is free too.
pub fn filled(live: u64, touched: u64, logical: u64) -> Share {
    match touched < logical {
        true => Share((live.max(touched + 1) as f64 / logical as f64).min(1.0)),
        false => Share(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_eval::{SurveyKey, prepare};

    fn question(name: &str, fill: f64) -> (Question, Survey) {
        let trace = TraceSource::new(name);
        let survey = SurveyKey { trace: trace.clone(), page_bytes: PAGE_BYTES, touched: true }.survey().unwrap();
        let question = Question {
            trace,
            drive: DriveClass::find("tlc-1.92t").unwrap(),
            fill,
            untouched: 0.0,
            ftl: PolicyName::plain("page"),
            dram_bytes: None,
            split: PolicyName::plain("50%"),
            placement: PolicyName::plain("host_gc"),
            victim: PolicyName::plain("greedy"),
            handles_max: 8,
            scale_rate: 1.0,
            exhaustive: false,
            seed: 1,
        };
        (question, survey)
    }

    #[test]
    fn proportions_are_those_of_the_real_drive() {
        let (question, survey) = question("synth:uniform,pages=65536,writes=262144", 0.8);
        let touched = survey.touched.as_ref().unwrap().count();
        let situation = question.situation(&survey, false).unwrap();
        assert_eq!(situation.logical_pages, (touched as f64 / 0.8).ceil() as u64);
        assert_eq!(situation.stale_share, 1.0 - 0.8);
        for (discards, live) in [(false, situation.logical_pages), (true, touched)] {
            let spec = question.run(question.trace.clone(), &survey, &situation, discards);
            let prepared = prepare(&spec, Some(&survey)).unwrap();
            let device = prepared.device_summary();
            assert!((device.over_provisioning / question.drive.over_provisioning() - 1.0).abs() < 0.02);
            assert!(device.blocks >= BLOCKS_MIN && device.blocks < 3 * BLOCKS_MIN, "{}", device.blocks);
            let filled = (spec.replay.fill.0 * device.logical_pages as f64).round() as u64;
            assert!(filled.max(touched).abs_diff(live) <= 1, "{filled} against {live}");
        }
    }

    #[test]
    fn a_trace_that_says_nothing_is_refused() {
        let (question, survey) = question("synth:uniform,pages=512,writes=10000", 1.0);
        let problem = question.situation(&survey, false).unwrap_err().to_string();
        assert!(problem.contains("touches 512 pages"), "{problem}");
    }
}
