//! The JSON Schema of a specification, made from the table of its keys.
//!
//! It describes the plain form of each value: whole numbers as numbers, sizes and shares as numbers or as text with a unit. The
//! reader also takes other forms of a number (`4Ki`). Ranges of what is written as text are checked by the reader alone.
//!
//! `schema/spec-v1.schema.json` holds it. A test compares the two, and writes the file anew where it is told to:
//! `ISOTHERM_SCHEMA=write cargo test -p isotherm-cli schema`. What it takes and refuses is compared with what the reader does by
//! `python/tests/test_schemas.py`, with a validator that is not ours.

use crate::list::names;
use isotherm::registry::{BELOW_ONE, Grain, Kind, Parameter};
use isotherm::spec::Specification;
use isotherm_sfs::SystemSpec;
use serde_json::{Map, Value, json};

const SIZE: &str = r"^[0-9]+(\.[0-9]+)? ?(|B|KiB|MiB|GiB|TiB|PiB|kB|KB|MB|GB|TB|PB|K|M)$";
const SHARE: &str = r"^[0-9]+(\.[0-9]*)?%?$";

/// What a key takes beside the policies of its registry, as a pattern.
const BESIDE_POLICIES: [(&str, &str); 3] =
    [("dram.buffer", "none"), ("log.below", "none"), ("dram.split", r"[0-9]+(\.[0-9]+)?%")];

/// The schema.
pub fn schema() -> Value {
    let sections = SystemSpec::TABLES.iter().map(|rows| {
        let name = rows[0].key.split('.').next().expect("a key begins with its section");
        (name.to_owned(), section(name, rows))
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "isotherm specification, version 1",
        "description": "A simulated SSD, and perhaps a log on it: what isotherm run --spec reads, as TOML or JSON values.",
        "type": "object",
        "additionalProperties": false,
        "properties": sections.collect::<Map<_, _>>(),
    })
}

fn section(name: &str, rows: &[Parameter]) -> Value {
    let field = |row: &Parameter| (row.key[name.len() + 1..].to_owned(), key(row));
    let excludes: Vec<Value> = rows
        .iter()
        .filter(|row| !row.excludes.is_empty())
        .map(|row| json!({"not": {"required": [row.key[name.len() + 1..], row.excludes[name.len() + 1..]]}}))
        .collect();
    let mut object = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": rows.iter().map(field).collect::<Map<_, _>>(),
    });
    if !excludes.is_empty() {
        object["allOf"] = excludes.into();
    }
    let main = SystemSpec::MAIN_KEYS.iter().find(|(section, _)| *section == name);
    match main.and_then(|(_, main)| rows.iter().find(|row| row.key[name.len() + 1..] == **main)) {
        Some(main) => json!({"anyOf": [object, key(main)]}),
        None => object,
    }
}

/// What a key takes, with its help, unit and default.
fn key(row: &Parameter) -> Value {
    let mut schema = values(row, &row.kind);
    schema["description"] = row.help.into();
    if !row.unit.is_empty() {
        schema["unit"] = row.unit.into();
    }
    let default = row.kind.canonical(row.default);
    match row.kind {
        _ if row.default.is_empty() => {}
        Kind::Integer { .. } | Kind::Real { .. } | Kind::Boolean => {
            schema["default"] = serde_json::from_str(&default).expect("a default is a JSON value");
        }
        _ => schema["default"] = default.into(),
    }
    schema
}

fn values(row: &Parameter, kind: &Kind) -> Value {
    match *kind {
        Kind::Integer { least, most, grain } => whole(least, most, grain),
        Kind::Real { least, most } => number(least, most),
        Kind::Share { least, most } => {
            let fraction = if most == BELOW_ONE {
                json!({"type": "number", "minimum": least, "exclusiveMaximum": 1})
            } else {
                number(least, most.min(1.0))
            };
            json!({"anyOf": [fraction, {"type": "string", "pattern": SHARE}]})
        }
        Kind::Bytes { least, most, grain } => {
            json!({"anyOf": [whole(least, most, grain), {"type": "string", "pattern": SIZE}]})
        }
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::Choice(names) => json!({"enum": names}),
        Kind::Policy(list) => {
            let mut allowed: Vec<&str> = names(list).expect("a key names a registry that can be listed");
            allowed.extend(BESIDE_POLICIES.iter().filter(|(key, _)| *key == row.key).map(|(_, pattern)| *pattern));
            json!({"type": "string", "pattern": format!("^({})(:.+)?$", allowed.join("|"))})
        }
        Kind::Text(_) => json!({"type": "string"}),
        Kind::Any(kinds) => json!({"anyOf": kinds.iter().map(|kind| values(row, kind)).collect::<Vec<_>>()}),
    }
}

fn whole(least: u64, most: u64, grain: Grain) -> Value {
    match grain {
        Grain::Any => json!({"type": "integer", "minimum": least, "maximum": most}),
        Grain::Multiple(of) => json!({"type": "integer", "minimum": least, "maximum": most, "multipleOf": of}),
        Grain::PowerOfTwo => {
            let powers = (0..64).map(|log2| 1u64 << log2).filter(|power| (least..=most).contains(power));
            json!({"enum": powers.collect::<Vec<_>>()})
        }
    }
}

fn number(least: f64, most: f64) -> Value {
    let mut schema = json!({"type": "number"});
    let bound = if least == f64::MIN_POSITIVE { ("exclusiveMinimum", 0.0) } else { ("minimum", least) };
    schema[bound.0] = bound.1.into();
    if most < f64::MAX {
        schema["maximum"] = most.into();
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_schema_is_that_of_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/spec-v1.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("ISOTHERM_SCHEMA").is_some_and(|what| what == "write") {
            std::fs::write(&path, text).unwrap();
        } else {
            let before = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(before == text, "table and schema differ: ISOTHERM_SCHEMA=write writes it anew");
        }
    }
}
