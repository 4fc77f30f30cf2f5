//! Every parameter of every log: its default and the bounds of its range are accepted, what lies beyond is refused.

use isotherm::registry::{Kind, audit};
use isotherm::spec::Specification as _;
use isotherm_sfs::SystemSpec;
use isotherm_sfs::drive::DRIVES;
use isotherm_sfs::options::LOGS;

#[test]
fn every_range_is_enforced_as_it_is_declared() {
    assert_eq!([audit(LOGS), audit(DRIVES)].concat(), Vec::<String>::new());
}

/// The names between backquotes of an error that lists what a type takes.
fn listed(error: &str) -> Vec<&str> {
    error.split("expected").nth(1).unwrap_or_default().split('`').skip(1).step_by(2).collect()
}

#[test]
fn a_key_takes_the_names_of_its_type_and_no_others() {
    let choices = SystemSpec::rows().filter_map(|row| match row.kind {
        Kind::Choice(names) => Some((row.key, names)),
        _ => None,
    });
    for (key, names) in choices {
        let (section, field) = key.split_once('.').unwrap();
        for name in names {
            let spec = SystemSpec::from_toml("", &[format!("{key}={name}")]).unwrap();
            assert!(spec.to_toml().contains(&format!("{field} = \"{name}\"")), "{key}={name}");
        }
        // The type itself, without the check of the table before it.
        let text = format!("[{section}]\n{field} = \"no_such_name\"");
        let error = toml::from_str::<SystemSpec>(&text).unwrap_err().to_string();
        let (mut of_type, mut of_table) = (listed(&error), names.to_vec());
        of_type.sort_unstable();
        of_table.sort_unstable();
        assert_eq!(of_type, of_table, "{key}: {error}");
    }
}
