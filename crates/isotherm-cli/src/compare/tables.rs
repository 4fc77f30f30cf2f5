//! The comparison for people: what is written, what it costs in time, whether it can be trusted.

use super::numbers::{Number, TIMES, WRITES, has_small_requests};
use crate::output::{each_once, known_rates_note, wrapped};
use crate::run::verdict;
use crate::table::{Column, NOTHING, Table};
use isotherm_eval::comparison::{Device, OnTrace};
use isotherm_eval::results::{RunResult, Verdict};

/// A number of a device for people: its mean, and with `interval` half the width of the confidence interval where there is one.
pub fn shown(device: &Device<'_>, number: &Number, interval: bool) -> String {
    let Some(found) = device.estimate(number.read) else { return NOTHING.to_owned() };
    match found.confidence_95.filter(|_| interval) {
        // Nought whatever the unit: seeds that gave the same number are told from those that nearly did.
        Some(0.0) => format!("{} \u{b1} 0", (number.show)(found.mean)),
        Some(half) => format!("{} \u{b1} {}", (number.show)(found.mean), (number.show)(half)),
        None => (number.show)(found.mean),
    }
}

/// Whether the runs of a device can be trusted, and with which caveats.
pub fn validity(device: &Device<'_>) -> String {
    match (device.valid(), device.runs.len()) {
        (valid, all) if valid == all => {
            let mut words: Vec<String> = Vec::new();
            for word in device.runs.iter().flat_map(|run| run.verdict.words()) {
                if !words.iter().any(|known| known == word) {
                    words.push(word.to_owned());
                }
            }
            // A seed that is valid without a caveat takes none from the others.
            words.retain(|word| word != "yes");
            if words.is_empty() { "yes".to_owned() } else { words.join(", ") }
        }
        (0, _) => "no".to_owned(),
        (valid, all) => format!("{valid} of {all}"),
    }
}

/// What the words for validity mean, where one of them is not plain.
pub fn legend<'a>(devices: impl IntoIterator<Item = &'a Device<'a>>) -> &'static str {
    Verdict::legend(devices.into_iter().flat_map(|device| &device.runs).map(|run| &run.verdict))
}

/// What is written: write amplification in bytes first where requests are smaller than pages.
pub fn writes(devices: &[Device<'_>]) -> Vec<Number> {
    let mut numbers = WRITES.to_vec();
    if devices.iter().flat_map(|device| &device.runs).any(|run| has_small_requests(run)) {
        numbers.swap(0, 1);
        numbers[0].column.header = "WA";
        numbers[0].column.note = "write amplification: bytes programmed for each byte that the host wrote";
        numbers[1].column.header = "in pages";
        numbers[1].column.note = "pages programmed for each page that a write touched; small writes share pages";
    }
    numbers
}

/// One table: a row for each device, a column for each number.
pub fn table(title: &'static str, devices: &[Device<'_>], numbers: &[Number], with_validity: bool) -> Table {
    let mut columns = vec![Column::new(title)];
    columns.extend(numbers.iter().map(|number| number.column));
    columns.extend(with_validity.then(|| Column { header: "valid", note: legend(devices), rank: 0 }));
    let mut table = Table::new(&columns);
    for device in devices {
        let mut cells = vec![device.name.to_owned()];
        cells.extend(numbers.iter().enumerate().map(|(at, number)| shown(device, number, with_validity && at == 0)));
        cells.extend(with_validity.then(|| validity(device)));
        table.row(cells);
    }
    table
}

/// The whole comparison, in lines of `room` columns where that is possible; `is_wide` shows every column.
pub fn text(parts: &[OnTrace<'_>], room: usize, is_wide: bool) -> String {
    let of_table = if is_wide { usize::MAX } else { room };
    let mut text = String::new();
    for part in parts {
        if !part.trace.is_empty() {
            text.push_str(&format!("\n{}\n", part.trace));
        }
        let writes = writes(&part.devices);
        text.push_str(&format!("\n{}\n", table("writes", &part.devices, &writes, true).render(of_table)));
        text.push_str(&format!("{}\n", table("time", &part.devices, &TIMES, false).render(of_table)));
        let notes = latency_notes(&part.devices);
        if !notes.is_empty() {
            notes.iter().for_each(|note| text.push_str(&wrapped(note, room, 2)));
            text.push('\n');
        }
        known_rates(&part.devices).iter().for_each(|note| text.push_str(&wrapped(note, room, 2)));
        let said = part.devices.iter().map(|device| (device.name, judgement(device)));
        each_once(said).iter().for_each(|(said, names)| text.push_str(&wrapped(&(names.join("; ") + said), room, 2)));
    }
    let is_drawn = |device: &Device<'_>| {
        let first = &device.runs[0].pages_programmed;
        device.runs.len() == 1 || device.runs.iter().any(|run| run.pages_programmed != *first)
    };
    if !parts.iter().flat_map(|part| &part.devices).any(is_drawn) {
        let told = "\nEvery seed gave the same numbers: neither the trace nor these devices draw any.";
        text.push_str(&wrapped(told, room, 0));
    }
    text
}

/// What is to be told about latencies, once where it is the same of every device. Below a log, requests are the log's own, and
/// their latencies stand in no table.
fn latency_notes(devices: &[Device<'_>]) -> Vec<String> {
    let of = |device: &Device<'_>| {
        let told = device.runs.iter().filter(|run| run.below.is_none()).map(|run| run.latency_notes());
        told.into_iter().find(|notes| !notes.is_empty()).unwrap_or_default()
    };
    shared("latencies", devices, of)
}

/// What known rates would come to, where that is known.
fn known_rates(devices: &[Device<'_>]) -> Vec<String> {
    let of = |device: &Device<'_>| {
        let wa = device.runs[0].write_amplification_known_rates;
        wa.map(known_rates_note).into_iter().collect()
    };
    shared("WA by known rates", devices, of)
}

/// Notes on devices, each once, with the names of those it is of where it is not of all.
fn shared(about: &str, devices: &[Device<'_>], of: impl Fn(&Device<'_>) -> Vec<String>) -> Vec<String> {
    let notes = devices.iter().flat_map(|device| of(device).into_iter().map(move |note| (device.name, note)));
    let text = |(note, names): (String, Vec<&str>)| {
        if names.len() == devices.len() {
            format!("{about}: {note}")
        } else {
            format!("{about} of {}: {note}", names.join("; "))
        }
    };
    each_once(notes).into_iter().map(text).collect()
}

/// The verdict on a device; where seeds disagree, on the first run that is not valid, or that has a caveat.
fn judgement(device: &Device<'_>) -> String {
    let (valid, all) = (device.valid(), device.runs.len());
    let has_caveat = |run: &&&RunResult| !run.verdict.caveats().is_empty();
    let told = device.runs.iter().find(|run| !run.verdict.valid).or_else(|| device.runs.iter().find(has_caveat));
    let told = told.unwrap_or(&device.runs[0]);
    let which = match valid {
        valid if valid == 0 || valid == all => String::new(),
        some => format!(" ({some} of {all} seeds valid; of seed {})", told.seed),
    };
    format!("{which}: {}", verdict(told))
}
