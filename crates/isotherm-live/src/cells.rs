//! The block map: every block of a device, several of them in a cell where there are too many to draw.

use serde::{Serialize, Serializer};

/// What a block is at this moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum State {
    /// It holds nothing and can be written.
    Free = 0,
    /// A stream appends to it.
    Open = 1,
    /// It is full, or waits to be collected.
    Closed = 2,
    /// It is worn out.
    Bad = 3,
}

impl State {
    const COUNT: usize = 4;

    /// Whether it can hold valid pages.
    fn holds_data(self) -> bool {
        matches!(self, Self::Open | Self::Closed)
    }
}

impl Serialize for State {
    /// As a number, so that a map of thousands stays small.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// One block, before it is put into a cell.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The share of its pages that are valid, 0 to 1.
    pub valid_share: f32,
    /// 0 for the block written last, 1 for the one written longest ago.
    pub age: f32,
    /// How often it was erased.
    pub erases: f32,
    /// The stream that wrote it.
    pub stream: u16,
    /// What it is.
    pub state: State,
}

/// The blocks of a device, in cells of equal size. The lists run side by side, a number for each cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Cells {
    /// Blocks in all.
    pub blocks: u32,
    /// Blocks in a cell; the last cell may have fewer.
    pub blocks_per_cell: u32,
    /// Blocks that are free, open, closed and bad, of all.
    pub by_state: [u32; State::COUNT],
    /// Share of valid pages, 0 to 1: the mean of the cell's blocks that hold data.
    #[serde(serialize_with = "thousandths")]
    pub valid_share: Vec<f32>,
    /// Age, 0 (written last) to 1 (written longest ago): the mean of the cell's blocks that hold data.
    #[serde(serialize_with = "thousandths")]
    pub age: Vec<f32>,
    /// Erases: the mean of the cell's blocks.
    #[serde(serialize_with = "tenths")]
    pub erases: Vec<f32>,
    /// The stream that wrote most of the cell's blocks that hold data.
    pub stream: Vec<u16>,
    /// What most of the cell's blocks are; the one earlier in [`State`]'s order where several are as many.
    pub state: Vec<State>,
}

impl Cells {
    /// Puts `blocks`, in order, into at most `most` cells (at least one).
    pub fn gather(blocks: impl ExactSizeIterator<Item = Block>, most: usize) -> Self {
        let count = blocks.len();
        let per_cell = count.div_ceil(most.max(1)).max(1);
        let mut cells = Self::with_capacity(count.div_ceil(per_cell));
        cells.blocks = count as u32;
        cells.blocks_per_cell = per_cell as u32;
        let mut cell = Cell::default();
        for block in blocks {
            cells.by_state[block.state as usize] += 1;
            cell.add(&block);
            if cell.blocks == per_cell {
                cells.push(&mut cell);
            }
        }
        if cell.blocks > 0 {
            cells.push(&mut cell);
        }
        cells
    }

    /// The same blocks in at most `most` cells. A cell of fewer blocks than the others counts like them.
    pub(crate) fn coarsened(&self, most: usize) -> Self {
        let blocks = (0..self.state.len()).map(|i| Block {
            valid_share: self.valid_share[i],
            age: self.age[i],
            erases: self.erases[i],
            stream: self.stream[i],
            state: self.state[i],
        });
        let coarse = Self::gather(blocks, most);
        Self {
            blocks: self.blocks,
            blocks_per_cell: self.blocks_per_cell * coarse.blocks_per_cell,
            by_state: self.by_state,
            ..coarse
        }
    }

    fn with_capacity(cells: usize) -> Self {
        Self {
            valid_share: Vec::with_capacity(cells),
            age: Vec::with_capacity(cells),
            erases: Vec::with_capacity(cells),
            stream: Vec::with_capacity(cells),
            state: Vec::with_capacity(cells),
            ..Self::default()
        }
    }

    fn push(&mut self, cell: &mut Cell) {
        let with_data = cell.with_data.max(1) as f32;
        self.valid_share.push(cell.valid_share / with_data);
        self.age.push(cell.age / with_data);
        self.erases.push(cell.erases / cell.blocks as f32);
        self.stream.push(cell.stream());
        self.state.push(cell.state());
        cell.clear();
    }
}

/// Sums over the blocks of the cell that is being filled.
#[derive(Default)]
struct Cell {
    blocks: usize,
    with_data: usize,
    valid_share: f32,
    age: f32,
    erases: f32,
    states: [u32; State::COUNT],
    /// Streams of its blocks with their counts: few, so that a list is searched faster than a map.
    streams: Vec<(u16, u32)>,
}

impl Cell {
    fn add(&mut self, block: &Block) {
        self.blocks += 1;
        self.erases += block.erases;
        self.states[block.state as usize] += 1;
        if !block.state.holds_data() {
            return;
        }
        self.with_data += 1;
        self.valid_share += block.valid_share;
        self.age += block.age;
        match self.streams.iter_mut().find(|(stream, _)| *stream == block.stream) {
            Some((_, count)) => *count += 1,
            None => self.streams.push((block.stream, 1)),
        }
    }

    fn stream(&self) -> u16 {
        // The lowest number where several are as many, so that a cell does not flicker between them.
        self.streams.iter().max_by_key(|(stream, count)| (*count, u16::MAX - stream)).map_or(0, |(stream, _)| *stream)
    }

    fn state(&self) -> State {
        let order = [State::Free, State::Open, State::Closed, State::Bad];
        // `max_by_key` gives the last of equals, and the first is wanted.
        order.into_iter().rev().max_by_key(|state| self.states[*state as usize]).unwrap_or(State::Free)
    }

    /// Empties it and keeps its memory.
    fn clear(&mut self) {
        let mut streams = std::mem::take(&mut self.streams);
        streams.clear();
        *self = Self { streams, ..Self::default() };
    }
}

fn thousandths<S: Serializer>(numbers: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(|n| (n * 1000.0).round() / 1000.0))
}

fn tenths<S: Serializer>(numbers: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(|n| (n * 10.0).round() / 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(valid_share: f32, stream: u16, state: State) -> Block {
        Block { valid_share, age: valid_share, erases: 4.0 * valid_share, stream, state }
    }

    #[test]
    fn a_small_device_has_a_cell_for_each_block() {
        let blocks = [block(0.25, 3, State::Closed), block(0.0, 0, State::Free), block(1.0, 1, State::Open)];
        let cells = Cells::gather(blocks.into_iter(), 3);
        assert_eq!((cells.blocks, cells.blocks_per_cell, cells.by_state), (3, 1, [1, 1, 1, 0]));
        assert_eq!(cells.valid_share, [0.25, 0.0, 1.0]);
        assert_eq!(cells.erases, [1.0, 0.0, 4.0]);
        assert_eq!(cells.stream, [3, 0, 1]);
        assert_eq!(cells.state, [State::Closed, State::Free, State::Open]);
    }

    #[test]
    fn a_cell_is_the_mean_of_the_blocks_that_hold_data() {
        let blocks = [
            block(0.5, 2, State::Closed),
            block(0.0, 0, State::Free),
            block(1.0, 2, State::Closed),
            block(0.0, 7, State::Bad),
            block(0.0, 7, State::Bad),
        ];
        let cells = Cells::gather(blocks.into_iter(), 2);
        assert_eq!((cells.blocks, cells.blocks_per_cell), (5, 3));
        assert_eq!(cells.valid_share, [0.75, 0.0]);
        assert_eq!(cells.erases, [2.0, 0.0]);
        assert_eq!((cells.stream, cells.state), (vec![2, 0], vec![State::Closed, State::Bad]));
    }

    #[test]
    fn a_million_blocks_fit_and_can_be_made_coarser() {
        let blocks = (0..1_000_000).map(|i| block((i % 100) as f32 / 100.0, (i % 3) as u16, State::Closed));
        let cells = Cells::gather(blocks, crate::MOST_CELLS);
        assert_eq!((cells.blocks_per_cell, cells.state.len()), (50, 20_000));
        let coarse = cells.coarsened(300);
        assert_eq!((coarse.blocks, coarse.blocks_per_cell, coarse.by_state), (1_000_000, 3350, cells.by_state));
        assert_eq!(coarse.state.len(), 1_000_000_usize.div_ceil(3350));
        assert!(coarse.valid_share[..298].iter().all(|share| (share - 0.495).abs() < 0.01));
    }

    #[test]
    fn nothing_has_no_cells() {
        assert_eq!(Cells::gather(std::iter::empty(), 0).state, []);
    }

    #[test]
    fn numbers_are_short_on_the_wire() {
        let cells = Cells::gather([block(1.0 / 3.0, 1, State::Open)].into_iter(), 1);
        let json = serde_json::to_string(&cells).unwrap();
        assert!(
            json.contains("\"valid_share\":[0.333],\"age\":[0.333],\"erases\":[1.3],\"stream\":[1],\"state\":[1]"),
            "{json}"
        );
    }
}
