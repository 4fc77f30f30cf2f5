//! Popularity measured on a real volume: a file of `address,count` rows, one for each start address.

use super::alias::Alias;
use crate::error::{Place, TraceError};
use crate::lines::{LineError, Lines};
use crate::records::read_error;
use crate::row::{Fault, Field, Row, Separator};
use crate::source::Source;
use isotherm::address::MAX_PAGES;
use std::collections::BTreeMap;

/// Reads the file (plain, .gz or .zst; a heading is optional) and adds up the counts of each page, in order of address.
pub(crate) fn read(path: &str, page_bytes: u64) -> Result<Alias, TraceError> {
    let mut lines = Lines::new(Source::new(path).open()?.stream);
    let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(LineError::Io(error)) => return Err(read_error(path, error)),
            Err(LineError::TooLong) => {
                return Err(TraceError::input(path, "a line has no end", "give rows of address,count"));
            }
        };
        if line.is_empty() {
            continue;
        }
        let mut row = Row::new(line, Separator::Comma);
        let parsed = parse(&mut row);
        match parsed.map_err(|fault| (row.column(fault.field), fault)) {
            Ok((address, count)) => *counts.entry(address / page_bytes).or_default() += count as f64,
            Err(_) if lines.number == 1 => {}
            Err((column, fault)) => {
                let place = Place::Line { line: lines.number, column };
                let Fault { field, problem, .. } = *fault;
                let fix = "write rows of address,count in bytes and writes".to_owned();
                return Err(TraceError::Row { path: path.to_owned(), place, field: field.name(), problem, fix });
            }
        }
    }
    let weights: Vec<f64> = counts.into_values().collect();
    if weights.iter().all(|&weight| weight == 0.0) {
        return Err(TraceError::input(path, "it counts no writes", "give a file of address,count rows"));
    }
    if weights.len() > MAX_PAGES as usize {
        return Err(TraceError::input(path, "it names more than 2^30 pages", "raise page_size"));
    }
    Ok(Alias::new(&weights))
}

fn parse(row: &mut Row<'_>) -> Result<(u64, u64), Box<Fault>> {
    let address = row.integer(Field::Offset)?;
    let count = row.integer(Field::Other)?;
    row.end()?;
    Ok((address, count))
}
