//! The power-cut explorer: after any crash, at any moment, a drive opens again and holds what it must.
//!
//! A run of random requests writes down what is done to the image. Of that every prefix is a cut of the power of the drive, also
//! with the last write torn: operations of the flash reach the image in their order. A crash of the machine may also lose any part of
//! what was not synced, and a second crash may come while the image is opened. For each such state the image is opened by the code that opens any image, and compared with what was
//! acknowledged by then.
//!
//! `ISOTHERM_CUTS` says how many states are looked at for each device; the default takes seconds.

use crate::support::journal::{Journal, Step, apply, apply_torn};
use crate::support::model::Model;
use crate::support::{DEVICES, PAGE, blank};
use isotherm::random::Random;
use isotherm_drive::{Drive, DriveOptions};
use isotherm_export::Export as _;
use std::sync::Arc;

/// States looked at for each device where nobody asks for more.
const CUTS: u64 = 2_000;
/// Requests of a run.
const ACTS: usize = 120;

/// A run, and what was acknowledged when.
struct Run {
    before: Vec<u8>,
    steps: Vec<Step>,
    /// Models after so many steps: a request on its way counts as not acknowledged.
    models: Vec<(usize, Model)>,
}

fn cuts() -> u64 {
    std::env::var("ISOTHERM_CUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(CUTS)
}

/// Carries out random requests on the image `before`, which holds what `model` says.
fn run(before: Vec<u8>, mut model: Model, random: &mut Random) -> Run {
    let journal = Journal::new(before.clone());
    let drive = Arc::new(Drive::on(journal.clone(), DriveOptions::default()).unwrap());
    let handle = drive.handle(0);
    let mut models = vec![(0, model.clone())];
    for _ in 0..ACTS {
        let act = Model::draw(random);
        model.begin(act);
        models.push((journal.step_count(), model.clone()));
        model.ask(&handle, act);
        model.end(act);
        models.push((journal.step_count(), model.clone()));
    }
    model.check(&handle);
    drive.observe(|device| device.check()).unwrap();
    Run { before, steps: journal.steps(), models }
}

impl Run {
    /// What the drive may hold after `steps` steps: before the first step of a request that began later.
    fn model_at(&self, steps: usize) -> &Model {
        let known = self.models.partition_point(|(at, _)| *at <= steps);
        &self.models[known.max(1) - 1].1
    }

    /// A state after a cut of the drive's power: the first `steps` steps, and a part of the next one.
    fn cut(&self, steps: usize, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.before.clone();
        self.steps[..steps].iter().for_each(|step| apply(&mut bytes, step));
        if let Some(next) = self.steps.get(steps) {
            apply_torn(&mut bytes, next, random);
        }
        bytes
    }

    /// A state after a crash of the machine: of the steps since the last sync each is there, is not, or is torn.
    fn crash(&self, steps: usize, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.before.clone();
        let synced = self.steps[..steps].iter().rposition(|step| matches!(step, Step::Sync)).map_or(0, |at| at + 1);
        self.steps[..synced].iter().for_each(|step| apply(&mut bytes, step));
        let chance = random.below(9);
        for step in &self.steps[synced..steps] {
            match random.below(8) {
                draw if draw < chance => apply(&mut bytes, step),
                7 => apply_torn(&mut bytes, step, random),
                _ => {}
            }
        }
        bytes
    }
}

/// Opens a state, checks it, and goes on a little. Returns what lies there then.
fn recover(bytes: Vec<u8>, model: &Model) -> Result<(Vec<u8>, Model), String> {
    let journal = Journal::without_steps(bytes);
    let drive = Drive::on(journal.clone(), DriveOptions::default()).map_err(|error| error.to_string())?;
    let drive = Arc::new(drive);
    let mut model = model.clone();
    model.settle_after_crash(&drive.handle(0))?;
    drive.observe(|device| device.check())?;
    drive.cut_power().map_err(|error| error.to_string())?;
    Ok((journal.bytes(), model))
}

/// A state that a second crash leaves, in the midst of opening what the first one left. Where it cannot be opened, the first.
fn crash_while_opened(state: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let journal = Journal::new(state.clone());
    let opened = Drive::on(journal.clone(), DriveOptions::default());
    let run = Run { before: state, steps: journal.steps(), models: Vec::new() };
    if opened.is_err() {
        return run.before;
    }
    let steps = random.below(run.steps.len() as u64 + 1) as usize;
    if random.below(2) == 0 { run.crash(steps, random) } else { run.cut(steps, random) }
}

/// Looks at `cuts` states of a device; returns the first that is wrong.
fn explore(sets: &[&str], cuts: u64, seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let (mut before, mut model) = (blank(sets), Model::new());
    let mut looked_at = 0;
    while looked_at < cuts {
        let run = run(before.clone(), model.clone(), &mut random);
        let mut last = None;
        for _ in 0..(cuts - looked_at).min(run.steps.len() as u64 / 2) {
            let steps = random.below(run.steps.len() as u64 + 1) as usize;
            let is_crash = random.below(2) == 0;
            let state = if is_crash { run.crash(steps, &mut random) } else { run.cut(steps, &mut random) };
            let state = if random.below(4) == 0 { crash_while_opened(state, &mut random) } else { state };
            // A torn step belongs to the request that is on its way.
            let model = run.model_at(steps);
            let what = if is_crash { "crash" } else { "cut" };
            let found = recover(state, model);
            last = Some(
                found.map_err(|error| format!("{sets:?}: {what} after step {steps} of run {looked_at}: {error}"))?,
            );
            looked_at += 1;
        }
        // The next run goes on from one of the states that was found.
        if let Some(state) = last {
            (before, model) = state;
        }
    }
    Ok(())
}

#[test]
fn whatever_a_crash_leaves_the_drive_holds_what_was_flushed() {
    std::thread::scope(|scope| {
        for (seed, sets) in (1..).zip(DEVICES) {
            scope.spawn(move || explore(sets, cuts(), seed).unwrap());
        }
    });
    println!("{} states of {} devices", cuts() * DEVICES.len() as u64, DEVICES.len());
}

/// Of a block's two records of erases the older one is what a crash falls back on while the newer one may be lost: so both are
/// never written between two syncs.
#[test]
fn a_block_is_not_erased_twice_between_two_syncs() {
    let mut erases = 0;
    for sets in DEVICES {
        let before = blank(sets);
        let layout = isotherm_drive::image::about(&Journal::without_steps(before.clone())).unwrap().layout;
        let journal = Journal::new(before);
        let drive = Arc::new(Drive::on(journal.clone(), DriveOptions::default()).unwrap());
        // One page again and again: what is erased is filled at once, and holds nothing that is valid.
        for version in 0..600_u32 {
            drive.handle(0).write(0, &vec![version as u8; PAGE as usize], false).unwrap();
        }
        let mut since_sync = Vec::new();
        for step in journal.steps() {
            match step {
                Step::Write { offset, data } if (layout.erases_at..layout.oob_at).contains(&offset) => {
                    let block = (offset - layout.erases_at) / (2 * data.len() as u64);
                    assert!(!since_sync.contains(&block), "{sets:?}: block {block}");
                    since_sync.push(block);
                    erases += 1;
                }
                Step::Sync => since_sync.clear(),
                _ => {}
            }
        }
    }
    assert!(erases > 500, "{erases} erases");
}
