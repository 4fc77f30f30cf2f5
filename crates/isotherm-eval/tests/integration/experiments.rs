//! What the project's experiment files say, against what they set and what is checked in beside them.

use std::path::{Path, PathBuf};

/// The project's experiments, each with its file's name and its table.
fn experiments() -> Vec<(String, toml::Table)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let read = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(file).unwrap().parse().unwrap())
    };
    files.iter().map(read).collect()
}

/// The numbers of a text. One behind a letter (`ext4`) is part of a name; commas part thousands.
fn numbers(text: &str) -> Vec<f64> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_fraction = first == '.' && before == ' ' && rest[1..].starts_with(|next: char| next.is_ascii_digit());
        if !first.is_ascii_digit() && !is_fraction {
            before = first;
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if !before.is_alphabetic() && before != '_' {
            let digits = word.trim_end_matches(['.', ',']).replace(',', "");
            found.push(digits.parse().unwrap_or(f64::NAN));
        }
        before = '0';
        rest = after;
    }
    found
}

/// The numbers that an experiment sets: in every text of its file but its findings, and what it quotes under `value` or `change`, also
/// in per cent and as the per cent above or below one.
fn settings(value: &toml::Value, key: &str, found: &mut Vec<f64>) {
    match value {
        toml::Value::Table(table) => {
            table.iter().filter(|(key, _)| *key != "findings").for_each(|(key, value)| settings(value, key, found));
        }
        toml::Value::Array(list) => list.iter().for_each(|value| settings(value, key, found)),
        toml::Value::String(text) => found.extend(numbers(text)),
        toml::Value::Integer(number) => found.push(*number as f64),
        toml::Value::Float(number) => {
            found.push(*number);
            if key == "value" {
                found.extend([number * 100.0, (number - 1.0).abs() * 100.0]);
            }
        }
        _ => {}
    }
}

/// The numbers that stand in a finding as they are and are no settings.
fn bare(finding: &str, settings: &[f64]) -> Vec<f64> {
    let mut text = String::new();
    let mut rest = finding;
    while let Some((before, braced)) = rest.split_once('{') {
        text.push_str(before);
        rest = braced.split_once('}').expect("a brace that is closed").1;
    }
    text.push_str(rest);
    let is_set = |number: &f64| settings.iter().any(|set| (set - number).abs() <= 1e-9 * set.abs());
    numbers(&text).into_iter().filter(|number| !is_set(number)).collect()
}

#[test]
fn no_finding_says_a_number_that_is_not_computed() {
    let table: toml::Table = "label = \"7 %, ext4\"\n[[published]]\nvalue = 1.438".parse().unwrap();
    let mut set = Vec::new();
    settings(&toml::Value::Table(table), "", &mut set);
    assert_eq!(bare("At 7 % ext4 writes {wa | a=7.5} times (paper: 43.8 %, 1.438).", &set), [0.0; 0]);
    assert_eq!(bare("It writes .5 % less, 1,024 times, and {x} 9.25.", &set), [0.5, 1024.0, 9.25]);

    let mut seen = 0;
    let mut wrong = Vec::new();
    for (name, table) in experiments() {
        let findings = table.get("findings").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let mut set = Vec::new();
        settings(&toml::Value::Table(table), "", &mut set);
        for finding in &findings {
            seen += 1;
            let finding = finding.as_str().unwrap();
            let numbers = bare(finding, &set);
            if !numbers.is_empty() {
                wrong.push(format!("{name}: {numbers:?} in \"{}...\"", finding.chars().take(60).collect::<String>()));
            }
        }
    }
    assert!(wrong.is_empty(), "put what is measured into braces (CONTRIBUTING.md):\n{}", wrong.join("\n"));
    assert!(seen > 50, "{seen} findings were looked at");
}

/// Every number that an experiment quotes is a row of the page beside the experiments, with ours or with "not run".
#[test]
fn every_published_number_has_its_row_on_the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/README.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut missing = Vec::new();
    let mut seen = 0;
    for (name, table) in experiments() {
        let entries = |table: &toml::Table| {
            table.get("published").and_then(toml::Value::as_array).cloned().unwrap_or_default().into_iter()
        };
        let text = |entry: &toml::Value, key: &str| entry[key].as_str().unwrap().to_owned();
        let of_runs = entries(&table).map(|entry| (text(&entry, "figure"), text(&entry, "what")));
        let of_hotness = table.get("hotness").and_then(toml::Value::as_table).into_iter().flat_map(entries);
        let of_hotness = of_hotness.filter(|entry| entry.get("change").is_some()).map(|entry| {
            (text(&entry, "figure"), format!("{}, {}: change", text(&entry, "published_trace"), text(&entry, "claim")))
        });
        for (figure, what) in of_runs.chain(of_hotness) {
            seen += 1;
            let row = format!("]({name}) | {figure} | {what} |");
            if !page.contains(&row) {
                missing.push(row);
            }
        }
    }
    assert!(missing.is_empty(), "`make figures` writes the rows of experiments/README.md:\n{}", missing.join("\n"));
    assert!(seen > 80, "{seen} published numbers were looked at");
}
