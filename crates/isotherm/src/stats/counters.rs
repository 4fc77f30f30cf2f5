//! Counters that are declared once: [`counters!`](crate::counters) makes the structure, its difference, its sum, and what
//! results say of it.

/// What adds up over time: counters, and whatever is made of them.
///
/// Contract: `earlier.plus(&later.since(&earlier))` is `later` again, but for the rounding of real numbers.
pub trait Counter: Clone {
    /// What was counted since `earlier`.
    #[must_use]
    fn since(&self, earlier: &Self) -> Self;
    /// What was counted here and then in `later`, which begins where this ends.
    #[must_use]
    fn plus(&self, later: &Self) -> Self;
}

impl Counter for u64 {
    fn since(&self, earlier: &Self) -> Self {
        self - earlier
    }
    fn plus(&self, later: &Self) -> Self {
        self + later
    }
}

impl Counter for f64 {
    fn since(&self, earlier: &Self) -> Self {
        self - earlier
    }
    fn plus(&self, later: &Self) -> Self {
        self + later
    }
}

impl<T: Counter, const N: usize> Counter for [T; N] {
    fn since(&self, earlier: &Self) -> Self {
        std::array::from_fn(|i| self[i].since(&earlier[i]))
    }
    fn plus(&self, later: &Self) -> Self {
        std::array::from_fn(|i| self[i].plus(&later[i]))
    }
}

/// Lists of one length, which stands when the counting begins.
impl<T: Counter> Counter for Vec<T> {
    fn since(&self, earlier: &Self) -> Self {
        self.iter().zip(earlier).map(|(now, then)| now.since(then)).collect()
    }
    fn plus(&self, later: &Self) -> Self {
        self.iter().zip(later).map(|(first, then)| first.plus(then)).collect()
    }
}

/// What only some devices count: whether they do stands when the counting begins.
impl<T: Counter> Counter for Option<T> {
    fn since(&self, earlier: &Self) -> Self {
        Some(self.as_ref()?.since(earlier.as_ref()?))
    }
    fn plus(&self, later: &Self) -> Self {
        Some(self.as_ref()?.plus(later.as_ref()?))
    }
}

/// Declares counters: one line a counter.
///
/// ```
/// isotherm::counters! {
///     /// What the example did.
///     #[derive(Copy)]
///     pub struct ExampleCounters: ExampleResults in "example" {
///         /// Questions asked.
///         questions: u64,
///         /// Of these, answered.
///         unreported answers: u64,
///         /// Share of the questions that were answered.
///         fn answered_share(&self) -> Option<f64> {
///             isotherm::stats::share(self.answers, self.questions)
///         }
///         /// Width of the last answer, in pages.
///         latest width_pages: u64,
///     }
/// }
/// use isotherm::stats::{Counter, Section};
/// let early = ExampleCounters { questions: 5, answers: 5, width_pages: 7 };
/// let late = ExampleCounters { questions: 9, answers: 8, width_pages: 3 };
/// let window = late.since(&early);
/// assert_eq!((window.questions, window.width_pages), (4, 3));
/// assert_eq!(window.results().answered_share, Some(0.75));
/// assert_eq!((ExampleCounters::NAME, early.plus(&window) == late), ("example", true));
/// ```
///
/// - A plain field is counted and stands in results under its name. Its type is a [`Counter`], and
///   [`Reported`](crate::stats::Reported).
/// - `unreported` keeps a field out of results.
/// - `latest` is for what does not add up: the last value counts.
/// - A function is a value derived from the counters, in results like a field.
///
/// After the colon stands the structure of results, which has the keys in the order of the declaration, and after `in` the
/// name of the section. Without `in` the counters are a part of another section; without results they are no more than
/// counters.
#[macro_export]
macro_rules! counters {
    (
        $(#[doc = $doc:literal])* $(#[derive($($derive:ident),*)])?
        $vis:vis struct $name:ident { $($body:tt)* }
    ) => {
        $crate::counters! { @sort [$(#[doc = $doc])* $(#[derive($($derive),*)])? $vis struct $name] [] {} {} $($body)* }
    };
    (
        $(#[doc = $doc:literal])* $(#[derive($($derive:ident),*)])?
        $vis:vis struct $name:ident : $results:ident $(in $section:literal)? { $($body:tt)* }
    ) => {
        $crate::counters! {
            @sort [$(#[doc = $doc])* $(#[derive($($derive),*)])? $vis struct $name] [$results $(in $section)?] {} {} $($body)*
        }
    };

    // Sorts the declarations into fields and reported values: each rule takes one from the front.
    (@sort $head:tt $results:tt { $($fields:tt)* } { $($reported:tt)* }
        $(#[doc = $doc:literal])* fn $name:ident(&$this:ident) -> $type:ty $body:block $($rest:tt)*
    ) => {
        $crate::counters! {
            @sort $head $results { $($fields)* }
            { $($reported)* { [$(#[doc = $doc])*] $name $type, method $this $body } } $($rest)*
        }
    };
    (@sort $head:tt $results:tt { $($fields:tt)* } { $($reported:tt)* }
        $(#[doc = $doc:literal])* unreported latest $name:ident : $type:ty, $($rest:tt)*
    ) => {
        $crate::counters! {
            @sort $head $results { $($fields)* { [$(#[doc = $doc])*] $name $type, latest } } { $($reported)* } $($rest)*
        }
    };
    (@sort $head:tt $results:tt { $($fields:tt)* } { $($reported:tt)* }
        $(#[doc = $doc:literal])* unreported $name:ident : $type:ty, $($rest:tt)*
    ) => {
        $crate::counters! {
            @sort $head $results { $($fields)* { [$(#[doc = $doc])*] $name $type, counted } } { $($reported)* } $($rest)*
        }
    };
    (@sort $head:tt $results:tt { $($fields:tt)* } { $($reported:tt)* }
        $(#[doc = $doc:literal])* latest $name:ident : $type:ty, $($rest:tt)*
    ) => {
        $crate::counters! {
            @sort $head $results { $($fields)* { [$(#[doc = $doc])*] $name $type, latest } }
            { $($reported)* { [$(#[doc = $doc])*] $name $type, field } } $($rest)*
        }
    };
    (@sort $head:tt $results:tt { $($fields:tt)* } { $($reported:tt)* }
        $(#[doc = $doc:literal])* $name:ident : $type:ty, $($rest:tt)*
    ) => {
        $crate::counters! {
            @sort $head $results { $($fields)* { [$(#[doc = $doc])*] $name $type, counted } }
            { $($reported)* { [$(#[doc = $doc])*] $name $type, field } } $($rest)*
        }
    };
    (@sort $head:tt [] $fields:tt $reported:tt) => {
        $crate::counters! { @fields $head $fields }
    };
    (@sort $head:tt [$results:ident $(in $section:literal)?] $fields:tt $reported:tt) => {
        $crate::counters! { @fields $head $fields }
        $crate::counters! { @results $head $results $reported }
        $($crate::counters! { @section $head $results $section })?
    };

    (@fields [$(#[$attribute:meta])* $vis:vis struct $name:ident] {
        $({ [$(#[doc = $doc:literal])*] $field:ident $type:ty, $kind:ident })*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Debug, Default)]
        $vis struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl $crate::stats::Counter for $name {
            fn since(&self, earlier: &Self) -> Self {
                Self { $($field: $crate::counters!(@since $kind self.$field, earlier.$field),)* }
            }
            fn plus(&self, later: &Self) -> Self {
                Self { $($field: $crate::counters!(@plus $kind self.$field, later.$field),)* }
            }
        }
    };
    (@since counted $now:expr, $then:expr) => { $crate::stats::Counter::since(&$now, &$then) };
    (@since latest $now:expr, $then:expr) => { $now.clone() };
    (@plus counted $first:expr, $later:expr) => { $crate::stats::Counter::plus(&$first, &$later) };
    (@plus latest $first:expr, $later:expr) => { $later.clone() };

    (@results [
        $(#[doc = $doc:literal])* $(#[derive($($derive:ident),*)])? $vis:vis struct $name:ident
    ] $results:ident {
        $({ [$(#[doc = $text:literal])*] $key:ident $type:ty, $kind:ident $($method:tt)* })*
    }) => {
        $crate::results! {
            $(#[doc = $doc])*
            $vis struct $results {
                $($(#[doc = $text])* $key: $type,)*
            }
        }

        impl $name {
            $($crate::counters! { @method [$(#[doc = $text])*] $key $type, $kind $($method)* })*

            /// What results say of these counters.
            pub fn results(&self) -> $results {
                $results { $($key: $crate::counters!(@value $kind self $key),)* }
            }
        }
    };
    (@method [$($doc:tt)*] $key:ident $type:ty, field) => {};
    (@method [$($doc:tt)*] $key:ident $type:ty, method $this:ident $body:block) => {
        $($doc)*
        pub fn $key(&$this) -> $type $body
    };
    (@value field $this:ident $key:ident) => { $this.$key.clone() };
    (@value method $this:ident $key:ident) => { $this.$key() };

    (@section [$(#[$attribute:meta])* $vis:vis struct $name:ident] $results:ident $section:literal) => {
        impl $crate::stats::Section for $name {
            const NAME: &'static str = $section;
            type Results = $results;
            fn results(&self) -> $results {
                Self::results(self)
            }
        }
    };
}

/// `part / whole`, or nothing where the whole is nothing.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Results, Shape, Value};

    crate::counters! {
        /// What a test counts,
        /// in two lines.
        struct TestCounters: TestResults in "test" {
            /// Pages that were seen.
            pages: u64,
            /// Sum of their ages.
            unreported age_sum: f64,
            /// Mean age, if there was a page.
            fn age_mean(&self) -> Option<f64> {
                (self.pages > 0).then(|| self.age_sum / self.pages as f64)
            }
            /// By colour.
            unreported colours: [u64; 2],
            /// Centres at the end.
            latest centres: Vec<f64>,
            /// Not said.
            unreported latest secret: u64,
        }
    }

    fn counters(pages: u64, age_sum: f64, centre: f64) -> TestCounters {
        TestCounters { pages, age_sum, colours: [pages, 1], centres: vec![centre], secret: pages }
    }

    #[test]
    fn differences_and_sums_undo_each_other_and_the_latest_value_counts() {
        let (early, late) = (counters(2, 8.0, 0.5), counters(5, 20.0, 0.25));
        let window = late.since(&early);
        let expected = TestCounters { pages: 3, age_sum: 12.0, colours: [3, 0], centres: vec![0.25], secret: 5 };
        assert_eq!(window, expected);
        assert_eq!(early.plus(&window), late);
    }

    #[test]
    fn results_have_the_reported_keys_in_the_order_of_the_declaration() {
        let results = counters(4, 8.0, 0.5).results();
        let expected = Value::Table(vec![
            ("pages", Value::Count(4)),
            ("age_mean", Value::Real(2.0)),
            ("centres", Value::List(vec![Value::Real(0.5)])),
        ]);
        assert_eq!(results.value(), expected);
        assert_eq!(TestCounters::default().results().value().get("age_mean"), Some(&Value::Null));
    }

    #[test]
    fn a_declaration_describes_itself() {
        let description = TestResults::DESCRIPTION;
        assert_eq!(
            (description.name, description.text()),
            ("TestResults", "What a test counts, in two lines.".to_owned())
        );
        let keys: Vec<_> = description.keys.iter().map(|key| (key.name, key.text(), key.shape)).collect();
        assert_eq!(keys[0], ("pages", "Pages that were seen.".to_owned(), &Shape::Count));
        assert_eq!(keys[1].2, &Shape::RealOrNull);
        assert_eq!(keys[2].2, &Shape::List(&Shape::Real));
    }
}
