//! Counters that only some devices have: a bag that whoever counts puts them into, and whoever knows the type takes them out
//! of. Results carry all of them without knowing any.

use super::counters::Counter;
use super::results::{Description, Results, Value};
use serde::de::DeserializeOwned;
use std::any::Any;
use std::fmt::Debug;

/// Counters with a name in results. [`counters!`](crate::counters) implements it; what keeps more than counters may do so
/// itself.
pub trait Section: Counter + Any + Debug + Send + Sync {
    /// The key in results: one word of small letters, which no other section and no other key of a run has.
    const NAME: &'static str;
    /// What results say of it.
    type Results: Results + DeserializeOwned;
    /// What results say of these counters, which are those of a window.
    fn results(&self) -> Self::Results;
}

/// A [`Section`] whose type is not known.
trait AnySection: Any + Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn boxed(&self) -> Box<dyn AnySection>;
    fn as_any(&self) -> &dyn Any;
    /// The difference to the section of the same type in `earlier`, if it is there.
    fn since(&self, earlier: &Sections) -> Option<Box<dyn AnySection>>;
    fn value(&self) -> Value;
}

impl<T: Section> AnySection for T {
    fn name(&self) -> &'static str {
        T::NAME
    }
    fn boxed(&self) -> Box<dyn AnySection> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn since(&self, earlier: &Sections) -> Option<Box<dyn AnySection>> {
        Some(Box::new(Counter::since(self, earlier.get::<T>()?)))
    }
    fn value(&self) -> Value {
        self.results().value()
    }
}

/// Sections of several types, each at most once.
#[derive(Debug, Default)]
pub struct Sections(Vec<Box<dyn AnySection>>);

impl Sections {
    /// Adds counters, in place of others of their type.
    ///
    /// # Panics
    /// If another type has the same name.
    pub fn put<T: Section>(&mut self, section: T) {
        self.0.retain(|other| !(**other).as_any().is::<T>());
        assert!(self.0.iter().all(|other| (**other).name() != T::NAME), "two kinds of counters are called {}", T::NAME);
        self.0.push(Box::new(section));
    }

    /// The counters of a type, if anything counts them.
    pub fn get<T: Section>(&self) -> Option<&T> {
        self.0.iter().find_map(|section| (**section).as_any().downcast_ref())
    }

    /// What was counted since `earlier`, by what counted then already.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(self.0.iter().filter_map(|section| (**section).since(earlier)).collect())
    }

    /// Names and values for results, in the order in which the sections were added.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.0.iter().map(|section| ((**section).name(), (**section).value()))
    }
}

impl Clone for Sections {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|section| (**section).boxed()).collect())
    }
}

/// A section as the schema and the documentation know it.
#[derive(Clone, Copy, Debug)]
pub struct SectionEntry {
    /// The key in results.
    pub name: &'static str,
    /// What stands there.
    pub description: &'static Description,
}

impl SectionEntry {
    /// The entry of a section.
    pub const fn of<T: Section>() -> Self {
        Self { name: T::NAME, description: T::Results::DESCRIPTION }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::counters! {
        /// Apples.
        #[derive(Copy)]
        struct Apples: AppleResults in "apples" {
            /// Apples eaten.
            eaten: u64,
        }
    }
    crate::counters! {
        /// Pears.
        struct Pears: PearResults in "pears" {
            /// Pears eaten.
            eaten: u64,
        }
    }
    crate::counters! {
        /// Other apples.
        struct Others: OtherResults in "apples" {
            /// Apples eaten.
            eaten: u64,
        }
    }

    #[test]
    fn sections_subtract_where_both_have_them_and_are_replaced_by_type() {
        let mut early = Sections::default();
        early.put(Apples { eaten: 2 });
        let mut late = early.clone();
        late.put(Pears { eaten: 9 });
        late.put(Apples { eaten: 5 });
        let window: Vec<_> = late.since(&early).values().collect();
        assert_eq!(window, [("apples", Value::Table(vec![("eaten", Value::Count(3))]))]);
        assert_eq!((late.values().count(), late.get::<Pears>().map(|pears| pears.eaten)), (2, Some(9)));
        assert_eq!(early.get::<Apples>().map(|apples| apples.eaten), Some(2), "a clone is a copy");
    }

    #[test]
    #[should_panic(expected = "two kinds of counters are called apples")]
    fn a_name_is_taken_once() {
        let mut sections = Sections::default();
        sections.put(Apples::default());
        sections.put(Others::default());
    }
}
