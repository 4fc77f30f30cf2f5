//! The one thread that asks the source.

use crate::MOST_CELLS;
use crate::board::{Board, Item};
use crate::source::Source;

/// Asks the source for what is due and what is wanted, until the board stops.
pub(crate) fn run(source: &dyn Source, board: &Board) {
    while let Some(work) = board.next_work() {
        if work.sample {
            board.publish_sample(source.sample());
        }
        if work.stats {
            board.publish(Item::Stats, format!("{:#}\n", source.stats()));
        }
        if work.metrics {
            board.publish(Item::Metrics, source.metrics());
        }
        if work.cells {
            board.publish_cells(source.cells(MOST_CELLS));
        }
    }
}
