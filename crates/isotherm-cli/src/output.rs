//! What goes to the user: text to standard output, and numbers as people read them.

use anyhow::Context as _;
use isotherm::quantity::Share;
use isotherm_eval::results::DeviceSummary;
use isotherm_sfs::SystemSpec;
use std::io::{self, Write};

/// Tells people, on standard error, of what has no result.
pub fn note(label: &str, fate: &str, reason: &str) {
    eprintln!("isotherm: {label}: {fate}: {}", crate::message::with_options(reason));
}

/// Writes to standard output. A reader that went away (`isotherm list | head`) is no error, and no reason to stop: there may
/// be files to write.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("standard output cannot be written; check where it is redirected to"),
    }
}

/// Columns that lines may take: those of the terminal; without one, of the variable COLUMNS; else 80.
pub fn width() -> usize {
    let of_variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    let of_terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    of_terminal.or_else(of_variable).filter(|columns| *columns > 0).unwrap_or(80)
}

/// `text` in lines of at most `room` columns where its words allow that, each line ended and all but the first indented.
pub fn wrapped(text: &str, room: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut used = 0;
    // A comma ends a word as well: names of policies have few blanks.
    for word in text.split_inclusive([' ', ',']) {
        let length = word.trim_end().chars().count();
        if used > indent && used + length > room {
            lines.truncate(lines.trim_end_matches(' ').len());
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            used = indent;
        }
        lines.push_str(word);
        used += word.chars().count();
    }
    lines.truncate(lines.trim_end().len());
    lines.push('\n');
    lines
}

/// Whole numbers with thousands set apart.
pub fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// What is said of each name: every text once, with the names that it is said of, in the order of the first.
pub fn each_once<'a>(said: impl IntoIterator<Item = (&'a str, String)>) -> Vec<(String, Vec<&'a str>)> {
    let mut texts: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, text) in said {
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => texts.push((text, vec![name])),
        }
    }
    texts
}

/// What write amplification by known rates means.
pub fn known_rates_note(wa: f64) -> String {
    format!(
        "{wa:.3}, where the rate of every page is known and the spare space divided as is best (closed form, for many blocks; no bound for who \
         knows when each page dies)"
    )
}

/// A number with `decimals`, or a dash where there is none.
pub fn real(number: Option<f64>, decimals: usize) -> String {
    number.map_or_else(|| "-".to_owned(), |n| format!("{n:.decimals$}"))
}

/// A number with three significant digits, or a dash.
pub fn significant(number: Option<f64>) -> String {
    number.map_or_else(
        || "-".to_owned(),
        |n| {
            // Of the number as it is shown: 9.996 is 10.0.
            let shown: f64 = format!("{n:.2e}").parse().unwrap_or(n);
            let magnitude = if shown == 0.0 { 0 } else { shown.abs().log10().floor() as i32 };
            if magnitude < -4 { format!("{n:.2e}") } else { format!("{shown:.*}", (2 - magnitude).max(0) as usize) }
        },
    )
}

/// A share in per cent, or a dash. What rounds to nought has no sign.
pub fn per_cent(share: Option<f64>, decimals: usize) -> String {
    let Some(share) = share else { return "-".to_owned() };
    let text = format!("{:.decimals$}", share * 100.0);
    let nought = text.strip_prefix('-').filter(|digits| digits.chars().all(|digit| matches!(digit, '0' | '.')));
    format!("{} %", nought.unwrap_or(&text))
}

/// Spare space of a device, both ways of counting it; and what was asked for where whole blocks come to another.
pub fn spare_space(device: &DeviceSummary, spec: &SystemSpec) -> String {
    /// A drive may differ by this share of what was asked for without a word.
    const DIFFERENCE: f64 = 0.05;
    let (of, has) = match (spec.device.over_provisioning, spec.device.spare) {
        (Some(asked), _) => (Some(asked), device.over_provisioning),
        (None, asked) => (asked, device.spare),
    };
    // A log has segments to spare beside those of the drive below.
    let is_other = |asked: &Share| spec.log.is_none() && (has - asked.0).abs() > DIFFERENCE * asked.0;
    let asked = of.filter(is_other).map_or(String::new(), |asked| {
        let pages = device.pages_per_block;
        format!(" ({} was asked for, which whole blocks of {pages} pages do not make)", per_cent(Some(asked.0), 2))
    });
    let [op, spare] = [device.over_provisioning, device.spare].map(|share| per_cent(Some(share), 2));
    format!("over-provisioning (T-U)/U {op}, spare (T-U)/T {spare}{asked}")
}

/// Bytes with a binary unit.
pub fn bytes(number: f64) -> String {
    scaled(number, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// Counts with a decimal prefix: `3.20 M`.
pub fn count(number: f64) -> String {
    scaled(number, 1000.0, &["", "k", "M", "G", "T"]).trim_end().to_owned()
}

/// Nanoseconds with the unit that fits, or a dash.
pub fn time(ns: Option<f64>) -> String {
    ns.map_or_else(
        || "-".to_owned(),
        |ns| if ns < 60e9 { scaled(ns, 1000.0, &["ns", "us", "ms", "s"]) } else { minutes(ns) },
    )
}

fn minutes(ns: f64) -> String {
    let seconds = ns / 1e9;
    if seconds < 7200.0 { format!("{:.1} min", seconds / 60.0) } else { format!("{:.1} h", seconds / 3600.0) }
}

fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let (mut value, mut unit) = (number, 0);
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 100.0 { 0 } else { 3 - (value.max(1.0).log10() as usize + 1) };
    format!("{value:.decimals$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words() {
        assert_eq!(wrapped("one two three", 8, 2), "one two\n  three\n");
        assert_eq!(wrapped("epoch:length=1,gc=extra, greedy", 16, 2), "epoch:length=1,\n  gc=extra,\n  greedy\n");
        assert_eq!(wrapped("indivisible", 4, 2), "indivisible\n");
        assert_eq!(wrapped("", 4, 2), "\n");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(whole(1_234_567), "1 234 567");
        assert_eq!(whole(12), "12");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(bytes(700.0 * 1048576.0), "700 MiB");
        assert_eq!(count(20_300_000.0), "20.3 M");
        assert_eq!(count(999.0), "999");
        assert_eq!(time(Some(72_800.0)), "72.8 us");
        assert_eq!(time(Some(600e9)), "10.0 min");
        assert_eq!(time(None), "-");
        assert_eq!([-0.004, -0.006, 0.0].map(|share| per_cent(Some(share), 0)), ["0 %", "-1 %", "0 %"]);
        assert_eq!([-0.000_4, -0.000_6].map(|share| per_cent(Some(share), 1)), ["0.0 %", "-0.1 %"]);
        let digits = [0.0, 0.000_123_4, 0.0123, 1.0, 9.996, 12.34, 123.4, 1234.0, 1e-9].map(|n| significant(Some(n)));
        assert_eq!(digits, ["0.00", "0.000123", "0.0123", "1.00", "10.0", "12.3", "123", "1230", "1.00e-9"]);
    }
}
