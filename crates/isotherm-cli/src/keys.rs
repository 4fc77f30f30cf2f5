//! Options that set one key of the specification, made from the specification's table: a key that names an option there has it
//! here, with its kind, range, default and help.
//!
//! Keys that `compare` takes several values of, and those that exclude each other, have options of their own.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use isotherm::registry::{Kind, Parameter};
use isotherm::spec::Specification as _;
use isotherm_sfs::SystemSpec;

/// Options that other structures declare.
const ELSEWHERE: [&str; 9] = ["ftl", "buffer", "split", "log", "below", "placement", "victim", "op", "spare"];

/// The key whose option also takes `none`.
const PRESET: &str = "timing.preset";

/// What was given of these options, as text that the key's kind takes.
#[derive(Clone, Debug, Default)]
pub struct KeyOptions(Vec<(&'static Parameter, String)>);

/// The rows of the table that have an option here, each with its name.
fn rows() -> impl Iterator<Item = (&'static Parameter, &'static str)> {
    let named = SystemSpec::rows().filter_map(|row| Some((row, row.option?)));
    named.filter(|(_, option)| !ELSEWHERE.contains(option))
}

/// What stands for the value in help.
fn value_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Integer { .. } | Kind::Real { .. } => "N",
        Kind::Share { .. } => "SHARE",
        Kind::Bytes { .. } => "SIZE",
        Kind::Boolean => "true|false",
        Kind::Choice(_) => "HOW",
        Kind::Policy(_) => "NAME",
        Kind::Text(_) | Kind::Any(_) => "VALUE",
    }
}

fn argument(row: &'static Parameter, option: &'static str) -> Arg {
    let check = move |text: &str| match row.check(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(format!("{}; {}", error.problem, error.fix)),
    };
    let details = match row.kind {
        Kind::Policy(_) if row.key == PRESET => {
            " (see `isotherm list timings`), or none for a device without a clock".to_owned()
        }
        Kind::Policy(table) => format!(" (see `isotherm list {table}`)"),
        Kind::Choice(_) => String::new(),
        _ => format!(" ({})", row.allowed()),
    };
    let help = format!("{}{details} [default: {}]", row.help.trim_end_matches('.'), row.default_words());
    Arg::new(option)
        .long(option)
        .value_name(value_name(&row.kind))
        .value_parser(ValueParser::from(check))
        .allow_hyphen_values(true)
        .action(ArgAction::Set)
        .help_heading("The device")
        .help(help)
}

impl KeyOptions {
    /// Whether an option was given.
    pub fn given(&self, option: &str) -> bool {
        self.0.iter().any(|(row, _)| row.option == Some(option))
    }

    /// Keys and values as `--set` takes them. `--timing none` is no set of latencies: it is a device without a clock.
    pub fn sets(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(row, text)| match (row.key, text.as_str()) {
            (PRESET, "none") => "timing.mode=none".to_owned(),
            (key, text) => format!("{key}={text}"),
        })
    }

    /// Each key with what its option says.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Option<String>)> + '_ {
        self.0.iter().map(|(row, text)| (row.key, Some(text.clone())))
    }
}

impl FromArgMatches for KeyOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |(row, option)| Some((row, matches.get_one::<String>(option)?.clone()));
        Ok(Self(rows().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for KeyOptions {
    fn augment_args(command: Command) -> Command {
        rows().fold(command, |command, (row, option)| command.arg(argument(row, option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_names_an_option_has_it_and_its_range_holds() {
        let command = || KeyOptions::augment_args(Command::new("test"));
        assert!(rows().count() >= 9, "the table has lost options");
        for (row, option) in rows() {
            let given = |value: &str| command().try_get_matches_from(["test", &format!("--{option}"), value]);
            if !row.default.is_empty() {
                let keys = KeyOptions::from_arg_matches(&given(row.default).unwrap()).unwrap();
                assert!(keys.given(option), "--{option}");
                assert_eq!(keys.sets().collect::<Vec<_>>(), [format!("{}={}", row.key, row.default)]);
            }
            if let Kind::Integer { most, .. } | Kind::Bytes { most, .. } = row.kind {
                let error = given(&(u128::from(most) * 2).to_string()).unwrap_err().to_string();
                assert!(error.contains(option) && error.contains("allowed"), "{error}");
            }
        }
    }

    #[test]
    fn no_latencies_are_no_clock() {
        let matches = KeyOptions::augment_args(Command::new("test")).get_matches_from(["test", "--timing", "none"]);
        let sets: Vec<String> = KeyOptions::from_arg_matches(&matches).unwrap().sets().collect();
        assert_eq!(sets, ["timing.mode=none"]);
    }
}
