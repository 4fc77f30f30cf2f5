//! What goes to the user: text to standard output, and numbers as people read them.

use anyhow::Context as _;
use std::io::{self, Write};

/// Writes to standard output. A reader that went away (`isotherm list | head`) is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result.context("standard output cannot be written; check where it is redirected to"),
    }
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

/// A number with `decimals`, or a dash where there is none.
pub fn real(number: Option<f64>, decimals: usize) -> String {
    number.map_or_else(|| "-".to_owned(), |n| format!("{n:.decimals$}"))
}

/// A share in per cent, or a dash.
pub fn per_cent(share: Option<f64>, decimals: usize) -> String {
    share.map_or_else(|| "-".to_owned(), |s| format!("{:.decimals$} %", s * 100.0))
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
    }
}
