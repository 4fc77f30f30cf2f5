//! The write heat map: page writes by address and time, recorded while a run goes on.
//!
//! A run's length is not known in advance, so columns start narrow; whenever there are too many, pairs are joined and the
//! width doubles. A column covers as many page writes as it says, wherever in a request it ends; only the last may cover fewer.
//! The cost of a request within one row and column is a shift and an addition.

use crate::results::WriteHeat;
use isotherm::request::{Op, Request};

/// Most columns that are kept.
const COLUMNS_MAX: usize = 96;
/// Most rows.
const ROWS_MAX: u64 = 64;
/// Host pages in a column at the start.
const FIRST_COLUMN: u64 = 64;

type Column = [u64; ROWS_MAX as usize];

/// A heat map that is being recorded.
pub struct HeatRecorder {
    columns: Vec<Column>,
    open: Column,
    column_pages: u64,
    /// Pages that the open column still takes.
    room: u64,
    log2_page_bytes: u32,
    log2_row_pages: u32,
    rows: usize,
}

impl HeatRecorder {
    /// An empty map of a device of `logical_pages` pages.
    pub fn new(logical_pages: u32, page_bytes: u32) -> Self {
        // Rows are powers of two, so that finding one is a shift: there are 33 to 64 of them on all but tiny devices.
        let log2_row_pages = u64::from(logical_pages).div_ceil(ROWS_MAX).next_power_of_two().trailing_zeros();
        Self {
            columns: Vec::with_capacity(COLUMNS_MAX),
            open: [0; ROWS_MAX as usize],
            column_pages: FIRST_COLUMN,
            room: FIRST_COLUMN,
            log2_page_bytes: page_bytes.trailing_zeros(),
            log2_row_pages,
            rows: (u64::from(logical_pages).div_ceil(1 << log2_row_pages)) as usize,
        }
    }

    /// Adds the writes of a batch that was carried out.
    pub fn add(&mut self, batch: &[Request]) {
        for request in batch.iter().filter(|request| request.op == Op::Write && request.length > 0) {
            let mut page = request.offset >> self.log2_page_bytes;
            let end = ((request.offset + (request.length - 1)) >> self.log2_page_bytes) + 1;
            while page < end {
                let row = page >> self.log2_row_pages;
                let row_end = (row + 1) << self.log2_row_pages;
                let pages = (end.min(row_end) - page).min(self.room);
                self.open[row as usize] += pages;
                self.room -= pages;
                page += pages;
                if self.room == 0 {
                    self.close_column();
                }
            }
        }
    }

    fn close_column(&mut self) {
        self.columns.push(std::mem::replace(&mut self.open, [0; ROWS_MAX as usize]));
        if self.columns.len() == COLUMNS_MAX {
            for i in 0..COLUMNS_MAX / 2 {
                for row in 0..self.rows {
                    self.columns[i][row] = self.columns[2 * i][row] + self.columns[2 * i + 1][row];
                }
            }
            self.columns.truncate(COLUMNS_MAX / 2);
            self.column_pages *= 2;
        }
        self.room = self.column_pages;
    }

    /// Ends the recording.
    pub fn finish(mut self) -> WriteHeat {
        if self.room < self.column_pages {
            self.columns.push(self.open);
        }
        WriteHeat {
            row_bytes: 1 << (self.log2_row_pages + self.log2_page_bytes),
            column_host_pages: self.column_pages,
            counts: (0..self.rows).map(|row| self.columns.iter().map(|column| column[row]).collect()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(page: u64, pages: u64) -> Request {
        Request { arrival_ns: 0, offset: page * 4096, length: pages * 4096, op: Op::Write, source: 0, durable: false }
    }

    #[test]
    fn columns_cover_what_they_say_however_large_requests_are() {
        for pages in [1, 7, 64, 1000] {
            for total in [1, 63, 64, 65, 6143, 6144, 6145, 1_000_003] {
                let mut heat = HeatRecorder::new(1000, 4096);
                let mut left = total;
                while left > 0 {
                    let length = pages.min(left);
                    heat.add(&[write(left % (1001 - length), length)]);
                    left -= length;
                }
                let heat = heat.finish();
                let columns = heat.counts[0].len();
                let of_column = |at: usize| heat.counts.iter().map(|row| row[at]).sum::<u64>();
                assert!((0..columns - 1).all(|at| of_column(at) == heat.column_host_pages));
                assert_eq!((0..columns).map(of_column).sum::<u64>(), total);
                assert!(columns <= COLUMNS_MAX && (total < 6144 || columns >= COLUMNS_MAX / 2), "{columns}");
                assert!(heat.counts.len() <= ROWS_MAX as usize);
                assert!(heat.row_bytes * heat.counts.len() as u64 >= 1000 * 4096);
            }
        }
    }

    #[test]
    fn writes_stand_in_the_rows_of_their_addresses() {
        let mut heat = HeatRecorder::new(1000, 4096);
        let read = Request { op: Op::Read, ..write(0, 9) };
        heat.add(&[write(15, 2), read, Request { length: 1, offset: 4096 * 999 + 5, ..write(0, 1) }]);
        let heat = heat.finish();
        assert_eq!(heat.row_bytes, 16 * 4096);
        let rows: Vec<u64> = heat.counts.iter().map(|row| row[0]).collect();
        assert_eq!((rows[0], rows[1], rows[62], rows.iter().sum::<u64>()), (1, 1, 1, 3));
    }
}
