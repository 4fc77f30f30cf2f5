//! Plain tables: a header, a rule, rows; text left, numbers right.

/// A table under construction.
pub struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table. The first column holds text, the others numbers.
    pub fn new(headers: &[&'static str]) -> Self {
        Self { headers: headers.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, one cell for each header.
    ///
    /// # Panics
    /// If the number of cells differs (a bug).
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headers.len());
        self.rows.push(cells);
    }

    /// The table as text, each line ended.
    pub fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|r| r[column].chars().count());
            cells.chain([self.headers[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.headers.len()).map(width).collect();
        let line = |cells: &[&str]| {
            let mut text = String::new();
            for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(width - cell.chars().count());
                if column > 0 {
                    text.push_str("  ");
                }
                text.push_str(&if column == 0 { format!("{cell}{padding}") } else { format!("{padding}{cell}") });
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
            text
        };
        let mut text = line(&self.headers);
        let total: usize = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        text.push_str(&"-".repeat(total));
        text.push('\n');
        for row in &self.rows {
            text.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stands_left_and_numbers_right() {
        let mut table = Table::new(&["name", "WA"]);
        table.row(vec!["single".into(), "10.5".into()]);
        table.row(vec!["é".into(), "1.5".into()]);
        assert_eq!(table.render(), "name      WA\n------------\nsingle  10.5\né        1.5\n");
    }
}
