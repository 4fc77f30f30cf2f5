//! The simulator against theory: every cell of the tables that closed forms give, simulated, with a tolerance stated before.
//!
//! Devices are fully active and of many blocks, so that one open block does not move the answer; T excludes the collector's
//! reserve, as the formulas do. Each cell is filled, overwritten until the transient of the fill has died away, and measured over
//! several drive writes.

use crate::closed_form::{TwoTemperatures, alpha_of_spare, fifo, greedy};
use crate::compare::Spare;
use crate::control::Control;
use crate::error::EvalError;
use crate::pool::{self, Job, Surveys};
use crate::run::Precondition;
use crate::run::{Policies, Replay, RunSpec};
use crate::source::TraceSource;
use isotherm::nand::timing::TimeMode;
use isotherm::placement::{PLACEMENTS, needs_future};
use isotherm::quantity::Share;
use isotherm::registry::PolicyName;
use isotherm_sfs::SystemSpec;
use serde::Serialize;
use serde_json::Map;

/// Spare factors of the uniform table.
const SPARES: [f64; 8] = [0.03, 0.05, 0.07, 0.10, 0.15, 0.20, 0.28, 0.40];
/// Pages per block of the uniform table.
const BLOCK_SIZES: [u32; 4] = [32, 64, 128, 256];
/// Two temperatures: share of hot pages, share of writes to them, spare factor.
const TWO_TEMPERATURES: [(f64, f64, f64); 4] = [(0.1, 0.9, 0.03), (0.1, 0.9, 0.10), (0.1, 0.9, 0.20), (0.2, 0.8, 0.10)];
/// Spare factors at which placements are compared under uniform traffic.
const PLACEMENT_SPARES: [f64; 2] = [0.07, 0.20];
/// Largest deviation at spare factors of .05 and above.
const TOLERANCE: f64 = 0.01;
/// Largest deviation below, where the last per cent of the spare counts double, and of the two-temperature approximation.
const TOLERANCE_WIDE: f64 = 0.02;

/// How thoroughly theory is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Blocks of 64 pages and the corners of the table, on small devices: seconds.
    Quick,
    /// Every cell: minutes.
    Full,
}

impl Depth {
    /// Blocks of a device.
    fn blocks(self) -> u64 {
        match self {
            Self::Quick => 2048,
            Self::Full => 4096,
        }
    }

    /// Drive writes before the measurement, and within it.
    fn drive_writes(self, spare: f64) -> (u64, u64) {
        // The transient of the sequential fill decays over several drive writes, the more slowly the less spare there is.
        let settle = if spare < 0.06 { 16 } else { 10 };
        match self {
            Self::Quick => (settle, 4),
            Self::Full => (settle, 6),
        }
    }
}

/// One comparison of simulation with theory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// What is compared: `uniform, greedy, spare 7 %, 64 pages a block`.
    pub name: String,
    /// What theory says, or what the reference placement measured.
    pub expected: f64,
    /// What the simulator measured.
    pub measured: f64,
    /// `measured / expected - 1`.
    pub deviation: f64,
    /// Largest deviation that passes.
    pub tolerance: f64,
    /// Whether it passes.
    pub pass: bool,
}

/// One cell before it is measured.
struct Question {
    job: Job<RunSpec>,
    /// Theory's value; none where another cell's measurement is the reference.
    expected: Option<f64>,
    /// Position of the cell that is the reference.
    reference: Option<usize>,
    tolerance: f64,
}

/// Cells in the order they are asked.
pub struct Validation {
    depth: Depth,
    /// Blocks of the devices of the cells that are asked now.
    blocks: u64,
    questions: Vec<Question>,
}

impl Validation {
    /// The cells of a depth.
    pub fn new(depth: Depth) -> Self {
        let mut validation = Self { depth, blocks: depth.blocks(), questions: Vec::new() };
        validation.uniform();
        validation.two_temperatures();
        validation.placements();
        validation
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.questions.len()
    }

    /// Whether there is nothing to check.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Host pages that the measured parts write.
    pub fn pages(&self) -> u64 {
        let pages = |q: &Question| {
            let device = &q.job.spec.device.device;
            let logical = device.logical_size.map_or(0, |size| size.0 / device.page_size.0);
            let (settle, measure) = self.depth.drive_writes(device.spare.map_or(0.0, |s| s.0));
            logical * (settle + measure)
        };
        self.questions.iter().map(pages).sum()
    }

    /// Measures every cell.
    ///
    /// # Errors
    /// A run fails or is stopped.
    pub fn run(&self, control: &Control) -> Result<Vec<Cell>, EvalError> {
        let jobs: Vec<Job<RunSpec>> = self.questions.iter().map(|q| q.job.clone()).collect();
        let runs = pool::run_all(&jobs, &Surveys::of(&jobs)?, control, |_, _| Ok(()))?;
        let measured: Vec<f64> = runs.iter().map(|r| r.write_amplification_last.unwrap_or(f64::NAN)).collect();
        let cell = |(at, question): (usize, &Question)| {
            let expected = question.expected.or(question.reference.map(|r| measured[r])).unwrap_or(f64::NAN);
            let deviation = measured[at] / expected - 1.0;
            Cell {
                name: question.job.label.clone(),
                expected,
                measured: measured[at],
                deviation,
                tolerance: question.tolerance,
                pass: deviation.abs() <= question.tolerance,
            }
        };
        Ok(self.questions.iter().enumerate().map(cell).collect())
    }

    /// Adds a cell: traffic `pattern` on a device of `spare` and `pages_per_block`.
    fn ask(&mut self, name: &str, pattern: &str, device: (f64, u32), sets: &[&str], expected: Option<f64>) -> usize {
        let (spare, pages_per_block) = device;
        let mut spec = SystemSpec::default();
        spec.timing.mode = TimeMode::None;
        spec.wear.leveling = false;
        spec.device.pages_per_block = pages_per_block;
        for set in sets {
            let policy = |text: &str| PolicyName::plain(text);
            match set.split_once('=') {
                Some(("victim", name)) => spec.gc.victim = policy(name),
                Some(("placement", name)) => spec.placement.name = policy(name),
                _ => unreachable!("cells set a victim or a placement"),
            }
        }
        Spare::SpareFactor(Share(spare)).apply(&mut spec);
        // Whole blocks of logical pages: rounding would move a spare of 3 % by a noticeable part of itself.
        let physical = self.blocks * u64::from(pages_per_block);
        let logical = (physical as f64 * (1.0 - spare)).round() as u64;
        spec.device.logical_size = Some(isotherm::quantity::ByteSize(logical * spec.device.page_size.0));
        let (settle, measure) = self.depth.drive_writes(spare);
        let trace = format!("synth:{pattern},pages={logical},writes={}", logical * (settle + measure));
        let replay = Replay {
            precondition: Precondition::Sequential,
            measure_last: Some(logical * measure),
            ..Replay::default()
        };
        let label = format!("{name}, spare {} %, {pages_per_block} pages a block", (spare * 1000.0).round() / 10.0);
        let spec =
            RunSpec { trace: TraceSource::new(&trace), device: spec, replay, seed: 1, policies: Policies::default() };
        let tolerance = if spare < 0.05 { TOLERANCE_WIDE } else { TOLERANCE };
        let job = Job { spec, label, axes: Map::new() };
        self.questions.push(Question { job, expected, reference: None, tolerance });
        self.questions.len() - 1
    }

    /// Uniform traffic, greedy and FIFO victims.
    fn uniform(&mut self) {
        for spare in SPARES {
            for pages_per_block in BLOCK_SIZES {
                if self.depth == Depth::Quick && pages_per_block != 64 {
                    continue;
                }
                let alpha = alpha_of_spare(spare);
                let device = (spare, pages_per_block);
                let expected = Some(greedy(alpha, pages_per_block));
                self.ask("uniform, greedy", "uniform", device, &["victim=greedy"], expected);
                self.ask("uniform, fifo", "uniform", device, &["victim=fifo"], Some(fifo(alpha)));
            }
        }
    }

    /// Two temperatures in one stream, greedy victims.
    fn two_temperatures(&mut self) {
        for (hot_pages, hot_writes, spare) in TWO_TEMPERATURES {
            if self.depth == Depth::Quick && spare != 0.10 {
                continue;
            }
            let expected = TwoTemperatures { hot_pages, hot_writes }.greedy_mixed(alpha_of_spare(spare), 64);
            let pattern = format!("hotcold,hot={hot_pages},hot_writes={hot_writes}");
            let name = format!("{hot_pages}/{hot_writes} mixed, greedy");
            let at = self.ask(&name, &pattern, (spare, 64), &["victim=greedy"], Some(expected));
            // The formula itself is good to about 2 %.
            self.questions[at].tolerance = TOLERANCE_WIDE;
        }
    }

    /// Uniform traffic under every online placement: there is nothing to tell apart, so that none may gain or lose.
    ///
    /// Open blocks are half empty on average, and the more streams, the more of the spare space they hold: the device is so
    /// large that this hardly counts.
    fn placements(&mut self) {
        self.blocks = 4 * self.depth.blocks();
        let online = PLACEMENTS.iter().filter(|p| !needs_future(&PolicyName::plain(p.name)) && p.name != "single");
        // Little spare space tells most: where there is much, all placements write little.
        let spares = if self.depth == Depth::Quick { &PLACEMENT_SPARES[..1] } else { &PLACEMENT_SPARES };
        for &spare in spares {
            let device = (spare, 64);
            let single = self.ask("uniform, placement single", "uniform", device, &["victim=greedy"], None);
            self.questions[single].expected = Some(greedy(alpha_of_spare(spare), 64));
            for placement in online.clone() {
                let set = format!("placement={}", placement.name);
                let name = format!("uniform, placement {} as single", placement.name);
                let at = self.ask(&name, "uniform", device, &["victim=greedy", &set], None);
                self.questions[at].reference = Some(single);
            }
        }
    }
}
