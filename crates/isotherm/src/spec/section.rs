//! Sections of a specification, each declared once: a struct with its defaults, and a row of the table for each key.
//!
//! A declaration gives the field, its type, its default, what it takes, and, where it has one, its option of the command
//! line. From it come the struct, TOML and JSON, the check of ranges, help, schema and every list of keys.

use crate::registry::{Kind, Parameter, SpecError, closest};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Declares a section: `/// help` and `field: Type = "default", kind;` for each key, `none "what then"` in place of a default
/// for an `Option`, and behind the kind what else there is to say: `unit "pages"`, `option "page-size"`.
///
/// ```
/// use isotherm::registry::Kind;
///
/// isotherm::section! {
///     /// Cleaning.
///     pub struct Cleaning("cleaning") {
///         /// Free blocks that are kept.
///         floor: Option<u32> = none "as many as the FTL needs", Kind::integer(1..=100), unit "blocks";
///         /// Clean in idle time too.
///         idle: bool = "false", Kind::Boolean, option "idle";
///     }
/// }
/// assert_eq!(Cleaning::TABLE[0].key, "cleaning.floor");
/// assert_eq!(Cleaning::TABLE[1].help, "Clean in idle time too.");
/// assert_eq!(Cleaning::default(), Cleaning { floor: None, idle: false });
/// ```
#[macro_export]
macro_rules! section {
    (
        $(#[$outer:meta])*
        pub struct $name:ident($section:literal) {
            $(
                $(#[doc = $help:literal])+
                $field:ident: $type:ty = $($default:literal)? $(none $absent:literal)?, $kind:expr
                    $(, $more:ident $argument:literal)*;
            )*
        }
    ) => {
        $(#[$outer])*
        #[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $(
                $(#[doc = $help])+
                $(#[doc = concat!("\n\nDefault: ", $absent, ".")] #[serde(skip_serializing_if = "Option::is_none")])?
                $(#[doc = concat!("\n\nDefault: `", $default, "`.")])?
                pub $field: $type,
            )*
        }

        impl $name {
            /// The keys of this section.
            pub const TABLE: &'static [$crate::registry::Parameter] = &[
                $(
                    $crate::registry::Parameter::new(
                        concat!($section, ".", stringify!($field)),
                        $kind,
                        concat!($($default)?),
                    )
                    $(.absent($absent))?
                    $(.$more($argument))*
                    .help(concat!($($help),+).trim_ascii()),
                )*
            ];
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: {
                        $($crate::spec::read::<$type>($default).expect("a default is of its field's type"))?
                        $({ let _ = $absent; None })?
                    },)*
                }
            }
        }
    };
}

/// A specification of sections.
pub trait Specification: Serialize + DeserializeOwned {
    /// The tables of its sections.
    const TABLES: &'static [&'static [Parameter]];
    /// Sections that may be given as their main key alone: `ftl = "page"` is `ftl.name`.
    const MAIN_KEYS: &'static [(&'static str, &'static str)];

    /// The row of a dotted key.
    fn row(key: &str) -> Option<&'static Parameter> {
        Self::rows().find(|row| row.key == key)
    }

    /// A dotted key in full: `ftl` is `ftl.name`.
    fn full_key(key: &str) -> String {
        match Self::MAIN_KEYS.iter().find(|(section, _)| *section == key) {
            Some((section, main)) => format!("{section}.{main}"),
            None => key.to_owned(),
        }
    }

    /// Every key, in order.
    fn rows() -> impl Iterator<Item = &'static Parameter> {
        Self::TABLES.iter().copied().flatten()
    }
}

/// The value of a key as TOML: numbers and booleans are taken as such, anything else as text.
pub(super) fn value(text: &str) -> toml::Value {
    match (text.parse::<i64>(), text.parse::<f64>(), text.parse::<bool>()) {
        (Ok(whole), _, _) => toml::Value::Integer(whole),
        (_, Ok(real), _) if real.is_finite() => toml::Value::Float(real),
        (_, _, Ok(truth)) => toml::Value::Boolean(truth),
        _ => toml::Value::String(text.to_owned()),
    }
}

/// A field's value from its text; `None` if it is of another type.
pub fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    value(text).try_into().ok()
}

/// A value that its key takes, as the key's field reads it: of several forms of a number, the plain one.
fn typed(row: &Parameter, value: &toml::Value) -> toml::Value {
    let text = row.kind.canonical(&text_of(value));
    match row.kind {
        Kind::Integer { .. } | Kind::Real { .. } | Kind::Boolean => self::value(&text),
        _ => toml::Value::String(text),
    }
}

/// A value as the user writes it.
pub(super) fn text_of(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Checks that a table has only keys of the specification, values that they take, and of keys that exclude each other one; and
/// brings every value into the form that its field reads.
///
/// # Errors
/// An unknown key, a value that its key does not take, or two keys that exclude each other; the error names the key.
pub(super) fn check_table<T: Specification>(table: &mut toml::Table) -> Result<(), SpecError> {
    for (section, value) in table.iter_mut() {
        let Some(fields) = value.as_table_mut() else { return Err(unknown::<T>(section)) };
        for (field, value) in fields.iter_mut() {
            let key = format!("{section}.{field}");
            let row = T::row(&key).ok_or_else(|| unknown::<T>(&key))?;
            row.check(&text_of(value))?;
            *value = typed(row, value);
        }
        if !T::rows().any(|row| row.key.split('.').next() == Some(section)) {
            return Err(unknown::<T>(section));
        }
    }
    let is_given = |key: &str| {
        let (section, field) = key.split_once('.')?;
        table.get(section)?.get(field)
    };
    let mut excluding = T::rows().filter(|row| !row.excludes.is_empty());
    match excluding.find(|row| is_given(row.key).is_some() && is_given(row.excludes).is_some()) {
        Some(row) => Err(SpecError::new(format!("{} and {}", row.key, row.excludes), "both are given", "give one")),
        None => Ok(()),
    }
}

/// Checks the values of a specification that was made in Rust.
///
/// # Errors
/// A value that its key does not take.
pub fn check<T: Specification>(spec: &T) -> Result<(), SpecError> {
    let too_large = |error: toml::ser::Error| SpecError::new("spec", error.to_string(), "give smaller numbers");
    check_table::<T>(&mut toml::Table::try_from(spec).map_err(too_large)?)
}

pub(super) fn unknown<T: Specification>(key: &str) -> SpecError {
    let section = key.split('.').next().unwrap_or(key);
    let fix = match closest(key, T::rows().map(|row| row.key)) {
        Some(near) => format!("did you mean {near}?"),
        None => {
            let of_section: Vec<_> =
                T::rows().map(|r| r.key).filter(|k| k.split('.').next() == Some(section)).collect();
            let mut sections: Vec<_> = T::rows().filter_map(|row| row.key.split('.').next()).collect();
            sections.dedup();
            let there_are = if of_section.is_empty() { sections } else { of_section };
            format!("choose from {}", there_are.join(", "))
        }
    };
    SpecError::new(key, "unknown key", fix)
}
