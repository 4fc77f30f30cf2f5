//! The part of the schema of results that is made from declarations: what stands in the sections of a run.
//!
//! `schema/results-v1.schema.json` holds it with the rest. A test compares the two, and writes the file anew where it is told
//! to: `ISOTHERM_SCHEMA=write cargo test -p isotherm-eval schema`.

use super::sections::sections;
use isotherm::stats::{Description, Key, SectionEntry, Shape};
use serde_json::{Map, Value, json};

/// The sections as properties of a run.
pub fn properties() -> Map<String, Value> {
    let property =
        |entry: &SectionEntry| json!({"description": entry.description.text(), "$ref": reference(entry.description)});
    sections().map(|entry| (entry.name.to_owned(), property(entry))).collect()
}

/// What these properties refer to, by name.
pub fn definitions() -> Map<String, Value> {
    let mut found = Map::new();
    sections().for_each(|entry| define(entry.description, &mut found));
    found
}

fn reference(description: &Description) -> String {
    format!("#/$defs/{}", description.name)
}

/// Adds a table, and the tables in it.
fn define(description: &'static Description, found: &mut Map<String, Value>) {
    let required = description.keys.iter().filter(|key| !matches!(key.shape, Shape::OptionalTable(_)));
    let table = json!({
        "description": description.text(),
        "type": "object",
        "required": required.map(|key| key.name).collect::<Vec<_>>(),
        "properties": description.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect::<Map<_, _>>(),
    });
    found.insert(description.name.to_owned(), table);
    for key in description.keys {
        if let Shape::Table(inner) | Shape::OptionalTable(inner) = key.shape {
            define(inner, found);
        }
    }
}

fn property(key: &Key) -> Value {
    let mut property = json!({"description": key.text()});
    let object = property.as_object_mut().expect("it was made as an object");
    if let Some(unit) = key.unit() {
        object.insert("unit".to_owned(), unit.into());
    }
    object.append(&mut values(key.shape, key.is_share()));
    property
}

/// What values of a shape are; `is_share` if they lie from 0 to 1.
fn values(shape: &Shape, is_share: bool) -> Map<String, Value> {
    let mut schema = match shape {
        Shape::Count => json!({"type": "integer", "minimum": 0}),
        Shape::Real => json!({"type": "number"}),
        Shape::RealOrNull => json!({"type": ["number", "null"]}),
        Shape::List(each) => json!({"type": "array", "items": values(each, is_share)}),
        Shape::Table(description) | Shape::OptionalTable(description) => json!({"$ref": reference(description)}),
    };
    if is_share && matches!(shape, Shape::Real | Shape::RealOrNull) {
        (schema["minimum"], schema["maximum"]) = (json!(0), json!(1));
    }
    schema.as_object().expect("it was made as an object").clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_schema_describes_the_sections_as_they_are_declared() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/results-v1.schema.json");
        let mut schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let before = schema.clone();
        for (name, definition) in definitions() {
            schema["$defs"][name] = definition;
        }
        for (name, property) in properties() {
            schema["$defs"]["RunResult"]["properties"][name] = property;
        }
        if std::env::var_os("ISOTHERM_SCHEMA").is_some_and(|what| what == "write") {
            std::fs::write(&path, format!("{schema:#}\n")).unwrap();
        } else {
            assert_eq!(before, schema, "declarations and schema differ: ISOTHERM_SCHEMA=write writes it anew");
        }
    }
}
