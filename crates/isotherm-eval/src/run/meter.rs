//! A device that is in use, measured like a run: what a served drive says of itself.

use super::outcome::{Measured, result};
use super::{Policies, Replay};
use crate::heat::HeatRecorder;
use crate::recorder::Recorder;
use crate::results::{RunResult, Workload};
use crate::verdict::{Setting, Source};
use isotherm::build::{Environment, Plan};
use isotherm::device::Observe;
use isotherm::registry::SpecError;
use isotherm::stats::Snapshot;
use isotherm_sfs::SystemSpec;
use std::time::Instant;

/// Measures a device from one moment on.
pub struct Meter {
    name: String,
    spec: SystemSpec,
    seed: u64,
    plan: Plan,
    start: Snapshot,
    clock_ns: u64,
    erases_before: Vec<u32>,
    recorder: Recorder,
    pages: u64,
    began: Instant,
}

impl Meter {
    /// Begins to measure `device`, which `spec` describes with its logical size; `name` stands where runs name their trace, and
    /// requests arrive from `clock_ns` on.
    ///
    /// # Errors
    /// Anything wrong with the specification.
    pub fn new(
        device: &dyn Observe,
        spec: SystemSpec,
        seed: u64,
        name: &str,
        clock_ns: u64,
    ) -> Result<Self, SpecError> {
        Self::with_policies(device, spec, seed, name, clock_ns, &Policies::default())
    }

    /// As [`new`](Self::new), of a device that `policies` decide for.
    ///
    /// # Errors
    /// Anything wrong with the specification.
    pub fn with_policies(
        device: &dyn Observe,
        spec: SystemSpec,
        seed: u64,
        name: &str,
        clock_ns: u64,
        policies: &Policies,
    ) -> Result<Self, SpecError> {
        let Policies { placement, victim } = policies.clone();
        let plan = isotherm_sfs::plan(&spec, &Environment { seed, placement, victim, ..Environment::default() })?;
        let start = device.snapshot();
        Ok(Self {
            name: name.to_owned(),
            spec,
            seed,
            plan,
            erases_before: device.block_erases(),
            recorder: Recorder::new(&start, device.page_bytes()),
            pages: start.host.pages_written,
            start,
            clock_ns,
            began: Instant::now(),
        })
    }

    /// Begins anew: what was measured so far is left out from now on, and requests arrive from `clock_ns` on.
    pub fn restart(&mut self, device: &dyn Observe, clock_ns: u64) {
        self.start = device.snapshot();
        self.clock_ns = clock_ns;
        self.erases_before = device.block_erases();
        self.recorder = Recorder::new(&self.start, device.page_bytes());
        self.pages = self.start.host.pages_written;
        self.began = Instant::now();
    }

    /// Takes down how the device stands: called a few times a second, it gives results their curves.
    pub fn tick(&mut self, now: &Snapshot) {
        self.recorder.count(now.host.pages_written - self.pages);
        self.pages = now.host.pages_written;
        if self.recorder.window_is_full() {
            self.recorder.close_window(now);
        }
    }

    /// What was measured so far, after `requests` of the host.
    pub fn result(&self, device: &dyn Observe, requests: u64) -> RunResult {
        let end = device.snapshot();
        let elapsed_ns = self.began.elapsed().as_nanos() as u64;
        result(&Measured {
            trace: &self.name,
            seed: self.seed,
            setting: Setting {
                replay: &Replay::default(),
                source: Source::Host,
                size_given: true,
                log_fills: false,
                page_bytes: u64::from(self.plan.geometry.page_bytes()),
                touched_pages: None,
                filler_pages: 0,
                precondition_replays: Vec::new(),
                pages_before: self.start.host.pages_written,
                learns_for: self.plan.learns_for,
            },
            plan: self.plan,
            device_spec: &self.spec,
            known_rates: None,
            below: None,
            device,
            workload: Workload {
                address: "refuse".to_owned(),
                fill_share: 0.0,
                precondition: "none".to_owned(),
                precondition_pages_written: self.start.host.pages_written,
                precondition_steady: None,
                repeat: 1,
                leading_trims_dropped: 0,
                leading_trimmed_bytes_dropped: 0,
                measure_last_pages: None,
            },
            recording: self.recorder.clone().finish(&end),
            heat: HeatRecorder::new(self.plan.logical_pages, self.plan.geometry.page_bytes()).finish(),
            start: self.start.clone(),
            end,
            clock_ns: Some(self.clock_ns),
            erases_before: self.erases_before.clone(),
            mark: None,
            requests,
            ragged_share: 0.0,
            skipped_lines: 0,
            duration_ns: elapsed_ns,
            stopped: None,
            elapsed_ns,
        })
    }
}
