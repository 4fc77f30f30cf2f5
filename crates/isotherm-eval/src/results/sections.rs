//! Sections of a run: what parts that only some devices have counted. Results carry all of them; which there are and what
//! their keys mean is declared where they are counted ([`isotherm::counters!`]).

use isotherm::stats::{Description, Section, SectionEntry, Sections, Shape};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The sections that are known by name, in the order of results.
pub fn sections() -> impl Iterator<Item = &'static SectionEntry> {
    isotherm::build::SECTIONS.iter().chain(isotherm_sfs::SECTIONS)
}

/// The sections of a run, by name. Those that [`sections`] names come first and in its order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct SectionResults(Map<String, Value>);

impl SectionResults {
    /// What was counted between two snapshots.
    pub fn between(start: &Sections, end: &Sections) -> Self {
        let counted = end.since(start);
        let mut found: Vec<_> = counted.values().collect();
        let rank = |name: &str| sections().position(|entry| entry.name == name).unwrap_or(usize::MAX);
        found.sort_by_key(|(name, _)| rank(name));
        let json = |value| serde_json::to_value(value).expect("values of results are JSON");
        Self(found.into_iter().map(|(name, value)| (name.to_owned(), json(value))).collect())
    }

    /// What is said of the counters of type `S`; nothing if the device did not have them.
    ///
    /// # Panics
    /// If another section has the name of `S` (a bug).
    pub fn get<S: Section>(&self) -> Option<S::Results> {
        let value = self.0.get(S::NAME)?;
        Some(S::Results::deserialize(value).unwrap_or_else(|problem| panic!("section {}: {problem}", S::NAME)))
    }
}

/// Refuses a section that is known and is not as it was declared.
impl<'de> Deserialize<'de> for SectionResults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        for entry in sections() {
            if let Some(value) = map.get(entry.name) {
                check(entry.name, &Shape::Table(entry.description), value).map_err(D::Error::custom)?;
            }
        }
        Ok(Self(map))
    }
}

/// Checks that a value is what its key may have.
fn check(at: &str, shape: &Shape, value: &Value) -> Result<(), String> {
    let expect = |is_right: bool, what: &str| if is_right { Ok(()) } else { Err(format!("`{at}` is no {what}")) };
    match shape {
        Shape::Count => expect(value.is_u64(), "whole number from 0"),
        Shape::Real => expect(value.is_number(), "number"),
        Shape::RealOrNull => expect(value.is_number() || value.is_null(), "number and not null"),
        Shape::List(each) => match value.as_array() {
            Some(values) => values.iter().try_for_each(|value| check(at, each, value)),
            None => expect(false, "list"),
        },
        Shape::Table(description) | Shape::OptionalTable(description) => check_table(at, description, value),
    }
}

fn check_table(at: &str, description: &Description, value: &Value) -> Result<(), String> {
    let Some(object) = value.as_object() else { return Err(format!("`{at}` is no object")) };
    for key in description.keys {
        let at = format!("{at}.{}", key.name);
        match (object.get(key.name), key.shape) {
            (Some(value), shape) => check(&at, shape, value)?,
            (None, Shape::OptionalTable(_)) => {}
            (None, _) => return Err(format!("`{at}` is missing")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm::dram::partition::SplitCounters;
    use isotherm::ftl::dftl::MappingCounters;
    use isotherm::ftl::fast::MergeCounters;
    use serde_json::json;

    isotherm::counters! {
        /// What a policy of one's own counts.
        struct OwnCounters: OwnResults in "own" {
            /// Decisions.
            decisions: u64,
        }
    }

    #[test]
    fn every_section_is_in_results_known_ones_first() {
        let mut end = Sections::default();
        end.put(OwnCounters { decisions: 3 });
        end.put(MergeCounters { switch: 2, ..MergeCounters::default() });
        end.put(MappingCounters { hits: 7, ..MappingCounters::default() });
        let mut start = end.clone();
        start.put(OwnCounters { decisions: 1 });
        let results = SectionResults::between(&start, &end);
        assert_eq!(results.0.keys().collect::<Vec<_>>(), ["mapping", "merges", "own"]);
        assert_eq!(serde_json::to_value(&results).unwrap()["own"], json!({"decisions": 2}));
        assert_eq!(results.get::<OwnCounters>().unwrap().decisions, 2);
        assert_eq!(results.get::<SplitCounters>(), None);
    }

    #[test]
    fn a_section_of_a_file_must_be_what_was_declared() {
        let split = json!({"mapping_share_mean": 0.5, "mapping_share_last": 0.25});
        let read = |value: Value| serde_json::from_value::<SectionResults>(json!({"split": value, "unknown": 1}));
        assert_eq!(read(split.clone()).unwrap().get::<SplitCounters>().unwrap().mapping_share_last, 0.25);
        let mut wrong = split.clone();
        wrong["series"] =
            json!({"requests": [1], "mapping_share": [0.5], "cost_benefit_buffer": [], "cost_benefit_mapping": {}});
        let problem = read(wrong).unwrap_err().to_string();
        assert_eq!(problem, "`split.series.cost_benefit_mapping` is no list");
        assert_eq!(
            read(json!({"mapping_share_mean": 0.5})).unwrap_err().to_string(),
            "`split.mapping_share_last` is missing"
        );
    }
}
