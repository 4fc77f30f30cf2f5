//! A plan: which handle (stream, placement identifier) each write is tagged with, and how it is written down.

use isotherm::request::Request;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Version of the file. It moves when a key changes its meaning.
pub const PLAN_VERSION: u32 = 1;

/// A range of addresses and the handle of what is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRange {
    /// First byte.
    pub start_bytes: u64,
    /// One past the last byte; the last range of a plan has no end (`null`).
    pub end_bytes: Option<u64>,
    /// The handle, from 0.
    pub handle: u16,
}

/// Requests of up to a length, and the handle of what they write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSize {
    /// Length in bytes of the longest request; none for the last (`null`).
    pub up_to_bytes: Option<u64>,
    /// The handle, from 0.
    pub handle: u16,
}

/// What a handle is told by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The address where the request begins. Ranges follow one another from byte 0 on.
    Address(Vec<PlanRange>),
    /// The length of the request, ascending.
    Size(Vec<PlanSize>),
    /// Who writes: the handle of each process, stream or volume of the trace, in the order in which they appear in it. Those that
    /// are not listed go to handle 0.
    Source(Vec<u16>),
}

/// What a handle holds, for people.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandleNote {
    /// Pages that were written to it while the plan was learnt, as a share of all: 0 to 1.
    pub write_share: f64,
    /// Mean lifetime of what is written to it, in host bytes written to the whole drive; none where nothing died.
    pub lifetime_bytes: Option<f64>,
}

/// Which handle each write is tagged with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`PLAN_VERSION`].
    pub plan_version: u32,
    /// Handles, 1 to 64.
    pub handles: u16,
    /// What tells them.
    pub rule: Rule,
    /// What each holds, by handle; empty where nobody knows.
    #[serde(default)]
    pub notes: Vec<HandleNote>,
}

/// Most handles of a plan: as many as the placement `streams` has.
pub const HANDLES_MAX: u16 = 64;

impl Plan {
    /// A plan of this rule, its handles counted.
    pub fn new(rule: Rule, notes: Vec<HandleNote>) -> Self {
        let last = match &rule {
            Rule::Address(ranges) => ranges.iter().map(|range| range.handle).max(),
            Rule::Size(sizes) => sizes.iter().map(|size| size.handle).max(),
            Rule::Source(sources) => sources.iter().copied().max(),
        };
        Self { plan_version: PLAN_VERSION, handles: last.unwrap_or(0) + 1, rule, notes }
    }

    /// Reads the text of a plan file.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let plan: Self = serde_json::from_str(text)
            .map_err(|error| format!("it is no plan: {error}; isotherm advise writes plans to plan/plan.json"))?;
        plan.check()?;
        Ok(plan)
    }

    /// Whether it can be followed.
    fn check(&self) -> Result<(), String> {
        if self.plan_version != PLAN_VERSION {
            return Err(format!("it is of version {}, and version {PLAN_VERSION} is read", self.plan_version));
        }
        if self.handles == 0 || self.handles > HANDLES_MAX {
            return Err(format!("it has {} handles; a plan has 1 to {HANDLES_MAX}", self.handles));
        }
        let (handles, is_in_order): (Vec<u16>, bool) = match &self.rule {
            Rule::Address(ranges) => {
                let starts_at_0 = ranges.first().is_some_and(|range| range.start_bytes == 0);
                let ends = ranges.last().is_some_and(|range| range.end_bytes.is_none());
                let follow = ranges.windows(2).all(|pair| {
                    pair[0].end_bytes == Some(pair[1].start_bytes) && pair[0].start_bytes < pair[1].start_bytes
                });
                (ranges.iter().map(|range| range.handle).collect(), starts_at_0 && ends && follow)
            }
            Rule::Size(sizes) => {
                let ends = sizes.last().is_some_and(|size| size.up_to_bytes.is_none());
                let follow = sizes.windows(2).all(|pair| {
                    pair[0].up_to_bytes.is_some() && pair[1].up_to_bytes.is_none_or(|to| Some(to) > pair[0].up_to_bytes)
                });
                (sizes.iter().map(|size| size.handle).collect(), ends && follow)
            }
            Rule::Source(sources) => (sources.clone(), true),
        };
        if !is_in_order {
            return Err(
                "its entries do not follow one another: they begin at 0, and the last one has no end (null)".to_owned()
            );
        }
        match handles.iter().find(|handle| **handle >= self.handles) {
            Some(handle) => {
                Err(format!("it names handle {handle}, but has {} (0 to {})", self.handles, self.handles - 1))
            }
            None => Ok(()),
        }
    }

    /// The plan as its file.
    pub fn to_json(&self) -> String {
        format!("{:#}\n", serde_json::to_value(self).expect("a plan has string keys and finite numbers"))
    }

    /// The handle of what a request writes.
    pub fn handle(&self, request: &Request) -> u16 {
        match &self.rule {
            Rule::Address(ranges) => {
                let after = ranges.partition_point(|range| range.start_bytes <= request.offset);
                ranges[after - 1].handle
            }
            Rule::Size(sizes) => {
                let at = sizes.partition_point(|size| size.up_to_bytes.is_some_and(|to| to < request.length));
                sizes[at].handle
            }
            Rule::Source(sources) => sources.get(usize::from(request.source)).copied().unwrap_or(0),
        }
    }

    /// The handle of what is written at an address, where that is what tells it.
    pub fn handle_at(&self, byte: u64) -> Option<u16> {
        let Rule::Address(ranges) = &self.rule else { return None };
        let after = ranges.partition_point(|range| range.start_bytes <= byte);
        Some(ranges.get(after.checked_sub(1)?)?.handle)
    }

    /// The ranges of a plan by address, each with an end; `device_bytes` is that of the last.
    fn ranges(&self, device_bytes: u64) -> impl Iterator<Item = (u64, u64, u16)> + '_ {
        let ranges = if let Rule::Address(ranges) = &self.rule { ranges.as_slice() } else { &[] };
        ranges
            .iter()
            .map(move |range| (range.start_bytes, range.end_bytes.unwrap_or(device_bytes), range.handle))
            .filter(|(start, end, _)| start < end)
    }

    /// The scheme file of fio (`dp_scheme`): a line `start, end, index` for each range, in bytes. `None` unless the plan goes by
    /// address.
    pub fn fio_scheme(&self, device_bytes: u64) -> Option<String> {
        matches!(self.rule, Rule::Address(_)).then(|| {
            self.ranges(device_bytes).fold(String::new(), |mut text, (start, end, handle)| {
                writeln!(text, "{start}, {end}, {handle}").expect("writing to a string cannot fail");
                text
            })
        })
    }

    /// A job of fio that writes by the scheme file `scheme`. `None` unless the plan goes by address.
    pub fn fio_job(&self, scheme: &str) -> Option<String> {
        matches!(self.rule, Rule::Address(_)).then(|| {
            let list = (0..self.handles).map(|handle| handle.to_string()).collect::<Vec<_>>().join(",");
            format!(
                "; Writes to an NVMe drive with flexible data placement, each range of addresses with its own placement identifier.\n\
                 ; Needs fio 3.38 or later. Name the drive's character device: what is on it is overwritten.\n\
                 [global]\nioengine=io_uring_cmd\ncmd_type=nvme\nfilename=/dev/ng0n1\ndataplacement=fdp\nplid_select=scheme\nplids={list}\n\
                 dp_scheme={scheme}\nthread=1\ndirect=1\n\n[workload]\nrw=randwrite\nbs=4k\niodepth=32\ntime_based=1\nruntime=60\n"
            )
        })
    }

    /// Placement identifiers in JSON: the ranges of each handle, with how long what is written there lives.
    pub fn fdp_json(&self, device_bytes: u64) -> String {
        let handles: Vec<_> = (0..self.handles)
            .map(|handle| {
                let ranges: Vec<_> = self
                    .ranges(device_bytes)
                    .filter(|range| range.2 == handle)
                    .map(|(start, end, _)| serde_json::json!({"start_bytes": start, "end_bytes": end}))
                    .collect();
                let note = self.notes.get(usize::from(handle));
                serde_json::json!({
                    "placement_identifier": handle,
                    "write_share": note.map(|note| note.write_share),
                    "lifetime_bytes": note.and_then(|note| note.lifetime_bytes),
                    "write_life_hint": self.hint(handle),
                    "ranges": ranges,
                })
            })
            .collect();
        let plan = serde_json::json!({
            "reclaim_unit_handle_type": "persistently isolated",
            "told_by": match &self.rule { Rule::Address(_) => "address", Rule::Size(_) => "size", Rule::Source(_) => "source" },
            "handles": handles,
        });
        format!("{plan:#}\n")
    }

    /// The write lifetime hint of Linux (`fcntl F_SET_RW_HINT`) for a handle: handles by their mean lifetime, in four parts.
    pub fn hint(&self, handle: u16) -> &'static str {
        const HINTS: [&str; 4] =
            ["RWH_WRITE_LIFE_SHORT", "RWH_WRITE_LIFE_MEDIUM", "RWH_WRITE_LIFE_LONG", "RWH_WRITE_LIFE_EXTREME"];
        let Some(own) = self.notes.get(usize::from(handle)) else { return "RWH_WRITE_LIFE_NOT_SET" };
        let life = |note: &HandleNote| note.lifetime_bytes.unwrap_or(f64::INFINITY);
        let shorter = self.notes.iter().filter(|note| life(note) < life(own)).count();
        let count = self.notes.len().max(1);
        // Up to four handles have a hint each, from the shortest on; the longest of several is extreme.
        let rank = match count {
            0..=4 if shorter + 1 == count && count > 1 => 3,
            0..=4 => shorter,
            _ => shorter * HINTS.len() / count,
        };
        HINTS[rank.min(3)]
    }

    /// Hints for applications that tag files or column families in place of addresses, as a table in Markdown: `F_SET_RW_HINT` of Linux,
    /// and the write-life-time hints of RocksDB's environment, which are the same by another name.
    pub fn hints_markdown(&self) -> String {
        let mut text = String::from(
            "| handle | what goes there | writes | lives (bytes the host writes meanwhile) | F_SET_RW_HINT | RocksDB |\n\
             | ---: | --- | ---: | ---: | --- | --- |\n",
        );
        for handle in 0..self.handles {
            let note = self.notes.get(usize::from(handle));
            let what = match &self.rule {
                Rule::Address(ranges) => {
                    format!("{} ranges of addresses", ranges.iter().filter(|range| range.handle == handle).count())
                }
                Rule::Size(sizes) => {
                    let of = sizes.iter().filter(|size| size.handle == handle);
                    of.map(|size| {
                        size.up_to_bytes
                            .map_or("longer requests".to_owned(), |to| format!("requests of up to {to} bytes"))
                    })
                    .collect::<Vec<_>>()
                    .join(", ")
                }
                Rule::Source(sources) => {
                    format!("{} of those who write", sources.iter().filter(|source| **source == handle).count())
                }
            };
            let share = note.map_or("-".to_owned(), |note| format!("{:.1} %", note.write_share * 100.0));
            let life = note
                .and_then(|note| note.lifetime_bytes)
                .map_or("longer than the trace".to_owned(), |bytes| format!("{:.0} MB", bytes / 1e6));
            let hint = self.hint(handle);
            let rocksdb = hint.replace("RWH_WRITE_LIFE", "WLTH");
            writeln!(text, "| {handle} | {what} | {share} | {life} | {hint} | {rocksdb} |")
                .expect("writing to a string cannot fail");
        }
        text
    }

    /// The placement `ranges` of a specification, for a drive whose addresses are those of the trace; `None` unless the plan goes
    /// by address.
    pub fn placement(&self, device_bytes: u64) -> Option<String> {
        matches!(self.rule, Rule::Address(_)).then(|| {
            let ranges = self.ranges(device_bytes).filter(|range| range.2 > 0);
            let ranges: Vec<String> = ranges.map(|(start, end, handle)| format!("{start}-{end}@{handle}")).collect();
            if ranges.is_empty() { "single".to_owned() } else { format!("ranges:hot={}", ranges.join("+")) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm::request::Op;

    fn write(offset: u64, length: u64, source: u16) -> Request {
        Request { arrival_ns: 0, offset, length, op: Op::Write, source, durable: false }
    }

    fn by_address() -> Plan {
        let range = |start_bytes, end_bytes, handle| PlanRange { start_bytes, end_bytes, handle };
        let ranges = vec![range(0, Some(8192), 1), range(8192, Some(65536), 0), range(65536, None, 1)];
        let note = |lifetime_bytes| HandleNote { write_share: 0.5, lifetime_bytes };
        Plan::new(Rule::Address(ranges), vec![note(Some(1e9)), note(Some(1e6))])
    }

    #[test]
    fn a_write_goes_to_the_handle_of_its_first_byte() {
        let plan = by_address();
        let handles = [0, 8191, 8192, 65535, 65536, 1 << 50].map(|offset| plan.handle(&write(offset, 4096, 9)));
        assert_eq!(handles, [1, 1, 0, 0, 1, 1]);
        let sizes = vec![PlanSize { up_to_bytes: Some(4096), handle: 0 }, PlanSize { up_to_bytes: None, handle: 1 }];
        let plan = Plan::new(Rule::Size(sizes), Vec::new());
        assert_eq!([1, 4096, 4097].map(|length| plan.handle(&write(0, length, 0))), [0, 0, 1]);
        let plan = Plan::new(Rule::Source(vec![2, 0]), Vec::new());
        assert_eq!([0, 1, 7].map(|source| plan.handle(&write(0, 1, source))), [2, 0, 0]);
    }

    #[test]
    fn a_plan_is_read_as_it_was_written_and_a_wrong_one_refused() {
        let plan = by_address();
        assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
        let with = |from: &str, to: &str| Plan::from_json(&plan.to_json().replace(from, to)).unwrap_err();
        assert!(with("\"handles\": 2", "\"handles\": 1").contains("names handle 1"));
        assert!(with("\"handles\": 2", "\"handles\": 99").contains("1 to 64"));
        assert!(with("\"end_bytes\": 8192", "\"end_bytes\": 4096").contains("follow one another"));
        assert!(with("\"plan_version\": 1", "\"plan_version\": 7").contains("version 7"));
        assert!(with("rule", "role").contains("no plan"));
    }

    #[test]
    fn exports_say_the_same_as_the_plan() {
        let plan = by_address();
        let scheme = plan.fio_scheme(1 << 20).unwrap();
        assert_eq!(scheme, "0, 8192, 1\n8192, 65536, 0\n65536, 1048576, 1\n");
        assert_eq!(plan.placement(1 << 20).unwrap(), "ranges:hot=0-8192@1+65536-1048576@1");
        assert!(plan.fio_job("scheme.txt").unwrap().contains("plids=0,1\ndp_scheme=scheme.txt\n"));
        let fdp: serde_json::Value = serde_json::from_str(&plan.fdp_json(1 << 20)).unwrap();
        assert_eq!(fdp["handles"][1]["write_life_hint"], "RWH_WRITE_LIFE_SHORT");
        assert_eq!(fdp["handles"][0]["write_life_hint"], "RWH_WRITE_LIFE_EXTREME");
        assert_eq!(fdp["handles"][0]["ranges"], serde_json::json!([{"start_bytes": 8192, "end_bytes": 65536}]));
    }
}
