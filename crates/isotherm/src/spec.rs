//! The specification of a simulated device: what a TOML file, `--set` and the command line's options fill in.
//!
//! Unknown keys are errors. Every key has a default, so that an empty file is a valid specification.

use crate::address::Striping;
use crate::blocks::AgeBase;
use crate::nand::timing::{TimeMode, TimingOptions};
use crate::quantity::{ByteSize, Share};
use crate::registry::{PolicyName, SpecError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A simulated device and its policies.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct DeviceSpec {
    /// Capacity and shape of the array.
    pub device: DeviceSection,
    /// The flash translation layer.
    pub ftl: FtlSection,
    /// DRAM of the controller.
    pub dram: DramSection,
    /// Which stream a page goes to.
    pub placement: PlacementSection,
    /// Cleaning.
    pub gc: GcSection,
    /// Static wear levelling.
    pub wear: WearSection,
    /// Latencies and the queueing model.
    pub timing: TimingSection,
}

/// Capacity and shape of the array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeviceSection {
    /// What the host sees. Default: the span of the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_size: Option<ByteSize>,
    /// Over-provisioning (T-U)/U; above 0, at most 10. At most one of this and `spare` is given; default 7 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_provisioning: Option<Share>,
    /// Spare factor (T-U)/T; above 0, below 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare: Option<Share>,
    /// Page size: a power of two from 512 B to 16 MiB.
    pub page_size: ByteSize,
    /// Pages of one erase block (of one plane): a power of two, 2 to 32768.
    pub pages_per_block: u32,
    /// Channels: a power of two.
    pub channels: u16,
    /// Dies on each channel: a power of two.
    pub dies_per_channel: u16,
    /// Planes of each die: a power of two.
    pub planes_per_die: u16,
    /// Superblocks striped over all planes, or one open block per die.
    pub striping: Striping,
    /// OOB bytes of each page.
    pub spare_bytes: u16,
    /// Erases that a block endures before it fails; 0 for no limit.
    pub endurance: u32,
    /// Keep sequence numbers and tombstone contents, so that the map can be rebuilt from OOB (8 more bytes a page).
    pub recovery: bool,
}

impl Default for DeviceSection {
    fn default() -> Self {
        Self {
            logical_size: None,
            over_provisioning: None,
            spare: None,
            page_size: ByteSize(4096),
            pages_per_block: 64,
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            striping: Striping::Superblock,
            spare_bytes: 128,
            endurance: 0,
            recovery: false,
        }
    }
}

/// The flash translation layer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FtlSection {
    /// Registry name with parameters.
    pub name: PolicyName,
}

impl Default for FtlSection {
    fn default() -> Self {
        Self { name: PolicyName::plain("page") }
    }
}

/// DRAM of the controller.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DramSection {
    /// All of it (`--dram`): write buffer and map share it. Without, there is no buffer and the FTL takes its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<ByteSize>,
    /// Policy of the write buffer (`--buffer`), or `none`. Default: `lru` where `size` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<PolicyName>,
    /// How a map that can be resized shares the DRAM with the buffer (`--split`). Default: half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<PolicyName>,
    /// The drive can write its buffer out when power fails, so that flushes need not.
    pub power_loss_protection: bool,
    /// What a demand-paged map may use (`--cache-bytes`). Default: the FTL's own `cache` parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<ByteSize>,
}

impl DramSection {
    /// Whether writes are buffered.
    pub fn has_buffer(&self) -> bool {
        self.size.is_some() && self.buffer.as_ref().is_none_or(|policy| policy.name != "none")
    }
}

/// Which stream a page goes to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlacementSection {
    /// Registry name with parameters.
    pub name: PolicyName,
}

impl Default for PlacementSection {
    fn default() -> Self {
        Self { name: PolicyName::plain("single") }
    }
}

/// Cleaning.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GcSection {
    /// Victim policy, with parameters.
    pub victim: PolicyName,
    /// Free blocks that the collector keeps, on top of T. Default: the streams that collections write to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<u32>,
    /// What age counts from.
    pub age: AgeBase,
    /// Clean in idle time too (needs a queueing time model, which knows when the device is idle).
    pub idle: bool,
}

impl Default for GcSection {
    fn default() -> Self {
        Self { victim: PolicyName::plain("greedy"), floor: None, age: AgeBase::Closed, idle: false }
    }
}

/// Static wear levelling.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WearSection {
    /// Move the content of the least worn block when it falls `threshold` erases behind the most worn one.
    pub leveling: bool,
    /// Allowed difference of erase counts, at least 1.
    pub threshold: u32,
}

impl Default for WearSection {
    fn default() -> Self {
        Self { leveling: true, threshold: 256 }
    }
}

/// Latencies and the queueing model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimingSection {
    /// Named set of latencies, see `isotherm list timings`.
    pub preset: String,
    /// Time model.
    pub mode: TimeMode,
    /// Requests outstanding in mode `closed`, 1 to 65536.
    pub queue_depth: u32,
    /// Copy pages inside the array (no transfer); otherwise each copy crosses the channel twice.
    pub copy_back: bool,
    /// Cell read, overriding the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<u64>,
    /// Cell program, overriding the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_ns: Option<u64>,
    /// Block erase, overriding the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erase_ns: Option<u64>,
    /// Transfer of one page over the channel, overriding the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer_ns: Option<u64>,
}

impl Default for TimingSection {
    fn default() -> Self {
        Self {
            preset: "mlc".to_owned(),
            mode: TimeMode::Serial,
            queue_depth: 32,
            copy_back: true,
            read_ns: None,
            program_ns: None,
            erase_ns: None,
            transfer_ns: None,
        }
    }
}

impl TimingSection {
    /// What the clock needs beside the latencies.
    pub fn options(&self) -> TimingOptions {
        TimingOptions { mode: self.mode, queue_depth: self.queue_depth, copy_back: self.copy_back }
    }
}

/// Sections that may be given as their main key alone: `ftl = "page"`.
const MAIN_KEYS: [(&str, &str); 2] = [("ftl", "name"), ("placement", "name")];

impl DeviceSpec {
    /// Parses a TOML text and applies `sets` (`gc.victim=fifo`) over it.
    ///
    /// # Errors
    /// Broken TOML (with line and column), unknown keys, values out of range.
    pub fn from_toml(text: &str, sets: &[String]) -> Result<Self, SpecError> {
        parse(text, sets, &[])
    }

    /// The specification as TOML, every key in force.
    pub fn to_toml(&self) -> String {
        to_toml(self)
    }
}

/// A specification that holds the sections of [`DeviceSpec`], and perhaps others, from a TOML text with `sets` over it.
/// `main_keys` adds to the sections that may be given as their main key alone.
///
/// # Errors
/// Broken TOML (with line and column), unknown keys, values out of range.
pub fn parse<T: DeserializeOwned>(text: &str, sets: &[String], main_keys: &[(&str, &str)]) -> Result<T, SpecError> {
    let mut table = table(text, sets)?;
    for (section, key) in MAIN_KEYS.iter().chain(main_keys) {
        if let Some(value @ toml::Value::String(_)) = table.get(*section).cloned() {
            let inner = toml::Table::from_iter([((*key).to_owned(), value)]);
            table.insert((*section).to_owned(), toml::Value::Table(inner));
        }
    }
    toml::Value::Table(table).try_into().map_err(broken)
}

/// Whether `text` or `sets` say anything of `section`.
///
/// # Errors
/// Broken TOML, or a set without a key.
pub fn gives(text: &str, sets: &[String], section: &str) -> Result<bool, SpecError> {
    Ok(table(text, sets)?.contains_key(section))
}

/// A specification as TOML, every key in force.
pub fn to_toml(spec: &impl Serialize) -> String {
    toml::to_string_pretty(spec).expect("every field of a specification has a TOML form")
}

fn broken(error: toml::de::Error) -> SpecError {
    SpecError::new("spec", error.to_string().trim().replace('\n', " "), "see --print-config for the keys")
}

/// What a TOML text says, with `sets` over it.
fn table(text: &str, sets: &[String]) -> Result<toml::Table, SpecError> {
    let mut table: toml::Table = toml::from_str(text).map_err(broken)?;
    sets.iter().try_for_each(|set| apply_set(&mut table, set))?;
    Ok(table)
}

/// Sets one dotted key: numbers and booleans are taken as such, anything else as text. `KEY+=name=value` adds a parameter to
/// the policy that the key names, so that sets of several origins can each say a part.
fn apply_set(table: &mut toml::Table, set: &str) -> Result<(), SpecError> {
    let wrong = || SpecError::new(format!("--set {set}"), "not KEY=VALUE", "write for example --set gc.victim=fifo");
    let (path, text) = set.split_once('=').ok_or_else(wrong)?;
    let mut parts: Vec<&str> = path.trim().split('.').collect();
    let last = parts.pop().filter(|p| !p.is_empty()).ok_or_else(wrong)?;
    let mut at = table;
    for part in parts {
        at = at.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new())).as_table_mut().ok_or_else(
            || SpecError::new(format!("--set {set}"), format!("\"{part}\" is not a section"), "see --print-config"),
        )?;
    }
    let text = text.trim();
    if let Some(key) = last.strip_suffix('+') {
        let named = at.get_mut(key).filter(|value| value.is_str()).ok_or_else(|| {
            SpecError::new(
                format!("--set {set}"),
                format!("\"{key}\" names no policy yet"),
                "set the key first, with =",
            )
        })?;
        let name = named.as_str().expect("a text was asked for");
        *named = format!("{name}{}{text}", if name.contains(':') { "," } else { ":" }).into();
        return Ok(());
    }
    let value = match (text.parse::<i64>(), text.parse::<f64>(), text.parse::<bool>()) {
        (Ok(whole), _, _) => toml::Value::Integer(whole),
        (_, Ok(real), _) if real.is_finite() => toml::Value::Float(real),
        (_, _, Ok(truth)) => toml::Value::Boolean(truth),
        _ => toml::Value::String(text.to_owned()),
    };
    at.insert(last.to_owned(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_spec_is_the_default_and_prints_back() {
        let spec = DeviceSpec::from_toml("", &[]).unwrap();
        assert_eq!(spec, DeviceSpec::default());
        assert_eq!(DeviceSpec::from_toml(&spec.to_toml(), &[]).unwrap(), spec);
    }

    #[test]
    fn sets_override_the_file() {
        let sets = [
            "gc.victim=d_choices:d=10".to_owned(),
            "device.page_size=8KiB".to_owned(),
            "wear.leveling=false".to_owned(),
        ];
        let spec = DeviceSpec::from_toml("placement = \"epoch:length=2\"\n[gc]\nvictim = \"fifo\"\n", &sets).unwrap();
        assert_eq!(spec.gc.victim.to_string(), "d_choices:d=10");
        assert_eq!(spec.device.page_size.0, 8192);
        assert_eq!(spec.placement.name.to_string(), "epoch:length=2");
        assert!(!spec.wear.leveling);
    }

    #[test]
    fn sets_add_parameters_to_a_named_policy() {
        let sets = |sets: &[&str]| sets.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let text = "[placement]\nname = \"dac\"\n";
        let spec =
            DeviceSpec::from_toml(text, &sets(&["placement.name+=regions=3", "placement.name+=young=2"])).unwrap();
        assert_eq!(spec.placement.name.to_string(), "dac:regions=3,young=2");
        let error = DeviceSpec::from_toml(text, &sets(&["gc.victim+=d=3"])).unwrap_err().to_string();
        assert!(error.contains("gc.victim+=d=3") && error.contains("names no policy yet"), "{error}");
    }

    #[test]
    fn unknown_keys_are_errors_that_name_the_key() {
        let error = DeviceSpec::from_toml("[gc]\nvictm = \"fifo\"\n", &[]).unwrap_err();
        assert!(error.to_string().contains("victm"), "{error}");
        assert!(DeviceSpec::from_toml("", &["gc.victm=fifo".to_owned()]).is_err());
        assert!(DeviceSpec::from_toml("", &["gc.victim".to_owned()]).is_err());
    }
}
