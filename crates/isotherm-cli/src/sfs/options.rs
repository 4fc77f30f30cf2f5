//! Mount options: what stands behind `-o`.

use anyhow::{Context as _, bail};
use isotherm::quantity::ByteSize;
use isotherm_fs::log::LogSettings;
use isotherm_fs::tree::AccessTimes;
use isotherm_fs::volume::Intervals;
use std::time::Duration;

/// What a mount was told.
pub struct MountOptions {
    pub settings: LogSettings,
    pub intervals: Intervals,
    pub access_times: AccessTimes,
    pub allow_other: Option<bool>,
    /// A volume that is mounted already is to be read-only, or writable again.
    pub remount: bool,
    pub privileged: bool,
    pub writeback: bool,
}

/// The options, for `--help` and for whoever mistypes one.
pub const HELP: &str = "ro, rw, noatime, relatime, log=sfs|lfs, groups=, criterion=, victim=, scale=, defer=, clean_at=, commit=SECONDS, \
                        checkpoint=SECONDS, cache=BYTES, dirty=BYTES, discard, nodiscard, writeback, allow_other, suid, dev, nosuid, nodev, remount";

/// Parameters that the log itself reads.
const OF_THE_LOG: &[&str] =
    &["groups", "criterion", "victim", "scale", "empty", "distinct", "sample", "defer", "clean_at"];

impl MountOptions {
    /// Reads lists of options, separated by commas.
    pub fn parse(lists: &[String]) -> anyhow::Result<Self> {
        let mut log = "sfs";
        let mut parameters: Vec<&str> = Vec::new();
        let mut intervals = Intervals::default();
        let mut access_times = AccessTimes::Relative;
        let (mut read_only, mut discard, mut writeback, mut allow_other) = (false, true, false, None);
        let (mut suid, mut dev, mut remount) = (false, false, false);
        let (mut cache, mut dirty) = (None, None);
        let seconds = |value: &str| {
            let seconds: f64 =
                value.parse().ok().filter(|s: &f64| (0.1..=86_400.0).contains(s)).context("0.1 to 86400 seconds")?;
            anyhow::Ok(Duration::from_secs_f64(seconds))
        };
        let bytes =
            |value: &str| value.parse::<ByteSize>().map(|bytes| bytes.0).map_err(|error| anyhow::anyhow!("{error}"));
        for option in lists.iter().flat_map(|list| list.split(',')).filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let read = || -> anyhow::Result<()> {
                match key {
                    "ro" => read_only = true,
                    "rw" => read_only = false,
                    "noatime" => access_times = AccessTimes::Never,
                    "relatime" => access_times = AccessTimes::Relative,
                    "discard" => discard = true,
                    "nodiscard" => discard = false,
                    "writeback" => writeback = true,
                    "allow_other" => allow_other = Some(true),
                    "remount" => remount = true,
                    "suid" => suid = true,
                    "dev" => dev = true,
                    "nosuid" => suid = false,
                    "nodev" => dev = false,
                    "log" => log = value,
                    "commit" => intervals.write = seconds(value)?,
                    "checkpoint" => intervals.checkpoint = seconds(value)?,
                    "cache" => cache = Some(bytes(value)?),
                    "dirty" => dirty = Some(bytes(value)?),
                    // What mount(8) and fstab(5) add for themselves, and the kernel to what is mounted.
                    "user_id" | "group_id" | "rootmode" | "fd" | "subtype" | "fsname" => {}
                    "defaults"
                    | "default_permissions"
                    | "exec"
                    | "async"
                    | "auto"
                    | "noauto"
                    | "nouser"
                    | "nofail"
                    | "_netdev" => {}
                    key if OF_THE_LOG.contains(&key) => parameters.push(option),
                    _ => bail!("no such option; there are {HELP}"),
                }
                Ok(())
            };
            let mut read = read;
            read().with_context(|| format!("-o {option}"))?;
        }
        let name = if parameters.is_empty() { log.to_owned() } else { format!("{log}:{}", parameters.join(",")) };
        let mut settings = LogSettings::parse(&name).with_context(|| format!("-o {}", parameters.join(",")))?;
        settings.read_only = read_only;
        settings.discard = discard;
        if let Some(bytes) = cache {
            if bytes < 1 << 20 {
                bail!("-o cache: {bytes} bytes are too few for pages; give 1MiB or more");
            }
            settings.cache_bytes = bytes as usize;
        }
        settings.waiting_bytes = dirty.map(|bytes| bytes as usize);
        Ok(Self { settings, intervals, access_times, allow_other, remount, privileged: suid && dev, writeback })
    }
}
