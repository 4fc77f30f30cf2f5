//! Plain tables: a header, a rule, rows; text left, numbers right. A table that is wider than the terminal leaves out the
//! columns that matter least, and wraps its first one.

use crate::output::wrapped;

/// A column. The first of a table holds text, the others numbers.
#[derive(Clone, Copy)]
pub struct Column {
    /// What stands above it.
    pub header: &'static str,
    /// What the header does not say by itself; told under the table. Empty where nothing is to be told.
    pub note: &'static str,
    /// How soon it is left out where there is no room: 0 never, the highest first.
    pub rank: u8,
}

impl Column {
    /// A column that is always there and needs no word.
    pub const fn new(header: &'static str) -> Self {
        Self { header, note: "", rank: 0 }
    }
}

/// What stands for a number that is not there.
pub const NOTHING: &str = "-";
/// Columns of the first cell, where the others need the rest.
const FIRST_MIN: usize = 26;
/// Blanks between columns.
const GAP: usize = 2;

/// A table under construction.
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// An empty table whose columns are all there and need no word.
    pub fn plain(headers: &[&'static str]) -> Self {
        Self::new(&headers.iter().copied().map(Column::new).collect::<Vec<_>>())
    }

    /// Adds a row, one cell for each column.
    ///
    /// # Panics
    /// If the number of cells differs (a bug).
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Width of a column's widest cell.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells.chain([self.columns[column].header.chars().count()]).max().unwrap_or(0)
    }

    /// The columns that have something to show, and of these the ones that `room` has place for; both in order.
    fn chosen(&self, room: usize) -> (Vec<usize>, Vec<usize>) {
        let is_empty = |column: usize| self.rows.iter().all(|row| row[column] == NOTHING);
        let filled: Vec<usize> = (0..self.columns.len()).filter(|&c| c == 0 || !is_empty(c)).collect();
        let mut by_rank = filled.clone();
        by_rank.sort_by_key(|&column| (column > 0, self.columns[column].rank));
        let mut used = self.width(0).min(FIRST_MIN);
        let mut shown = Vec::new();
        for column in by_rank {
            let more = if column == 0 { 0 } else { GAP + self.width(column) };
            // One that has no room keeps out all that matter less, so that what is shown does not hang on luck.
            if self.columns[column].rank > 0 && used + more > room {
                break;
            }
            used += more;
            shown.push(column);
        }
        shown.sort_unstable();
        (filled, shown)
    }

    /// Headers and rows without the columns that have no place in `room`, and how many those are.
    pub fn cut(&self, room: usize) -> (Vec<Vec<String>>, usize) {
        let (filled, shown) = self.chosen(room);
        let headers = shown.iter().map(|&column| self.columns[column].header.to_owned()).collect();
        let rows = self.rows.iter().map(|row| shown.iter().map(|&column| row[column].clone()).collect());
        ([headers].into_iter().chain(rows).collect(), filled.len() - shown.len())
    }

    /// The table as text of at most `room` columns where that is possible, each line ended. Under it stands what its headers
    /// do not say, and how many columns were left out.
    pub fn render(&self, room: usize) -> String {
        let (filled, shown) = self.chosen(room);
        let others: usize = shown.iter().skip(1).map(|&column| GAP + self.width(column)).sum();
        let first = self.width(0).min(room.saturating_sub(others).max(FIRST_MIN));
        let widths: Vec<usize> = shown.iter().map(|&c| if c == 0 { first } else { self.width(c) }).collect();
        let mut text = String::new();
        let headers: Vec<&str> = shown.iter().map(|&column| self.columns[column].header).collect();
        push_row(&mut text, &headers, &widths);
        text.push_str(&"-".repeat(widths.iter().sum::<usize>() + GAP * (widths.len() - 1)));
        text.push('\n');
        for row in &self.rows {
            push_row(&mut text, &shown.iter().map(|&column| row[column].as_str()).collect::<Vec<_>>(), &widths);
        }
        let noted = shown.iter().map(|&column| self.columns[column]).filter(|column| !column.note.is_empty());
        for column in noted {
            text.push_str(&wrapped(&format!("{}: {}", column.header, column.note), room, 2));
        }
        text.push_str(&left_out(filled.len() - shown.len()));
        text
    }
}

/// A line on columns that were left out; nothing where all are there.
pub fn left_out(columns: usize) -> String {
    match columns {
        0 => String::new(),
        1 => "1 more column with --wide\n".to_owned(),
        several => format!("{several} more columns with --wide\n"),
    }
}

/// One row; a first cell that is too long takes several lines.
fn push_row(text: &mut String, cells: &[&str], widths: &[usize]) {
    let name = wrapped(cells[0], widths[0], 2);
    for (line, part) in name.lines().enumerate() {
        let start = text.len();
        text.push_str(part);
        if line == 0 {
            text.push_str(&" ".repeat(widths[0].saturating_sub(part.chars().count())));
            for (cell, width) in cells.iter().zip(widths).skip(1) {
                text.push_str(&" ".repeat(GAP + width.saturating_sub(cell.chars().count())));
                text.push_str(cell);
            }
        }
        text.truncate(start + text[start..].trim_end().len());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_left_and_numbers_right() {
        let mut table = Table::plain(&["name", "WA"]);
        table.row(vec!["single".into(), "10.5".into()]);
        table.row(vec!["é".into(), "1.5".into()]);
        assert_eq!(table.render(80), "name      WA\n------------\nsingle  10.5\né        1.5\n");
    }

    fn wide() -> Table {
        let column = |header, note, rank| Column { header, note, rank };
        let columns = [
            Column::new("device"),
            column("WA", "programmed for each byte", 0),
            column("erases", "", 2),
            column("copies", "moved by the collector", 1),
            column("empty", "never told", 1),
        ];
        let mut table = Table::new(&columns);
        let cells = ["epoch:length=1,gc=extra, cost_benefit, OP 15 %", "4.256", "123 456", "7 890 123", NOTHING];
        table.row(cells.map(str::to_owned).to_vec());
        table
    }

    #[test]
    fn what_has_no_room_is_left_out_and_said() {
        let narrow = "\
device                          WA     copies
---------------------------------------------
epoch:length=1,gc=extra,     4.256  7 890 123
  cost_benefit, OP 15 %
WA: programmed for each byte
copies: moved by the collector
1 more column with --wide
";
        assert_eq!(wide().render(45), narrow);
        let whole = "\
device                                             WA   erases     copies
-------------------------------------------------------------------------
epoch:length=1,gc=extra, cost_benefit, OP 15 %  4.256  123 456  7 890 123
WA: programmed for each byte
copies: moved by the collector
";
        assert_eq!(wide().render(80), whole);
        assert_eq!(wide().render(usize::MAX), whole);
    }
}
