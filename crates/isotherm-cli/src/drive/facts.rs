//! What a served drive says of itself: answers on the control socket.

use isotherm_drive::control::Answer;
use isotherm_drive::{Drive, smart};
use isotherm_eval::{Meter, RunResult, SystemSpec, files};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// How serving ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// In order: by a signal, or because somebody asked for it.
    InOrder,
    /// As a loss of power.
    PowerCut,
}

/// The wish that serving ends.
pub struct End {
    /// How.
    pub how: Ending,
    /// Who asked, and hears whether the drive was shut down.
    pub told: Option<Sender<Result<(), String>>>,
}

/// A drive with the meter on it.
pub struct Facts {
    drive: Arc<Drive>,
    name: String,
    meter: Mutex<Meter>,
    requests_before: Mutex<u64>,
}

impl Facts {
    /// Begins to measure a drive.
    ///
    /// # Errors
    /// Anything wrong with its specification.
    pub fn new(drive: Arc<Drive>, name: String) -> anyhow::Result<Self> {
        let spec = SystemSpec::from(drive.spec().clone());
        let meter = drive.observe(|device| Meter::new(device, spec, drive.seed(), &name, drive.clock_ns()))?;
        Ok(Self { drive, name, meter: Mutex::new(meter), requests_before: Mutex::new(0) })
    }

    /// Takes down how the drive stands: called a few times a second.
    pub fn tick(&self) {
        let snapshot = self.drive.observe(|device| device.snapshot());
        self.meter.lock().unwrap_or_else(PoisonError::into_inner).tick(&snapshot);
    }

    /// Everything counted since serving began, or the counters were reset.
    pub fn result(&self) -> RunResult {
        let requests = self.drive.requests() - *self.requests_before.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        self.drive.observe(|device| meter.result(device, requests))
    }

    /// The same as JSON.
    pub fn stats(&self) -> Value {
        serde_json::from_str(&files::to_json(&self.result())).unwrap_or_default()
    }

    /// The name that the drive is served by.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn reset(&self) {
        *self.requests_before.lock().unwrap_or_else(PoisonError::into_inner) = self.drive.requests();
        self.drive.reset_latencies();
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        self.drive.observe(|device| meter.restart(device, self.drive.clock_ns()));
    }

    /// Answers a question from the control socket; `end` hears how serving is to end.
    pub fn answer(&self, question: &Value, end: &Sender<End>) -> Answer {
        let drive = &self.drive;
        let number =
            |key: &str| question[key].as_u64().ok_or_else(|| format!("\"{key}\" is missing, or no whole number"));
        match question["verb"].as_str() {
            Some("smart-log") => Ok(smart::smart_log(drive)),
            Some("ocp-smart-add-log") => Ok(smart::ocp_smart_add_log(drive)),
            Some("fdp-stats") => Ok(smart::fdp_stats(drive)),
            Some("fdp-configs") => Ok(smart::fdp_configs(drive)),
            Some("fdp-usage") => Ok(smart::fdp_usage(drive)),
            Some("stats") => Ok(self.stats()),
            Some("reset-stats") => {
                self.reset();
                Ok(json!({}))
            }
            Some("trim") => {
                let (offset, length) = (number("offset")?, number("length")?);
                drive.trim(offset, length).map(|()| json!({})).map_err(|error| error.to_string())
            }
            Some("snapshot") => {
                let target = question["target"].as_str().ok_or("\"target\" is missing")?;
                drive.snapshot_to(Path::new(target)).map(|()| json!({})).map_err(|error| format!("{target}: {error}"))
            }
            Some("power-cut") => {
                drive.cut_power().map_err(|error| error.to_string())?;
                let _ = end.send(End { how: Ending::PowerCut, told: None });
                Ok(json!({}))
            }
            Some("stop") => {
                let (tell, told) = channel();
                let _ = end.send(End { how: Ending::InOrder, told: Some(tell) });
                // Where it ends already, whoever asked first hears how.
                told.recv().unwrap_or(Ok(())).map(|()| json!({}))
            }
            Some(other) => Err(format!("\"{other}\" is no question that a drive answers")),
            None => Err("a question has a \"verb\"".to_owned()),
        }
    }
}
