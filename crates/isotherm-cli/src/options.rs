//! Options that several verbs share: the device and the replay.

use crate::keys::KeyOptions;
use anyhow::{Context as _, bail};
use clap::Args;
use isotherm::ftl::FTLS;
use isotherm::quantity::{ByteSize, Share};
use isotherm::registry::{Entry, PolicyName, SpecError, parse_integer};
use isotherm_eval::compare::{Choice, PolicyList, Spare};
use isotherm_eval::{AddressMode, Precondition, Replay, RunSpec, TraceSource};
use isotherm_sfs::{NO_DEVICE, SystemSpec};
use std::path::PathBuf;

/// The device, but for placement, cleaning and over-provisioning. Where `compare` takes several policies, `run` takes one.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "The device")]
pub struct DeviceOptions {
    /// Flash translation layer, in `compare` several (see `isotherm list ftls`) [default: page]
    #[arg(long, value_name = "NAME[:key=value,...]")]
    pub ftl: Option<PolicyList>,
    /// Policy of the write buffer, or none; in `compare` several (see `isotherm list buffers`) [default: lru where --dram is given]
    #[arg(long, value_name = "NAME[:key=value,...]")]
    pub buffer: Option<PolicyList>,
    /// Share of the DRAM that the map gets: 0% to 100%, or a rule that adapts it; in `compare` several (see `isotherm list
    /// splits`) [default: 50%]
    #[arg(long, value_name = "SHARE|NAME")]
    pub split: Option<PolicyList>,
    /// Log-structured file system on top, in `compare` several (see `isotherm list logs`); in_place is the trace as it is on a
    /// disk of the same size
    #[arg(long, value_name = "NAME[:key=value,...]")]
    pub log: Option<PolicyList>,
    /// FTL below the log, in `compare` several, or none for a device that costs nothing [default: none]
    #[arg(long, value_name = "none|FTL")]
    pub below: Option<PolicyList>,
    /// What sets one key.
    #[command(flatten)]
    pub keys: KeyOptions,
    /// Device specification to start from (TOML; `--print-config` shows every key)
    #[arg(long, value_name = "FILE")]
    pub spec: Option<PathBuf>,
    /// Set one key of the specification, such as gc.victim=fifo; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Print the specification in force as TOML, and stop
    #[arg(long)]
    pub print_config: bool,
}

impl DeviceOptions {
    /// The specification: defaults, then the file, then `--set`, then the options.
    pub fn spec(&self) -> anyhow::Result<SystemSpec> {
        let file = self.file()?;
        let parse = |sets: &[String]| {
            SystemSpec::from_toml(&file, sets).map_err(|e| match &self.spec {
                Some(path) => anyhow::Error::new(e).context(path.display().to_string()),
                None => e.into(),
            })
        };
        let lists = [
            ("dram.buffer", &self.buffer),
            ("dram.split", &self.split),
            ("ftl.name", &self.ftl),
            ("log.name", &self.log),
            ("log.below", &self.below),
        ];
        let lists = lists.into_iter().map(|(key, list)| (key, list.as_ref().map(|list| joined(&list.0))));
        refuse_twice(&self.set, &lists.chain(self.keys.values()).collect::<Vec<_>>())?;
        let has_log = self.log.is_some() || parse(&self.set)?.log.is_some();
        let sets: Vec<String> = self.set.iter().cloned().chain(self.keys.sets()).collect();
        let mut spec = parse(&sets)?;
        self.check_has_use(&spec, has_log)?;
        for choice in self.axes().iter().filter_map(|axis| axis.first()) {
            choice.apply(&mut spec);
        }
        if self.keys.given("cache-bytes") {
            self.check_has_cache(&spec)?;
        }
        Ok(spec)
    }

    /// Options that the device, or any that is compared, has no use for are slips. `spec` is what the file, `--set` and the
    /// options of keys say; `has_log`, whether the file, `--set` or `--log` name a log.
    fn check_has_use(&self, spec: &SystemSpec, has_log: bool) -> anyhow::Result<()> {
        if let Some(ftls) = self.ftl.as_ref().filter(|_| has_log) {
            let ftls = joined(&ftls.0);
            bail!("--ftl: under a log the FTL is what lies below; write --below {ftls} in place of --ftl {ftls}");
        }
        let of_log = [
            ("--below", self.below.is_some()),
            ("--utilisation", self.keys.given("utilisation")),
            ("--fill-mode", self.keys.given("fill-mode")),
            ("--drive", self.keys.given("drive")),
        ];
        refuse(!has_log, &of_log, "there is no log on top; name one with --log, or leave it out")?;
        let of_dram = [("--buffer", self.buffer.is_some()), ("--split", self.split.is_some())];
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
        let below = [
            ("--timing", self.keys.given("timing")),
            ("--pages-per-block", self.keys.given("pages-per-block")),
            ("--dram", self.keys.given("dram")),
            ("--buffer", self.buffer.is_some()),
            ("--split", self.split.is_some()),
        ];
        refuse(self.is_over_nothing(spec), &below, NOTHING_BELOW)
    }

    /// Whether there is a log, with no device below it.
    pub fn is_over_nothing(&self, spec: &SystemSpec) -> bool {
        let section = spec.log.clone().or_else(|| self.log.is_some().then(Default::default));
        let none = |policy: &PolicyName| policy.name == NO_DEVICE;
        section.is_some_and(|log| self.below.as_ref().map_or_else(|| none(&log.below), |list| list.0.iter().all(none)))
    }

    /// Whether the file or `--set` says anything of `section`.
    pub fn gives(&self, section: &str) -> anyhow::Result<bool> {
        Ok(isotherm::spec::gives(&self.file()?, &self.set, section)?)
    }

    /// The text of the specification's file; empty without one.
    fn file(&self) -> anyhow::Result<String> {
        let Some(path) = &self.spec else { return Ok(String::new()) };
        std::fs::read_to_string(path)
            .with_context(|| format!("{}: cannot read the specification; check the path", path.display()))
    }

    /// The policies that were given, axis by axis.
    pub fn axes(&self) -> Vec<Vec<Choice>> {
        let axis = |list: &Option<PolicyList>, choice: fn(PolicyName) -> Choice| {
            list.iter().flat_map(|list| list.0.iter().cloned().map(choice)).collect()
        };
        vec![
            axis(&self.log, Choice::Log),
            axis(&self.below, Choice::Below),
            axis(&self.ftl, Choice::Ftl),
            axis(&self.buffer, Choice::Buffer),
            axis(&self.split, Choice::Split),
        ]
    }

    /// The specification of the one device that `run` takes.
    pub fn single(&self) -> anyhow::Result<SystemSpec> {
        let options = ["--log", "--below", "--ftl", "--buffer", "--split"];
        if let Some((option, axis)) = options.iter().zip(self.axes()).find(|(_, axis)| axis.len() > 1) {
            bail!("{option}: {} policies are given where a run has one; use isotherm compare for several", axis.len());
        }
        self.spec()
    }

    /// In a sweep, sizes of a cache may well meet an FTL that has none. On the command line that is a slip, unless another FTL
    /// that is compared has one.
    fn check_has_cache(&self, spec: &SystemSpec) -> anyhow::Result<()> {
        let in_force = [spec.log.as_ref().map_or(&spec.ftl.name, |log| &log.below).clone()];
        let given = self.below.as_ref().or(self.ftl.as_ref());
        let names = given.map_or(in_force.as_slice(), |list| &list.0);
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
                joined(names),
                with.join(" or ")
            );
        }
        Ok(())
    }
}

/// Refuses a key that `--set` and the key's own option give different values. `given` holds keys and what their options say.
pub fn refuse_twice(sets: &[String], given: &[(&str, Option<String>)]) -> anyhow::Result<()> {
    for (key, value) in sets.iter().filter_map(|set| set.split_once('=')) {
        let is_same = |full: &str| full == key.trim() || full.strip_suffix(".name") == Some(key.trim());
        let Some((key, Some(other))) = given.iter().find(|(full, _)| is_same(full)) else { continue };
        // Sizes and shares have several forms.
        let form = |text: &str| match (text.parse::<ByteSize>(), text.parse::<Share>()) {
            (Ok(size), _) => size.to_string(),
            (_, Ok(share)) => share.to_string(),
            _ => text.to_owned(),
        };
        if form(value.trim()) != form(other) {
            bail!("{key} is {other} by its option and {} by --set; give one of them", value.trim());
        }
    }
    Ok(())
}

/// Why what describes a device is refused where there is none.
pub const NOTHING_BELOW: &str = "nothing lies below the log; name an FTL with --below, or leave it out";

/// Refuses the first of `options` that is given, if `idle`: `why` says why, and what would be right.
pub fn refuse(idle: bool, options: &[(&str, bool)], why: &str) -> anyhow::Result<()> {
    match options.iter().find(|(_, given)| idle && *given) {
        Some((option, _)) => bail!("{option}: {why}"),
        None => Ok(()),
    }
}

/// Policies as they are typed.
pub fn joined(policies: &[PolicyName]) -> String {
    policies.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// How the trace is brought to the device.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "The replay")]
pub struct ReplayOptions {
    /// How full the drive is before the run: pages that the trace does not touch are written once, and never again, until they
    /// and the trace's take this share of the logical capacity
    #[arg(long, value_name = "SHARE", default_value = "0%", allow_hyphen_values = true)]
    pub fill: Share,
    /// What is written before the measured run: none, sequential, random (sequential, then uniform overwrites until write
    /// amplification is steady) or trace (the trace itself until steady)
    #[arg(long, value_name = "HOW", default_value = "none", value_parser = parse_precondition)]
    pub precondition: Precondition,
    /// Replay the trace N times
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true)]
    pub repeat: u32,
    /// Report the last N host page writes beside the whole run; the verdict is about them
    #[arg(long, value_name = "N", value_parser = parse_count, allow_hyphen_values = true)]
    pub measure_last: Option<u64>,
    /// Addresses past the device's end: refuse them, wrap them (modulo the size), or compact the touched pages densely
    #[arg(long, value_name = "HOW", default_value = "refuse", value_parser = parse_address)]
    pub address: AddressMode,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true)]
    pub seed: u64,
}

impl ReplayOptions {
    /// A run of `trace` on `device`.
    pub fn run_spec(&self, trace: TraceSource, device: SystemSpec) -> RunSpec {
        let replay = Replay {
            address: self.address,
            fill: self.fill,
            precondition: self.precondition,
            repeat: self.repeat,
            measure_last: self.measure_last,
        };
        RunSpec { trace, device, replay, seed: self.seed }
    }
}

fn parse_precondition(text: &str) -> Result<Precondition, String> {
    let all = [Precondition::None, Precondition::Sequential, Precondition::Random, Precondition::Trace];
    choose(text, &all, Precondition::name)
}

fn parse_address(text: &str) -> Result<AddressMode, String> {
    choose(text, &[AddressMode::Refuse, AddressMode::Wrap, AddressMode::Compact], AddressMode::name)
}

fn choose<T: Copy>(text: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T, String> {
    let names: Vec<_> = all.iter().map(|&t| name(t)).collect();
    all.iter().copied().find(|&t| name(t) == text).ok_or_else(|| format!("choose from {}", names.join(", ")))
}

fn parse_count(text: &str) -> Result<u64, String> {
    parse_integer(text).ok_or_else(|| "give a whole number, such as 4000000, 4M or 4Mi".to_owned())
}

/// Over-provisioning as given: `--op` or `--spare`, one of them.
pub fn spare(op: Option<Share>, spare: Option<Share>) -> Option<Spare> {
    op.map(Spare::OverProvisioning).or(spare.map(Spare::SpareFactor))
}

/// A comma list of shares.
pub fn shares(option: &str, text: &str) -> Result<Vec<Share>, SpecError> {
    let parse = |part: &str| part.parse().map_err(|e: String| SpecError::new(option, e, "write for example 7%,15%"));
    text.split(',').map(str::trim).filter(|p| !p.is_empty()).map(parse).collect()
}

/// The command line, to be repeated by whoever reads the results.
pub fn command_line() -> String {
    let quote = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+@".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    };
    let words = std::env::args().skip(1).map(quote);
    ["isotherm".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
