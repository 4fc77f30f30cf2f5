//! The page for people: what to do first, then what each change would do, then why.

use crate::advice::{Advice, Row, time};
use crate::change::Kind;
use crate::groups::Group;
use isotherm_report::figure::{Axis, BarSeries, Bars, Chart, Figure, Panel};
use isotherm_report::page::{Block, Cell, Column, Fact, Notice, Section, Table, Tone};
use isotherm_report::{Page, ReportError, render_page};

/// Ranges with less than this share of the writes and of the copies are in the table alone.
const DRAWN_MIN: f64 = 0.005;

/// The page of an advice, as the text of one HTML file.
///
/// # Errors
/// A figure holds a number that JSON cannot.
pub fn render(advice: &Advice) -> Result<String, ReportError> {
    let mut sections = vec![
        Section::new("What to do", what_to_do(advice)),
        Section::new("What each change does", changes(advice)),
        Section::new("Why: what is written where, and how long it lives", ranges(advice)),
    ];
    if !advice.files.is_empty() {
        let caption = "The files that write most. A file that is copied more than it writes pays for others.";
        sections.push(Section::new("Which files", vec![Block::Table(groups(&advice.files, caption))]));
    }
    sections.push(Section::new("How life is counted", life(advice)));
    sections.push(Section::new("How far this can be trusted", trust(advice)));
    render_page(&Page {
        title: format!("Advice for {}", advice.trace.name),
        lead: advice.recommendation.text.clone(),
        version: advice.version.clone(),
        sections,
    })
}

fn number(value: Option<f64>, text: impl Fn(f64) -> String, key: &str) -> Cell {
    match value {
        Some(value) => Cell { text: text(value), value: Some(value), key: key.to_owned() },
        None => Cell::text("-"),
    }
}

fn bytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes if bytes >= 1e6 => format!("{:.0} MB", bytes / 1e6),
        bytes => format!("{:.0} kB", bytes / 1e3),
    }
}

fn per_cent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share in whole per cent; what rounds to nought has no sign.
fn whole_per_cent(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).round() + 0.0)
}

/// What a text says before its first full stop or colon, as a sentence: what is explained behind a colon stands elsewhere.
fn first_sentence(text: &str) -> String {
    let end = [". ", ": "].iter().filter_map(|mark| text.find(mark)).min();
    format!("{}.", text[..end.unwrap_or(text.len())].trim_end_matches('.'))
}

fn what_to_do(advice: &Advice) -> Vec<Block> {
    let row = advice.recommendation.row.map(|row| &advice.rows[row]);
    let base = advice.rows.first();
    let title = match row {
        Some(row) => format!("Change this: {}", row.what.trim_start_matches("+ ")),
        None => first_sentence(&advice.recommendation.text),
    };
    let mut reasons: Vec<String> = row.iter().map(|row| row.trust.clone()).collect();
    if let Some(promise) = row.and_then(|row| row.promise) {
        reasons.push(format!(
            "learnt on the first two thirds of the trace, where it leaves {:.0} % of the flash writes; on the last third, which it \
             never saw, it leaves {:.0} %",
            promise.ratio * 100.0,
            promise.ratio_kept * 100.0
        ));
    }
    let tone = if base.is_some_and(|base| base.valid) { Tone::Good } else { Tone::Bad };
    let mut facts = Vec::new();
    for (name, row) in [("As it is", base), ("With the change", row)] {
        let Some(row) = row else { continue };
        let wa = row.write_amplification_bytes.map_or("-".to_owned(), |wa| format!("{wa:.2}"));
        facts.push(Fact::new(format!("{name}: flash written for each byte"), wa));
        if let Some(years) = row.life.and_then(|life| life.years) {
            facts.push(Fact::new(format!("{name}: life of the drive"), time(years)));
        }
    }
    let words = "Flash can be written only after a whole block of it was erased. To erase a block, the drive first copies what is still \
                 needed in it to another block. When data that is soon overwritten shares blocks with data that stays, the drive copies \
                 the data that stays again and again: it writes more flash than you write to it, wears out sooner, and stalls.";
    let mut blocks = vec![Block::Notice(Notice { tone, title, reasons }), Block::Facts(facts)];
    if !advice.recommendation.others.is_empty() {
        blocks.push(Block::List(advice.recommendation.others.clone()));
    }
    blocks.push(Block::Text(words.to_owned()));
    if let Some(calibration) = &advice.calibration {
        blocks.push(Block::Text(calibration.text.clone()));
    }
    blocks
}

fn changes(advice: &Advice) -> Vec<Block> {
    let column = |title: &str| Column { title: title.to_owned(), ..Column::default() };
    let columns =
        ["Change", "Flash written for each byte", "Saves", "Life", "TBW", "Drive writes a day", "P99.9 write", "Trust"];
    let base = advice.rows.first().and_then(|row| row.write_amplification_bytes);
    let rows = advice.rows.iter().enumerate().map(|(at, row)| {
        let saving = row.write_amplification_bytes.zip(base).filter(|_| at > 0).map(|(wa, base)| 1.0 - wa / base);
        let key = |name: &str| format!("rows.{at}.{name}");
        vec![
            Cell::text(row.what.clone()),
            number(row.write_amplification_bytes, |wa| format!("{wa:.2}"), &key("write_amplification_bytes")),
            number(saving, whole_per_cent, ""),
            number(row.life.and_then(|life| life.years), time, &key("life.years")),
            number(
                row.life.map(|life| life.terabytes_written_bytes),
                |tbw| format!("{:.0} TB", tbw / 1e12),
                &key("life.terabytes_written_bytes"),
            ),
            number(
                row.life.map(|life| life.drive_writes_per_day),
                |dwpd| format!("{dwpd:.2}"),
                &key("life.drive_writes_per_day"),
            ),
            number(row.write_p999_ns.map(|ns| ns as f64), |ns| format!("{:.2} ms", ns / 1e6), &key("write_p999_ns")),
            Cell::text(row.verdict()),
        ]
    });
    let caption = "The drive as it is, and each change alone; then the best combination, and a placement that knows when each page dies.";
    let table = Table {
        title: String::new(),
        caption: caption.to_owned(),
        columns: columns.map(column).to_vec(),
        rows: rows.collect(),
    };
    let is_drawn = |row: &&Row| row.valid && row.write_amplification_bytes.is_some();
    let drawn: Vec<&Row> = advice.rows.iter().filter(is_drawn).collect();
    let bars = Bars {
        value: Axis::linear("flash written for each byte of the host", ""),
        categories: drawn.iter().map(|row| row.what.trim_start_matches("+ ").to_owned()).collect(),
        series: vec![BarSeries {
            name: "write amplification".to_owned(),
            values: drawn.iter().map(|row| row.write_amplification_bytes).collect(),
            ..BarSeries::default()
        }],
        ..Bars::default()
    };
    let figure = Figure {
        title: "Flash written for each byte of the host".to_owned(),
        caption: "1 is the least that there can be. Changes whose runs are not valid are left out.".to_owned(),
        panels: vec![Panel::new("", Chart::Bars(bars))],
    };
    let doubts = advice.rows.iter().filter(|row| !row.is_sound());
    let doubts: Vec<String> =
        doubts.map(|row| format!("{}: {}", row.what.trim_start_matches("+ "), row.trust)).collect();
    let mut blocks = vec![Block::Figure(figure), Block::Table(table)];
    if !doubts.is_empty() {
        blocks.push(Block::List(doubts));
    }
    blocks
}

/// A table of ranges or files.
fn groups(groups: &[Group], caption: &str) -> Table {
    let column = |title: &str| Column { title: title.to_owned(), ..Column::default() };
    let columns = [
        "Where",
        "Holds",
        "Writes",
        "Copies",
        "Copied beside others",
        "Half lives less than",
        "One in ten lives more than",
        "Handle",
    ];
    let rows = groups.iter().map(|group| {
        let life = |life: Option<f64>| match life {
            Some(life) => Cell { text: bytes(life), value: Some(life), key: String::new() },
            None => Cell::text("longer than the trace"),
        };
        vec![
            Cell::text(group.name.clone()),
            number(Some(group.pages as f64 * 4096.0), bytes, ""),
            number(Some(group.write_share), per_cent, ""),
            number(group.copy_share, per_cent, ""),
            number(group.mixed_share, per_cent, ""),
            life(group.lifetime_median_bytes),
            life(group.lifetime_p90_bytes),
            group
                .handle
                .map_or_else(|| Cell::text("-"), |handle| number(Some(f64::from(handle)), |_| handle.to_string(), "")),
        ]
    });
    Table {
        title: String::new(),
        caption: caption.to_owned(),
        columns: columns.map(column).to_vec(),
        rows: rows.collect(),
    }
}

fn ranges(advice: &Advice) -> Vec<Block> {
    let mut blocks = vec![Block::Text(
        "Each range of addresses is a part of the drive whose data lives about equally long. Lives are counted in what the host \
         writes to the whole drive meanwhile."
            .to_owned(),
    )];
    if advice.ranges.len() < 2 {
        blocks.push(Block::Text("All addresses live alike: there is nothing to tell apart by address.".to_owned()));
    }
    let victim =
        |group: &&Group| group.copy_share.is_some_and(|copies| copies > 2.0 * group.write_share && copies > 0.05);
    let mut paying: Vec<&Group> = advice.ranges.iter().filter(victim).collect();
    paying.sort_by(|a, b| b.copy_share.unwrap_or(0.0).total_cmp(&a.copy_share.unwrap_or(0.0)));
    let told = paying.iter().take(5).map(|group| {
        format!(
            "{} takes {} of the writes, but {} of the copies: what lies there lives long, and shares blocks with what does not.",
            group.name,
            per_cent(group.write_share),
            per_cent(group.copy_share.unwrap_or(0.0))
        )
    });
    let told: Vec<String> = told.collect();
    if !told.is_empty() {
        blocks.push(Block::List(told));
    }
    let is_drawn = |group: &&Group| group.write_share >= DRAWN_MIN || group.copy_share >= Some(DRAWN_MIN);
    let drawn: Vec<&Group> = advice.ranges.iter().filter(is_drawn).collect();
    let shares =
        |of: fn(&Group) -> Option<f64>| drawn.iter().map(|group| of(group).map(|share| share * 100.0)).collect();
    let bars = Bars {
        value: Axis::linear("share", "%"),
        categories: drawn.iter().map(|group| group.name.clone()).collect(),
        series: vec![
            BarSeries {
                name: "of the writes".to_owned(),
                slot: 0,
                values: shares(|group| Some(group.write_share)),
                ..BarSeries::default()
            },
            BarSeries {
                name: "of the copies".to_owned(),
                slot: 1,
                values: shares(|group| group.copy_share),
                ..BarSeries::default()
            },
        ],
        ..Bars::default()
    };
    if advice.ranges.len() > 1 {
        blocks.push(Block::Figure(Figure {
            title: "Who writes, and who is copied".to_owned(),
            caption: "The drive as it is, by ranges of addresses that write or are copied most.".to_owned(),
            panels: vec![Panel::new("", Chart::Bars(bars))],
        }));
    }
    blocks.push(Block::Table(groups(&advice.ranges, "Ranges of addresses, in order.")));
    blocks
}

fn life(advice: &Advice) -> Vec<Block> {
    let inputs = &advice.life_inputs;
    let mut facts = vec![
        Fact::new("Capacity", bytes(inputs.capacity_bytes as f64)),
        Fact::new("Flash", bytes(inputs.flash_bytes as f64)),
        Fact::new("P/E cycles of a block", inputs.pe_cycles.to_string()),
    ];
    match (inputs.host_bytes_per_year, inputs.wanted_drive_writes_per_day()) {
        (Some(year), Some(day)) => {
            facts.push(Fact::new("The host writes in a year", format!("{:.1} TB", year / 1e12)));
            facts.push(Fact::new("Drive writes a day that this is", format!("{day:.3}")));
        }
        _ => facts.push(Fact::new("The host writes in a year", "not known: the trace has no times")),
    }
    vec![Block::Facts(facts), Block::List(inputs.formulas.clone())]
}

fn trust(advice: &Advice) -> Vec<Block> {
    let mut notes = advice.situation.notes.clone();
    notes.push(format!(
        "{} runs over {:.0} M host page writes were made",
        advice.runs,
        advice.pages_replayed as f64 / 1e6
    ));
    if advice.rows.iter().any(|row| row.kind == Kind::KnowsFuture) {
        notes.push(
            "The row \"knows the future\" writes what dies together to the same block, from the trace's own future, which no drive can know. \
             It is no bound: another row may lie below it."
                .to_owned(),
        );
    }
    let mut blocks = vec![Block::List(notes)];
    if !advice.dropped.is_empty() {
        let column = |title: &str| Column { title: title.to_owned(), ..Column::default() };
        let rows = advice.dropped.iter().map(|dropped| {
            let ratio = dropped.ratio.map(|ratio| ratio.mean);
            vec![
                Cell::text(dropped.what.clone()),
                number(ratio, |ratio| format!("{ratio:.3}"), ""),
                Cell::text(dropped.reason.clone()),
            ]
        });
        let columns = ["Change", "Flash writes over those as it is, on samples", "Why"].map(column).to_vec();
        let table = Table {
            title: "What was tried and dropped".to_owned(),
            caption: "Samples of the trace tell what is not worth a run in full.".to_owned(),
            columns,
            rows: rows.collect(),
        };
        blocks.push(Block::Table(table));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_a_sentence_and_nought_has_no_sign() {
        let told = "Nothing helps: no change saves 3.5 % (the best saves 0.1 %).";
        assert_eq!(first_sentence(told), "Nothing helps.");
        assert_eq!(first_sentence("No answer for 1.5 GiB. Trace for longer."), "No answer for 1.5 GiB.");
        assert_eq!(first_sentence("It cannot be simulated."), "It cannot be simulated.");
        assert_eq!([-0.004, -0.006, 0.254].map(whole_per_cent), ["0 %", "-1 %", "25 %"]);
    }
}
