//! Mount options: what stands behind `-o`.

use anyhow::{Context as _, bail};
use isotherm::quantity::ByteSize;
use isotherm_fs::log::LogSettings;
use isotherm_fs::tree::AccessTimes;
use isotherm_fs::volume::Intervals;
use isotherm_fuse::files::Rights;
use std::time::Duration;

/// What a mount was told.
pub struct MountOptions {
    pub settings: LogSettings,
    pub intervals: Intervals,
    pub access_times: AccessTimes,
    /// Whether reading a directory sets its time too.
    pub directory_times: bool,
    pub allow_other: Option<bool>,
    /// A volume that is mounted already is to have other flags.
    pub remount: bool,
    pub flags: Flags,
    /// Options that were given and are none of the flags.
    pub others: Vec<String>,
    pub writeback: bool,
}

/// What the kernel keeps of a mount, where it was given.
#[derive(Clone, Copy, Default)]
pub struct Flags {
    pub read_only: Option<bool>,
    pub suid: Option<bool>,
    pub dev: Option<bool>,
    pub exec: Option<bool>,
}

impl Flags {
    /// What the files of a new mount may do.
    pub fn rights(self) -> Rights {
        let usual = Rights::default();
        Rights {
            suid: self.suid.unwrap_or(usual.suid),
            dev: self.dev.unwrap_or(usual.dev),
            exec: self.exec.unwrap_or(usual.exec),
        }
    }
}

/// The options, for `--help` and for whoever mistypes one.
pub const HELP: &str = "ro, rw, atime, noatime, relatime, strictatime, diratime, nodiratime, log=sfs|lfs, groups=, criterion=, victim=, scale=, defer=, clean_at=, commit=SECONDS, \
                        checkpoint=SECONDS, cache=BYTES, dirty=BYTES, discard, nodiscard, writeback, allow_other, suid, dev, nosuid, nodev, exec, noexec, remount, and those that mount(8) reads itself: user, nofail, x-...";

/// Parameters that the log itself reads.
const OF_THE_LOG: &[&str] =
    &["groups", "criterion", "victim", "scale", "empty", "distinct", "sample", "defer", "clean_at"];

/// Options of a server, which stay as they are for as long as it runs.
const OF_SERVER: &[&str] = &[
    "atime",
    "noatime",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "diratime",
    "nodiratime",
    "discard",
    "nodiscard",
    "writeback",
    "log",
    "commit",
    "checkpoint",
    "cache",
    "dirty",
];

impl MountOptions {
    /// Reads lists of options, separated by commas. What is unknown is left out where `is_sloppy`.
    pub fn parse(lists: &[String], is_sloppy: bool) -> anyhow::Result<Self> {
        let mut log = "sfs";
        let mut parameters: Vec<&str> = Vec::new();
        let mut intervals = Intervals::default();
        let (mut access_times, mut directory_times) = (AccessTimes::Relative, true);
        let (mut discard, mut writeback, mut allow_other) = (true, false, None);
        let (mut flags, mut remount, mut others) = (Flags::default(), false, Vec::new());
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
                    "ro" => flags.read_only = Some(true),
                    "rw" => flags.read_only = Some(false),
                    "noatime" => access_times = AccessTimes::Never,
                    "relatime" => access_times = AccessTimes::Relative,
                    "strictatime" => access_times = AccessTimes::Strict,
                    // As mount(8) has them: each undoes its opposite and leaves what the kernel does unless told.
                    "atime" if access_times == AccessTimes::Never => access_times = AccessTimes::Relative,
                    "nostrictatime" if access_times == AccessTimes::Strict => access_times = AccessTimes::Relative,
                    "atime" | "nostrictatime" | "norelatime" => {}
                    "diratime" | "nodiratime" => directory_times = key == "diratime",
                    "discard" => discard = true,
                    "nodiscard" => discard = false,
                    "writeback" => writeback = true,
                    "allow_other" => allow_other = Some(true),
                    "remount" => remount = true,
                    "suid" | "nosuid" => flags.suid = Some(key == "suid"),
                    "dev" | "nodev" => flags.dev = Some(key == "dev"),
                    "exec" | "noexec" => flags.exec = Some(key == "exec"),
                    // Whoever may mount it gets no more by that than they had.
                    "user" | "users" => (flags.suid, flags.dev, flags.exec) = (Some(false), Some(false), Some(false)),
                    "owner" | "group" if value.is_empty() => (flags.suid, flags.dev) = (Some(false), Some(false)),
                    "segment" => bail!("the size of segments is chosen when a volume is made: `isotherm sfs mkfs --segment BYTES`"),
                    "sync" => bail!("not every write can be made durable at once; fsync(2) makes a file durable, `checkpoint=` bounds what is lost"),
                    "log" => log = value,
                    "commit" => intervals.write = seconds(value)?,
                    "checkpoint" => intervals.checkpoint = seconds(value)?,
                    "cache" => cache = Some(bytes(value)?),
                    "dirty" => dirty = Some(bytes(value)?),
                    // What mount(8) and fstab(5) add for themselves, and the kernel to what is mounted.
                    "user_id" | "group_id" | "rootmode" | "fd" | "subtype" | "fsname" => {}
                    "defaults"
                    | "default_permissions"
                    | "async"
                    | "noowner"
                    | "nogroup"
                    | "nousers"
                    | "comment"
                    // Times are kept in memory until something else is written.
                    | "lazytime"
                    | "nolazytime"
                    | "auto"
                    | "noauto"
                    | "nouser"
                    | "nofail"
                    | "_netdev" => {}
                    key if key.starts_with("x-") || key.starts_with("X-") => {}
                    key if OF_THE_LOG.contains(&key) => parameters.push(option),
                    _ if is_sloppy => {}
                    _ => bail!("no such option; there are {HELP}"),
                }
                if OF_SERVER.contains(&key) || OF_THE_LOG.contains(&key) {
                    others.push(option.to_owned());
                }
                Ok(())
            };
            let mut read = read;
            read().with_context(|| format!("-o {option}"))?;
        }
        let name = if parameters.is_empty() { log.to_owned() } else { format!("{log}:{}", parameters.join(",")) };
        let mut settings = LogSettings::parse(&name).with_context(|| format!("-o log={name}"))?;
        settings.read_only = flags.read_only == Some(true);
        settings.discard = discard;
        if let Some(bytes) = cache {
            if bytes < 1 << 20 {
                bail!("-o cache: {bytes} bytes are too few for pages; give 1MiB or more");
            }
            settings.cache_bytes = bytes as usize;
        }
        if let Some(bytes) = dirty {
            if bytes < 1 << 20 {
                bail!("-o dirty: {bytes} bytes are too few to write with; give 1MiB or more");
            }
            settings.waiting_bytes = Some(bytes as usize);
        }
        Ok(Self { settings, intervals, access_times, directory_times, allow_other, remount, flags, others, writeback })
    }
}
