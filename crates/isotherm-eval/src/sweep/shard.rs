//! A part of a sweep, for job arrays: every machine runs its own share of the points into one folder.

use isotherm::registry::SpecError;
use std::fmt;
use std::str::FromStr;

/// One of several shares of the points, taken in turn: neighbours, which cost about the same, go to different shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    number: usize,
    /// Of how many.
    of: usize,
}

impl Shard {
    /// All points.
    pub const ALL: Self = Self { number: 1, of: 1 };

    /// Whether point `at`, counted from 0, is one of it.
    pub fn holds(self, at: usize) -> bool {
        at % self.of == self.number - 1
    }

    /// The name of its file in a data set.
    pub fn file_name(self) -> String {
        format!("part-{:05}-of-{:05}.parquet", self.number, self.of)
    }

    /// Whether `name` is that of a file in a data set that was divided into another number of shares.
    pub fn is_of_another(self, name: &str) -> bool {
        name.starts_with("part-") && !name.ends_with(&format!("-of-{:05}.parquet", self.of))
    }
}

impl FromStr for Shard {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            _ => Err(SpecError::new(
                "shard",
                format!("\"{text}\" is no share"),
                "write for example 3/64: 1/64 to 64/64 are all",
            )),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_disjoint_and_hold_everything() {
        let shards: Vec<Shard> = (1..=7).map(|number| format!("{number}/7").parse().unwrap()).collect();
        for at in 0..50 {
            assert_eq!(shards.iter().filter(|shard| shard.holds(at)).count(), 1);
        }
        assert_eq!(shards[2].to_string(), "3/7");
        assert!(shards[2].is_of_another(&Shard::ALL.file_name()) && !shards[2].is_of_another(&shards[3].file_name()));
        assert!((0..50).all(|at| Shard::ALL.holds(at)));
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
