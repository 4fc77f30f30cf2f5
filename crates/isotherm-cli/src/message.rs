//! Messages for who types a command: behind each key of the specification stands the option that sets it.
//!
//! Errors of the library name keys, which a file, a program and the command line share. The options come from the same table.

use isotherm::spec::Specification as _;
use isotherm_eval::ReplaySpec;
use isotherm_sfs::SystemSpec;

/// `message` with the option behind each key that has one: `device.over_provisioning (--op)`.
pub fn with_options(message: &str) -> String {
    with_names(message, |option| format!("(--{option})"))
}

/// `message` with what `said` makes of the option behind each key that has one.
pub fn with_names(message: &str, said: impl Fn(&str) -> String) -> String {
    let options = SystemSpec::rows().filter_map(|row| Some((row.key, row.option?)));
    let replay = ReplaySpec::rows().filter_map(|row| Some((row.key, row.option?)));
    let mut rows: Vec<_> = options.chain(replay).collect();
    // The longest first, as a key may begin another.
    rows.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    let is_part = |letter: char| letter.is_alphanumeric() || "_.-=".contains(letter);
    let mut text = String::new();
    let mut rest = message;
    while let Some(next) = rest.chars().next() {
        let begins = !text.ends_with(is_part);
        // A full stop may end a sentence, but not stand within a key.
        let ends = |after: &str| !after.trim_start_matches('.').starts_with(is_part) && !after.starts_with(" (--");
        let found = rows.iter().find(|(key, _)| begins && rest.strip_prefix(key).is_some_and(ends));
        if let Some((key, option)) = found {
            text.push_str(&format!("{key} {}", said(option)));
            rest = &rest[key.len()..];
        } else {
            text.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_get_their_options_and_other_words_none() {
        for (message, expected) in [
            ("device.spare: out of range", "device.spare (--spare): out of range"),
            ("give more device.over_provisioning.", "give more device.over_provisioning (--op)."),
            ("device.spare_bytes and gc.floor", "device.spare_bytes and gc.floor"),
            ("device.spare (--spare)", "device.spare (--spare)"),
            ("gc.victim=fifo, mydevice.spare", "gc.victim=fifo, mydevice.spare"),
        ] {
            assert_eq!(with_options(message), expected);
        }
    }
}
