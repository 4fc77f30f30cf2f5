//! A specification as TOML that explains itself: every key with its value, range, unit and origin.

use super::section::Specification;
use crate::registry::{Parameter, SpecError};
use std::fmt::Write as _;

/// Every key of `spec` as TOML that reads back as the same specification. Before each stands a comment: what it is, what it
/// takes, and where its value comes from, as `origin` says of a key (`None` for the default). A key without a value, and a
/// section that is not there, stand as comments, with the value that `in_force` knows of.
///
/// # Errors
/// Numbers that TOML has no room for.
pub fn with_comments<T: Specification>(
    spec: &T,
    origin: impl Fn(&str) -> Option<String>,
    in_force: impl Fn(&str) -> Option<String>,
) -> Result<String, SpecError> {
    let table = toml::Table::try_from(spec)
        .map_err(|error| SpecError::new("spec", error.to_string(), "give smaller numbers"))?;
    let mut text = String::new();
    for rows in T::TABLES.iter().filter(|rows| !rows.is_empty()) {
        let section = rows[0].key.split('.').next().expect("a key begins with its section");
        let fields = table.get(section).and_then(toml::Value::as_table);
        let mark = if fields.is_some() { "" } else { "# " };
        if !text.is_empty() {
            text.push('\n');
        }
        if fields.is_none() {
            let _ = writeln!(text, "# There is no [{section}]. A key of it makes one.");
        }
        let _ = writeln!(text, "{mark}[{section}]");
        for row in *rows {
            let name = &row.key[section.len() + 1..];
            let value = fields.and_then(|fields| fields.get(name));
            comment(&mut text, row, value.is_some(), origin(row.key));
            let _ = match (value, in_force(row.key)) {
                (Some(value), _) => writeln!(text, "{name} = {value}"),
                (None, Some(value)) => writeln!(text, "# {name} = {value}"),
                (None, None) => writeln!(text, "# {name} ="),
            };
        }
    }
    Ok(text)
}

/// What a key is, what it takes, and where its value comes from.
fn comment(text: &mut String, row: &Parameter, is_set: bool, origin: Option<String>) {
    let end = if row.help.ends_with('.') { "" } else { "." };
    let origin = match origin {
        _ if !is_set => format!("not given: {}", row.default_words()),
        Some(origin) => format!("from {origin}"),
        None => "the default".to_owned(),
    };
    let _ = writeln!(text, "# {}{end} Takes {}; {origin}.", row.help, row.allowed());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::DeviceSpec;

    #[test]
    fn what_is_printed_reads_back_and_names_every_key_with_its_range() {
        let text = "placement = \"dac:regions=3\"\n[device]\nlogical_size = \"1GiB\"\nover_provisioning = \"150%\"\n";
        let spec = DeviceSpec::from_toml(text, &["timing.read_ns=7".to_owned()]).unwrap();
        let origin = |key: &str| (key == "timing.read_ns").then(|| "--set".to_owned());
        let in_force = |key: &str| (key == "timing.program_ns").then(|| "9".to_owned());
        let printed = with_comments(&spec, origin, in_force).unwrap();
        assert_eq!(DeviceSpec::from_toml(&printed, &[]).unwrap(), spec);
        for row in DeviceSpec::rows() {
            let (section, name) = row.key.split_once('.').unwrap();
            let section = printed.split(&format!("[{section}]\n")).nth(1).unwrap();
            let is_key = |line: &str| line.trim_start_matches("# ").starts_with(&format!("{name} ="));
            let comment = section.lines().zip(section.lines().skip(1)).find(|(_, line)| is_key(line)).unwrap().0;
            assert!(comment.starts_with("# ") && comment.contains(&row.allowed()), "{}: {comment}", row.key);
            assert_eq!(comment.ends_with("; from --set."), row.key == "timing.read_ns", "{comment}");
        }
        assert!(printed.contains("# program_ns = 9\n") && printed.contains("\nread_ns = 7\n"), "{printed}");
        assert!(printed.contains("# floor =\n") && printed.contains("not given: the streams that"), "{printed}");
    }
}
