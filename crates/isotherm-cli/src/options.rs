//! Options that several verbs share: the device and the replay.

use crate::keys::KeyOptions;
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm::ftl::FTLS;
use isotherm::nand::timing::{TIMINGS, TimeMode};
use isotherm::registry::{Entry, PolicyName};
use isotherm::spec::{self, Given, keys_of, refuse_conflicts};
use isotherm_eval::compare::Choice;
use isotherm_eval::{Policies, ReplaySpec, RunSpec, TraceSource};
use isotherm_sfs::{NO_DEVICE, SystemSpec};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The device. Where `compare` takes several values, `run` takes one.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "The device")]
pub struct DeviceOptions {
    /// What sets one key.
    #[command(flatten)]
    pub keys: KeyOptions<SystemSpec>,
    /// Device specification to start from (TOML; `--print-config` shows every key)
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// Set one key of the specification, such as gc.victim=fifo; may be repeated (see `isotherm list parameters`)
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the specification in force as TOML, each key with its range and where its value comes from, and stop
    #[arg(long)]
    pub print_config: bool,
}

impl DeviceOptions {
    /// The specification: defaults, then the file, then `--set`, then the options; of several values the first.
    pub fn spec(&self) -> anyhow::Result<SystemSpec> {
        refuse_conflicts::<SystemSpec>(&self.given()?)?;
        let file = self.file()?;
        let parse = |sets: &[String]| {
            SystemSpec::from_toml(&file, sets).map_err(|e| match &self.spec {
                Some(path) => anyhow::Error::new(e).context(path.display().to_string()),
                None => e.into(),
            })
        };
        let has_log = self.keys.given("log") || parse(&self.set)?.log.is_some();
        let sets: Vec<String> = self.set.iter().cloned().chain(self.keys.sets()).collect();
        let mut spec = parse(&sets)?;
        self.check_has_use(&spec, has_log)?;
        for choice in self.keys.axes().iter().filter_map(|(_, axis)| axis.first()) {
            choice.apply(&mut spec);
        }
        if self.keys.given("cache-bytes") {
            self.check_has_cache(&spec)?;
        }
        Ok(spec)
    }

    /// What `--set` and the options say.
    fn given(&self) -> anyhow::Result<Vec<Given>> {
        let mut given = Vec::new();
        for set in &self.set {
            given.extend(Given::by_set::<SystemSpec>(set)?);
        }
        given.extend(self.keys.values());
        Ok(given)
    }

    /// `spec`, which [`DeviceOptions::spec`] gave, as TOML with comments.
    ///
    /// # Errors
    /// A name or a parameter of a policy that does not exist: nothing is printed then.
    pub fn config(&self, spec: &SystemSpec) -> anyhow::Result<String> {
        spec::check(spec)?;
        isotherm_sfs::check_names(spec)?;
        let mut origins: HashMap<String, String> = HashMap::new();
        if let Some(path) = &self.spec {
            let keys = keys_of::<SystemSpec>(&self.file()?)?;
            origins.extend(keys.into_iter().map(|key| (key, path.display().to_string())));
        }
        origins.extend(self.given()?.into_iter().map(|given| (given.key, given.origin)));
        let in_force = |key: &str| of_preset(key, &spec.timing.preset).map(|ns| ns.to_string());
        Ok(spec::with_comments(spec, |key| origins.get(key).cloned(), in_force)?)
    }

    /// Options that the device, or any that is compared, has no use for are slips. `spec` is what the file, `--set` and the
    /// options of keys say; `has_log`, whether the file, `--set` or `--log` name a log.
    fn check_has_use(&self, spec: &SystemSpec, has_log: bool) -> anyhow::Result<()> {
        if has_log && self.keys.given("ftl") {
            let ftls = self.joined("ftl.name");
            bail!("--ftl: under a log the FTL is what lies below; write --below {ftls} in place of --ftl {ftls}");
        }
        let of_log = [
            ("--below", self.keys.given("below")),
            ("--utilisation", self.keys.given("utilisation")),
            ("--fill-mode", self.keys.given("fill-mode")),
            ("--drive", self.keys.given("drive")),
        ];
        refuse(!has_log, &of_log, "there is no log on top; name one with --log, or leave it out")?;
        let of_dram = [("--buffer", self.keys.given("buffer")), ("--split", self.keys.given("split"))];
        refuse(
            spec.dram.size.is_none(),
            &of_dram,
            "there is no DRAM to share; give its size with --dram, or leave it out",
        )?;
        let of_map = [("--cache-bytes", self.keys.given("cache-bytes"))];
        refuse(
            spec.dram.size.is_some(),
            &of_map,
            "beside --dram the map has its share of that (--split); leave one out",
        )?;
        let of_queue =
            [("--set timing.queue_depth", self.given()?.iter().any(|given| given.key == "timing.queue_depth"))];
        refuse(
            spec.timing.mode != TimeMode::Closed,
            &of_queue,
            "requests are outstanding in timing.mode closed alone; set that too, or leave it out",
        )?;
        let below = [
            ("--timing", self.keys.given("timing")),
            ("--pages-per-block", self.keys.given("pages-per-block")),
            ("--dram", self.keys.given("dram")),
            ("--buffer", self.keys.given("buffer")),
            ("--split", self.keys.given("split")),
        ];
        refuse(self.is_over_nothing(spec), &below, NOTHING_BELOW)
    }

    /// Whether there is a log, with no device below it in any combination.
    fn is_over_nothing(&self, spec: &SystemSpec) -> bool {
        let section = spec.log.clone().or_else(|| self.keys.given("log").then(Default::default));
        let is_none = |choice: &Choice| matches!(choice, Choice::Below(policy) if policy.name == NO_DEVICE);
        let below = self.choices("log.below");
        section
            .is_some_and(|log| if below.is_empty() { log.below.name == NO_DEVICE } else { below.iter().all(is_none) })
    }

    /// Whether the file or `--set` says anything of `key`.
    pub fn gives(&self, key: &str) -> anyhow::Result<bool> {
        let is_key = |given: &Given| given.key == key;
        Ok(self.given()?.iter().any(is_key) || keys_of::<SystemSpec>(&self.file()?)?.iter().any(|given| given == key))
    }

    /// Whether anything is said of the device at all.
    pub fn is_given(&self) -> anyhow::Result<bool> {
        Ok(self.spec.is_some() || !self.given()?.is_empty())
    }

    /// The text of the specification's file; empty without one.
    fn file(&self) -> anyhow::Result<String> {
        let Some(path) = &self.spec else { return Ok(String::new()) };
        std::fs::read_to_string(path)
            .with_context(|| format!("{}: cannot read the specification; check the path", path.display()))
    }

    /// The choices that were given for a key.
    pub fn choices(&self, key: &str) -> Vec<Choice> {
        self.keys.axes().into_iter().find(|axis| axis.0 == key).map(|axis| axis.1).unwrap_or_default()
    }

    /// The values that were given for a key, as they are typed.
    fn joined(&self, key: &str) -> String {
        self.choices(key).iter().map(Choice::text).collect::<Vec<_>>().join(",")
    }

    /// The specification of the one device that `run` takes.
    pub fn single(&self) -> anyhow::Result<SystemSpec> {
        if let Some((row, values)) = self.keys.several() {
            let option = row.option.unwrap_or(row.key);
            bail!("--{option}: {values} values are given where a run has one; use isotherm compare for several");
        }
        let spec = self.spec()?;
        let of_device = ["placement", "victim", "op", "spare"].map(|option| (option, self.keys.given(option)));
        let of_device = of_device.map(|(option, given)| (format!("--{option}"), given));
        refuse(self.is_over_nothing(&spec), &of_device, NOTHING_BELOW)?;
        Ok(spec)
    }

    /// In a sweep, sizes of a cache may well meet an FTL that has none. On the command line that is a slip, unless another FTL
    /// that is compared has one.
    fn check_has_cache(&self, spec: &SystemSpec) -> anyhow::Result<()> {
        let in_force = spec.log.as_ref().map_or(&spec.ftl.name, |log| &log.below);
        let given = self.choices(if self.keys.given("below") { "log.below" } else { "ftl.name" });
        let name = |choice: &Choice| match choice {
            Choice::Below(policy) | Choice::Ftl(policy) => policy.clone(),
            _ => in_force.clone(),
        };
        let names: Vec<PolicyName> =
            if given.is_empty() { vec![in_force.clone()] } else { given.iter().map(name).collect() };
        let has_cache = |entry: &Entry<_>| entry.parameters.iter().any(|parameter| parameter.key == "cache");
        let has_none = |policy: &PolicyName| {
            let name = &policy.name;
            FTLS.iter().any(|entry| entry.name == name && !has_cache(entry)) || name == NO_DEVICE
        };
        // A name that is unknown is told later, where it is looked up.
        if names.iter().all(has_none) {
            let with: Vec<_> = FTLS.iter().filter(|entry| has_cache(entry)).map(|entry| entry.name).collect();
            bail!(
                "--cache-bytes: the FTL \"{}\" has no cache of its map; choose {}, or leave it out",
                names.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
                with.join(" or ")
            );
        }
        Ok(())
    }
}

/// Why what describes a device is refused where there is none.
const NOTHING_BELOW: &str = "nothing lies below the log; name an FTL with --below, or leave it out";

/// Refuses the first of `options` that is given, if `idle`: `why` says why, and what would be right.
fn refuse(idle: bool, options: &[(impl Display, bool)], why: &str) -> anyhow::Result<()> {
    match options.iter().find(|(_, given)| idle && *given) {
        Some((option, _)) => bail!("{option}: {why}"),
        None => Ok(()),
    }
}

/// The latency that a preset has for a key, if it is one of latencies, in nanoseconds.
fn of_preset(key: &str, preset: &str) -> Option<u64> {
    let latency = TIMINGS.iter().find(|entry| entry.name == preset)?.build.latency;
    match key {
        "timing.read_ns" => Some(latency.read_ns),
        "timing.program_ns" => Some(latency.program_ns),
        "timing.erase_ns" => Some(latency.erase_ns),
        "timing.transfer_ns" => Some(latency.transfer_ns),
        _ => None,
    }
}

/// How the trace is brought to the device.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "The replay")]
pub struct ReplayOptions {
    /// What sets one key.
    #[command(flatten)]
    keys: KeyOptions<ReplaySpec>,
    /// Seed of every random choice of the device and its preconditioning; a synthetic workload has its own (synth:...,seed=2)
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = seed)]
    pub seed: u64,
}

/// A seed, for the parsers of options.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

impl ReplayOptions {
    /// A run of `trace` on `device`.
    pub fn run_spec(&self, trace: TraceSource, device: SystemSpec) -> anyhow::Result<RunSpec> {
        let ReplaySpec { replay } = spec::parse("", &self.keys.sets().collect::<Vec<_>>())?;
        Ok(RunSpec { trace, device, replay, seed: self.seed, policies: Policies::default() })
    }
}

/// The words after the name of the program. A program that carries the command along has other words of its own.
static WORDS: OnceLock<Vec<String>> = OnceLock::new();

/// Remembers the words after the name of the program, for [`command_line`].
pub fn remember(words: &[OsString]) {
    // A second command in the same process would be another program's business.
    let _ = WORDS.set(words.iter().map(|word| word.to_string_lossy().into_owned()).collect());
}

/// The command line, to be repeated by whoever reads the results.
pub fn command_line() -> String {
    let quote = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    let words = WORDS.get().into_iter().flatten().cloned().map(quote);
    ["isotherm".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Where a live page is served. Whoever reaches the place can read the page, so that other machines must not.
pub fn page_place(text: &str) -> Result<SocketAddr, String> {
    let place: SocketAddr =
        text.parse().map_err(|_| "write an address with a port, such as 127.0.0.1:8080".to_owned())?;
    if place.ip().to_canonical().is_loopback() {
        return Ok(place);
    }
    let port = place.port();
    Err(format!("other machines reach it, and could read the page; write 127.0.0.1:{port} or [::1]:{port}"))
}
