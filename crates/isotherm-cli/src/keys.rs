//! Options that set one key of a specification, made from the specification's table: a key that names an option there has it
//! here, with its kind, range, default and help.
//!
//! `compare` takes several values of the keys that [`VARIED`] names, separated by commas; `run` takes one.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use isotherm::registry::{Kind, Parameter, SpecError};
use isotherm::spec::{Given, Specification};
use isotherm_eval::compare::{Choice, PolicyList, VARIED};
use std::marker::PhantomData;

/// The key whose option also takes `none`.
const PRESET: &str = "timing.preset";

/// What was given of the options of a specification: for each key its values, as text that the key's kind takes.
#[derive(Clone, Debug)]
pub struct KeyOptions<T> {
    given: Vec<(&'static Parameter, Vec<String>)>,
    specification: PhantomData<T>,
}

/// The rows of the table that have an option, each with its name.
fn rows<T: Specification>() -> impl Iterator<Item = (&'static Parameter, &'static str)> {
    T::rows().filter_map(|row| Some((row, row.option?)))
}

/// Whether `compare` takes several values of a key.
fn is_varied(key: &str) -> bool {
    VARIED.iter().any(|(varied, _)| *varied == key)
}

/// What stands for the value in help.
fn value_name(row: &Parameter) -> &'static str {
    match row.kind {
        Kind::Integer { .. } | Kind::Real { .. } => "N",
        Kind::Share { .. } if is_varied(row.key) => "SHARE,...",
        Kind::Share { .. } => "SHARE",
        Kind::Bytes { .. } => "SIZE",
        Kind::Boolean => "true|false",
        Kind::Choice(_) => "HOW",
        Kind::Policy(_) if is_varied(row.key) => "NAME[:key=value,...],...",
        Kind::Policy(_) => "NAME",
        Kind::Text(_) | Kind::Any(_) => "VALUE",
    }
}

/// The values that a text gives a key, checked.
fn values(row: &Parameter, text: &str) -> Result<Vec<String>, SpecError> {
    let values: Vec<String> = match row.kind {
        _ if !is_varied(row.key) => vec![text.to_owned()],
        Kind::Policy(_) => text.parse::<PolicyList>()?.0.iter().map(ToString::to_string).collect(),
        _ => text.split(',').map(|part| part.trim().to_owned()).collect(),
    };
    values.iter().try_for_each(|value| row.check(value))?;
    Ok(values)
}

fn argument(row: &'static Parameter, option: &'static str) -> Arg {
    let check = move |text: &str| values(row, text).map_err(|error| format!("{}; {}", error.problem, error.fix));
    let mut details = match row.kind {
        Kind::Policy(_) if row.key == PRESET => {
            " (see `isotherm list timings`), or none for a device without a clock".to_owned()
        }
        Kind::Policy(table) => format!(" (see `isotherm list {table}`)"),
        _ => format!(" ({})", row.allowed()),
    };
    if is_varied(row.key) {
        details.push_str("; in `compare` several");
    }
    let help = format!("{}{details} [default: {}]", row.help.trim_end_matches('.'), row.default_words());
    let section = row.key.split('.').next().unwrap_or_default();
    Arg::new(option)
        .long(option)
        .value_name(value_name(row))
        .value_parser(ValueParser::from(check))
        .allow_hyphen_values(true)
        .action(ArgAction::Set)
        .help_heading(if section == "replay" { "The replay" } else { "The device" })
        .help(help)
}

impl<T: Specification> KeyOptions<T> {
    /// Whether an option was given.
    pub fn given(&self, option: &str) -> bool {
        self.given.iter().any(|(row, _)| row.option == Some(option))
    }

    /// The first key that was given several values, with their number.
    pub fn several(&self) -> Option<(&'static Parameter, usize)> {
        self.given.iter().map(|(row, values)| (*row, values.len())).find(|(_, values)| *values > 1)
    }

    /// Keys and values as `--set` takes them, but for the keys that `compare` takes several values of.
    pub fn sets(&self) -> impl Iterator<Item = String> + '_ {
        self.values().filter(|given| !is_varied(&given.key)).map(|given| format!("{}={}", given.key, given.value))
    }

    /// Each key with what its option says; of several values the first. `--timing none` is no set of latencies: it is a device
    /// without a clock.
    pub fn values(&self) -> impl Iterator<Item = Given> + '_ {
        self.given.iter().map(|(row, values)| {
            let (key, value) = match (row.key, values[0].as_str()) {
                (PRESET, "none") => ("timing.mode", "none"),
                other => other,
            };
            let option = row.option.expect("rows with an option alone are here");
            let several = match values.len() {
                1 => String::new(),
                count => format!(", the first of {count} values"),
            };
            Given { key: key.to_owned(), value: value.to_owned(), origin: format!("--{option}{several}") }
        })
    }

    /// The choices between which `compare` compares, axis by axis, in the order in which they multiply. Over-provisioning and
    /// spare factor are one axis.
    pub fn axes(&self) -> Vec<(&'static str, Vec<Choice>)> {
        let mut axes = Vec::new();
        for (key, read) in &VARIED {
            let values = self.given.iter().find(|(row, _)| row.key == *key).map(|(_, values)| values);
            let read = |value: &String| read(value).expect("values were checked when they were given");
            axes.push((*key, values.into_iter().flatten().map(read).collect()));
        }
        axes
    }
}

impl<T: Specification> FromArgMatches for KeyOptions<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |(row, option)| Some((row, matches.get_one::<Vec<String>>(option)?.clone()));
        Ok(Self { given: rows::<T>().filter_map(given).collect(), specification: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: Specification> Args for KeyOptions<T> {
    fn augment_args(command: Command) -> Command {
        rows::<T>().fold(command, |command, (row, option)| command.arg(argument(row, option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm_eval::ReplaySpec;
    use isotherm_sfs::SystemSpec;

    fn enforced<T: Specification>() -> usize {
        let command = || KeyOptions::<T>::augment_args(Command::new("test"));
        for (row, option) in rows::<T>() {
            let given = |value: &str| command().try_get_matches_from(["test", &format!("--{option}"), value]);
            if !row.default.is_empty() {
                let keys = KeyOptions::<T>::from_arg_matches(&given(row.default).unwrap()).unwrap();
                assert!(keys.given(option), "--{option}");
                let values: Vec<Given> = keys.values().collect();
                assert_eq!((values[0].key.as_str(), values[0].value.as_str()), (row.key, row.default));
            }
            for refused in row.kind.edges().1 {
                let error = given(&refused).map(|_| ()).unwrap_err().to_string();
                assert!(error.contains(option), "--{option} {refused}: {error}");
            }
        }
        rows::<T>().count()
    }

    #[test]
    fn every_key_that_names_an_option_has_it_and_its_range_holds() {
        assert!(enforced::<SystemSpec>() >= 18, "the table of the device has lost options");
        assert_eq!(enforced::<ReplaySpec>(), 5);
        for (key, _) in VARIED {
            assert!(rows::<SystemSpec>().any(|(row, _)| row.key == key), "{key} has no option");
        }
    }

    #[test]
    fn keys_that_are_compared_take_several_values_and_others_one() {
        let keys = |arguments: &[&str]| {
            let command = KeyOptions::<SystemSpec>::augment_args(Command::new("test"));
            KeyOptions::<SystemSpec>::from_arg_matches(&command.get_matches_from([&["test"], arguments].concat()))
                .unwrap()
        };
        let several = keys(&["--op", "7%, 15%", "--victim", "d_choices:d=3,seed=1,greedy", "--drive", "ssd_m"]);
        assert_eq!(several.several().map(|(row, values)| (row.key, values)), Some(("device.over_provisioning", 2)));
        let axes = several.axes();
        let of = |key: &str| axes.iter().find(|axis| axis.0 == key).unwrap().1.len();
        assert_eq!((of("device.over_provisioning"), of("gc.victim"), of("log.name")), (2, 2, 0));
        assert_eq!(several.sets().collect::<Vec<_>>(), ["log.drive=ssd_m"]);
        assert_eq!(keys(&["--timing", "none"]).sets().collect::<Vec<_>>(), ["timing.mode=none"]);
    }
}
