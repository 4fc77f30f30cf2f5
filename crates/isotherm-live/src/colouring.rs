//! How the cells of a map can be coloured: a number for each unit, and what it means.

use serde::Serialize;

/// A number that every unit has, and by which the map can be coloured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Colouring {
    /// Its key in JSON, such as `valid_share`.
    pub key: &'static str,
    /// Its name, for people.
    pub name: &'static str,
    /// A number in words, in which `{}` stands for it: "{} valid".
    pub words: &'static str,
    /// What the least and the greatest number mean, in words; empty where the number says it.
    pub ends: [&'static str; 2],
    /// What the number is.
    pub scale: Scale,
    /// Whether units that hold no data have the number too, as they have been erased so often. Bad ones are never coloured by it.
    pub of_all: bool,
}

/// What a number of a [`Colouring`] is.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Scale {
    /// A share, 0 to 1. How it is spread over the units is drawn too.
    Share,
    /// A number, coloured from the least to the greatest that there is.
    Linear,
    /// The same by its logarithm, for numbers that span orders of magnitude; 0 is the least.
    Logarithmic,
    /// The number of a class.
    Classes {
        /// Names of the classes by number. Those without one are shown by number.
        names: Vec<String>,
    },
}

impl Colouring {
    /// A colouring of units that hold data.
    pub const fn new(key: &'static str, name: &'static str, words: &'static str, scale: Scale) -> Self {
        Self { key, name, words, ends: ["", ""], scale, of_all: false }
    }
}

impl Scale {
    /// Whether a cell shows what most of its units have, and not their mean.
    pub(crate) fn is_classes(&self) -> bool {
        matches!(self, Self::Classes { .. })
    }
}
