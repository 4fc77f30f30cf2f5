//! What counters say in results: values, their keys and what the keys mean, so that results carry them and a schema
//! describes them without knowing any.

use serde::{Serialize, Serializer};

/// A value in results.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// No value: a mean over nothing.
    Null,
    /// A whole number.
    Count(u64),
    /// A real number; one that is not finite is written as no value.
    Real(f64),
    /// Values of one kind.
    List(Vec<Value>),
    /// Keys in order. Keys without anything to say are absent.
    Table(Vec<(&'static str, Value)>),
}

impl Value {
    /// The value of a key, where this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Table(rows) => rows.iter().find_map(|row| (row.0 == key).then_some(&row.1)),
            _ => None,
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::List(values) => serializer.collect_seq(values),
            Self::Table(rows) => serializer.collect_map(rows.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// What values a key has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Whole numbers from 0.
    Count,
    /// Real numbers.
    Real,
    /// Real numbers, or `null` where there is no value.
    RealOrNull,
    /// A list.
    List(&'static Shape),
    /// Keys of its own.
    Table(&'static Description),
    /// Keys of its own; the whole may be absent.
    OptionalTable(&'static Description),
}

/// A key of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The key, which carries its unit at its end.
    pub name: &'static str,
    /// Lines of its documentation.
    pub doc: &'static str,
    /// Its values.
    pub shape: &'static Shape,
}

/// Ends of keys, with the units that they mean.
const UNITS: &[(&str, &str)] = &[
    ("_bytes_per_second", "bytes per second"),
    ("_bytes", "bytes"),
    ("_pages", "pages"),
    ("_blocks", "blocks"),
    ("_ns", "nanoseconds"),
];

impl Key {
    /// What it means, in one line.
    pub fn text(&self) -> String {
        one_line(self.doc)
    }

    /// The unit, where the key ends in one.
    pub fn unit(&self) -> Option<&'static str> {
        UNITS.iter().find_map(|(end, unit)| self.name.ends_with(end).then_some(*unit))
    }

    /// Whether its numbers are parts of a whole: from 0 to 1.
    pub fn is_share(&self) -> bool {
        self.name.split('_').any(|word| ["share", "ratio", "rate"].contains(&word))
    }
}

/// What a table of results holds.
#[derive(PartialEq, Eq, Debug)]
pub struct Description {
    /// Name of its type.
    pub name: &'static str,
    /// Lines of its documentation.
    pub doc: &'static str,
    /// Its keys, in order.
    pub keys: &'static [Key],
}

impl Description {
    /// What it holds, in one line.
    pub fn text(&self) -> String {
        one_line(self.doc)
    }
}

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What can stand in results.
pub trait Reported {
    /// The values that there are.
    const SHAPE: &'static Shape;
    /// The value; nothing if the key is to be absent.
    fn reported(&self) -> Option<Value>;
}

impl Reported for u64 {
    const SHAPE: &'static Shape = &Shape::Count;
    fn reported(&self) -> Option<Value> {
        Some(Value::Count(*self))
    }
}

impl Reported for f64 {
    const SHAPE: &'static Shape = &Shape::Real;
    fn reported(&self) -> Option<Value> {
        Some(Value::Real(*self))
    }
}

impl Reported for Option<f64> {
    const SHAPE: &'static Shape = &Shape::RealOrNull;
    fn reported(&self) -> Option<Value> {
        Some(self.map_or(Value::Null, Value::Real))
    }
}

impl<T: Reported> Reported for Vec<T> {
    const SHAPE: &'static Shape = &Shape::List(T::SHAPE);
    fn reported(&self) -> Option<Value> {
        Some(Value::List(self.iter().filter_map(Reported::reported).collect()))
    }
}

/// A table of results, as [`results!`](crate::results) declares it.
pub trait Results {
    /// What it holds.
    const DESCRIPTION: &'static Description;
    /// It as a value, its keys in order.
    fn value(&self) -> Value;
}

impl<T: Results> Reported for T {
    const SHAPE: &'static Shape = &Shape::Table(T::DESCRIPTION);
    fn reported(&self) -> Option<Value> {
        Some(self.value())
    }
}

impl<T: Results> Reported for Option<T> {
    const SHAPE: &'static Shape = &Shape::OptionalTable(T::DESCRIPTION);
    fn reported(&self) -> Option<Value> {
        self.as_ref().map(Results::value)
    }
}

/// Declares a table of results: a structure whose fields are [`Reported`], with the description that
/// the schema is made from. [`counters!`](crate::counters) uses it; what is not made of counters alone uses it directly.
#[macro_export]
macro_rules! results {
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident {
            $($(#[doc = $text:literal])* $key:ident : $type:ty,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Debug, Default, serde::Deserialize)]
        $vis struct $name {
            $($(#[doc = $text])* pub $key: $type,)*
        }

        impl $crate::stats::Results for $name {
            const DESCRIPTION: &'static $crate::stats::Description = &$crate::stats::Description {
                name: stringify!($name),
                doc: concat!($($doc, "\n"),*),
                keys: &[$($crate::stats::Key {
                    name: stringify!($key),
                    doc: concat!($($text, "\n"),*),
                    shape: <$type as $crate::stats::Reported>::SHAPE,
                }),*],
            };
            fn value(&self) -> $crate::stats::Value {
                let rows = [$((stringify!($key), $crate::stats::Reported::reported(&self.$key))),*];
                $crate::stats::Value::Table(rows.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
            }
        }
    };
}
