//! The tables of a comparison as a file for other programs: LaTeX, CSV or Markdown, by the ending of its name. What people read
//! fits a page, as the tables of the terminal do, and has every column where that is asked for; CSV has them always.

use super::numbers::{Number, TIMES};
use super::tables::{legend, shown, validity, writes};
use crate::table::{Column, Table, left_out};
use isotherm_eval::comparison::{Device, OnTrace};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Letters beside each other on a page.
const PAGE: usize = 80;

/// How a table is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Latex,
    Csv,
    Markdown,
}

/// A file for the tables.
#[derive(Clone, Debug)]
pub struct Export {
    path: PathBuf,
    form: Form,
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let form = match path.extension().and_then(|ending| ending.to_str()) {
            Some("tex") => Form::Latex,
            Some("csv") => Form::Csv,
            Some("md") => Form::Markdown,
            _ => return Err("its ending names no form of table; end it in .tex, .csv or .md".to_owned()),
        };
        Ok(Self { path, form })
    }
}

impl Export {
    /// Where it goes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's text; `is_wide` writes every column.
    pub fn text(&self, parts: &[OnTrace<'_>], is_wide: bool) -> String {
        if self.form == Form::Csv {
            return csv(parts);
        }
        let (rows, missing) = table(parts).cut(if is_wide { usize::MAX } else { PAGE });
        let legend = legend(parts.iter().flat_map(|part| &part.devices));
        let legend = if legend.is_empty() { String::new() } else { format!("valid: {legend}\n") };
        let notes = left_out(missing) + &legend;
        if self.form == Form::Latex {
            let comments: String = notes.lines().map(|line| format!("% {line}\n")).collect();
            return latex(&rows, texts(parts)) + &comments;
        }
        let notes: String = notes.lines().map(|line| format!("\n{line}\n")).collect();
        markdown(&rows, texts(parts)) + &notes
    }
}

/// The numbers that any device has, in the order of the tables.
fn numbers(parts: &[OnTrace<'_>]) -> Vec<Number> {
    let devices = || parts.iter().flat_map(|part| &part.devices);
    let in_bytes = parts.iter().map(|part| writes(&part.devices)).find(|numbers| numbers[0].key.ends_with("bytes"));
    let all = in_bytes.unwrap_or_else(|| writes(&[])).into_iter().chain(TIMES);
    // How fast the simulator ran says nothing of a device.
    let told = all.filter(|number| !number.key.starts_with("simulator_"));
    told.filter(|number| devices().any(|device| device.estimate(number.read).is_some())).collect()
}

/// Whether the runs are on several traces, and of several seeds.
fn several(parts: &[OnTrace<'_>]) -> (bool, bool) {
    let has_seeds = parts.iter().flat_map(|part| &part.devices).any(|device| device.runs.len() > 1);
    (parts.iter().any(|part| !part.trace.is_empty()), has_seeds)
}

/// A row for each device, as people read it.
fn table(parts: &[OnTrace<'_>]) -> Table {
    let numbers = numbers(parts);
    let (on_traces, _) = several(parts);
    let mut columns: Vec<Column> = on_traces.then(|| Column::new("trace")).into_iter().collect();
    columns.push(Column::new("device"));
    columns.extend(numbers.iter().map(|number| number.column));
    columns.push(Column::new("valid"));
    let mut table = Table::new(&columns);
    for part in parts {
        for device in &part.devices {
            let mut row: Vec<String> = on_traces.then(|| part.trace.to_owned()).into_iter().collect();
            row.push(device.name.to_owned());
            row.extend(numbers.iter().map(|number| shown(device, number, true)));
            row.push(validity(device));
            table.row(row);
        }
    }
    table
}

/// Names as results have them, numbers in full; with several seeds each number has half its confidence interval beside it.
fn csv(parts: &[OnTrace<'_>]) -> String {
    let numbers = numbers(parts);
    let (on_traces, has_seeds) = several(parts);
    let mut header: Vec<String> = on_traces.then(|| "trace".to_owned()).into_iter().collect();
    header.extend(["device".to_owned(), "seeds".to_owned(), "valid".to_owned()]);
    for number in &numbers {
        header.push(number.key.to_owned());
        header.extend(has_seeds.then(|| format!("{}.confidence_95", number.key)));
    }
    let mut text = header.join(",") + "\n";
    let row = |trace: &str, device: &Device<'_>| {
        let mut row: Vec<String> = on_traces.then(|| trace.to_owned()).into_iter().collect();
        row.extend([device.name.to_owned(), device.runs.len().to_string(), validity(device)]);
        for number in &numbers {
            let found = device.estimate(number.read);
            let of = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            row.push(of(found.map(|found| found.mean)));
            row.extend(has_seeds.then(|| of(found.and_then(|found| found.confidence_95))));
        }
        row.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n"
    };
    for part in parts {
        part.devices.iter().for_each(|device| text.push_str(&row(part.trace, device)));
    }
    text
}

/// A cell as RFC 4180 wants it.
fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// Columns of text before the numbers begin.
fn texts(parts: &[OnTrace<'_>]) -> usize {
    1 + usize::from(several(parts).0)
}

fn markdown(rows: &[Vec<String>], texts: usize) -> String {
    let line = |cells: &[String]| {
        format!("| {} |\n", cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
    };
    let header = &rows[0];
    let rule: Vec<String> = (0..header.len()).map(|at| if at < texts { "---" } else { "---:" }.to_owned()).collect();
    let body: String = rows[1..].iter().map(|row| line(row)).collect();
    line(header) + &line(&rule) + &body
}

/// A `tabular`, which needs no package.
fn latex(rows: &[Vec<String>], texts: usize) -> String {
    let escaped = |cell: &String| {
        let mut text = String::new();
        for letter in cell.chars() {
            match letter {
                '\u{b1}' => text.push_str("$\\pm$"),
                '\\' => text.push_str("\\textbackslash{}"),
                '~' => text.push_str("\\textasciitilde{}"),
                '^' => text.push_str("\\textasciicircum{}"),
                '&' | '%' | '$' | '#' | '_' | '{' | '}' => text.extend(['\\', letter]),
                _ => text.push(letter),
            }
        }
        text
    };
    let line = |cells: &[String]| format!("  {} \\\\\n", cells.iter().map(escaped).collect::<Vec<_>>().join(" & "));
    let (header, body) = (&rows[0], &rows[1..]);
    let columns = "l".repeat(texts) + &"r".repeat(header.len() - texts);
    let body: String = body.iter().map(|row| line(row)).collect();
    format!(
        "\\begin{{tabular}}{{{columns}}}\n  \\hline\n{}  \\hline\n{body}  \\hline\n\\end{{tabular}}\n",
        line(header)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn latex_and_markdown_are_what_their_readers_take() {
        let table = cells(&[&["device", "WA"], &["host_gc, OP 7 %", "2.5 \u{b1} 0.1"]]);
        assert_eq!(
            latex(&table, 1),
            "\\begin{tabular}{lr}\n  \\hline\n  device & WA \\\\\n  \\hline\n  host\\_gc, OP 7 \\% & 2.5 $\\pm$ 0.1 \\\\\n  \
             \\hline\n\\end{tabular}\n"
        );
        assert_eq!(markdown(&table, 1), "| device | WA |\n| --- | ---: |\n| host_gc, OP 7 % | 2.5 \u{b1} 0.1 |\n");
    }

    #[test]
    fn the_ending_names_the_form() {
        assert_eq!("a/table.tex".parse::<Export>().unwrap().form, Form::Latex);
        assert_eq!("table.md".parse::<Export>().unwrap().form, Form::Markdown);
        assert!("table.doc".parse::<Export>().unwrap_err().contains(".csv"));
    }
}
