//! The map: every unit of a device, several of them in a cell where there are too many to draw.

use crate::Colouring;
use crate::colouring::Scale;
use serde::{Serialize, Serializer};

/// What a unit is at this moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum State {
    /// It holds nothing and can be written.
    Free = 0,
    /// It is being appended to.
    Open = 1,
    /// It is full, or waits to be collected.
    Closed = 2,
    /// It is worn out.
    Bad = 3,
}

impl State {
    const COUNT: usize = 4;
    const ALL: [Self; Self::COUNT] = [Self::Free, Self::Open, Self::Closed, Self::Bad];

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

/// One unit, before it is put into a cell.
#[derive(Clone, Copy, Debug)]
pub struct Unit<const N: usize> {
    /// What it is.
    pub state: State,
    /// A number for each colouring, in their order.
    pub numbers: [f32; N],
}

/// Parts of a distribution of shares: part `i` holds `[i/20, (i+1)/20)`, the last one 1 too.
const PARTS: usize = 20;

/// The units of a device, in cells of equal size. The lists run side by side, a number for each cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Cells {
    /// Units in all.
    pub units: u32,
    /// Units in a cell; the last cell may have fewer.
    pub units_per_cell: u32,
    /// Units that are free, open, closed and bad, of all.
    pub by_state: [u32; State::COUNT],
    /// Of all units that hold data, how many have which share, in twentieths, for each colouring that is a share.
    #[serde(serialize_with = "by_key")]
    pub spreads: Vec<(&'static str, Vec<u32>)>,
    /// What most of the cell's units are; the one earlier in [`State`]'s order where several are as many.
    pub state: Vec<State>,
    /// The numbers of each colouring: the mean of the units in the cell that have one, or the class of most of them.
    #[serde(serialize_with = "short_by_key")]
    pub numbers: Vec<(&'static str, Vec<f32>)>,
}

/// A number that is short in JSON.
struct Short(f32);

impl Serialize for Short {
    /// Three significant digits, and all of those before the point.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = f64::from(self.0);
        if number == 0.0 || !number.is_finite() {
            return serializer.serialize_u8(0);
        }
        let power = 10f64.powi((2 - number.abs().log10().floor() as i32).max(0));
        let rounded = (number * power).round() / power;
        // Without a fraction there is no point to write.
        if rounded.fract() == 0.0 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

impl Cells {
    /// Puts `units`, in order, into at most `most` cells (at least one).
    pub fn gather<const N: usize>(
        colourings: &[Colouring; N],
        units: impl ExactSizeIterator<Item = Unit<N>>,
        most: usize,
    ) -> Self {
        let mut gathering = Gathering::new(colourings, units.len(), most);
        for unit in units {
            gathering.add(unit.state, &unit.numbers);
        }
        gathering.finish()
    }

    /// The same units in at most `most` cells, coloured as they were gathered. A cell of fewer units than the others counts like them.
    pub(crate) fn coarsened(&self, colourings: &[Colouring], most: usize) -> Self {
        let mut gathering = Gathering::new(colourings, self.state.len(), most);
        let mut numbers = vec![0.0; colourings.len()];
        for (cell, state) in self.state.iter().enumerate() {
            for (number, (_, of_cells)) in numbers.iter_mut().zip(&self.numbers) {
                *number = of_cells[cell];
            }
            gathering.add(*state, &numbers);
        }
        let coarse = gathering.finish();
        Self {
            units: self.units,
            units_per_cell: self.units_per_cell * coarse.units_per_cell,
            by_state: self.by_state,
            spreads: self.spreads.clone(),
            ..coarse
        }
    }
}

/// Cells that are being filled.
struct Gathering<'a> {
    colourings: &'a [Colouring],
    cells: Cells,
    cell: Cell,
}

impl<'a> Gathering<'a> {
    fn new(colourings: &'a [Colouring], units: usize, most: usize) -> Self {
        let per_cell = units.div_ceil(most.max(1)).max(1);
        let count = units.div_ceil(per_cell);
        let shares = colourings.iter().filter(|colouring| colouring.scale == Scale::Share);
        let cells = Cells {
            units: units as u32,
            units_per_cell: per_cell as u32,
            by_state: [0; State::COUNT],
            spreads: shares.map(|colouring| (colouring.key, vec![0; PARTS])).collect(),
            state: Vec::with_capacity(count),
            numbers: colourings.iter().map(|colouring| (colouring.key, Vec::with_capacity(count))).collect(),
        };
        let cell = Cell { sums: vec![Sum::default(); colourings.len()], ..Cell::default() };
        Self { colourings, cells, cell }
    }

    fn add(&mut self, state: State, numbers: &[f32]) {
        self.cells.by_state[state as usize] += 1;
        let mut spreads = self.cells.spreads.iter_mut();
        for ((colouring, sum), number) in self.colourings.iter().zip(&mut self.cell.sums).zip(numbers) {
            let spread = (colouring.scale == Scale::Share).then(|| spreads.next()).flatten();
            if !(state.holds_data() || colouring.of_all) {
                continue;
            }
            sum.add(colouring, *number);
            if let Some((_, parts)) = spread {
                parts[((*number * PARTS as f32) as usize).min(PARTS - 1)] += 1;
            }
        }
        self.cell.units += 1;
        self.cell.states[state as usize] += 1;
        if self.cell.units == self.cells.units_per_cell {
            self.close_cell();
        }
    }

    fn close_cell(&mut self) {
        // `max_by_key` gives the last of equals, and the first is wanted.
        let states = self.cell.states;
        let state = State::ALL.into_iter().rev().max_by_key(|state| states[*state as usize]);
        self.cells.state.push(state.expect("there are states"));
        for ((_, numbers), sum) in self.cells.numbers.iter_mut().zip(&mut self.cell.sums) {
            numbers.push(sum.take());
        }
        (self.cell.units, self.cell.states) = (0, [0; State::COUNT]);
    }

    fn finish(mut self) -> Cells {
        if self.cell.units > 0 {
            self.close_cell();
        }
        self.cells
    }
}

/// What is known of the units of the cell that is being filled.
#[derive(Default)]
struct Cell {
    units: u32,
    states: [u32; State::COUNT],
    /// For each colouring.
    sums: Vec<Sum>,
}

/// The numbers of one colouring in a cell.
#[derive(Clone, Default)]
struct Sum {
    count: u32,
    sum: f64,
    /// Classes with their counts: few, so that a list is searched faster than a map.
    classes: Vec<(u16, u32)>,
}

impl Sum {
    fn add(&mut self, colouring: &Colouring, number: f32) {
        self.count += 1;
        if !colouring.scale.is_classes() {
            self.sum += f64::from(number);
            return;
        }
        let class = number as u16;
        match self.classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, count)) => *count += 1,
            None => self.classes.push((class, 1)),
        }
    }

    /// The number of the cell. The sum is empty then, and keeps its memory.
    fn take(&mut self) -> f32 {
        // The lowest class where several are as many, so that a cell does not flicker between them.
        let most = self.classes.iter().max_by_key(|(class, count)| (*count, u16::MAX - class));
        let number = match most {
            Some((class, _)) => f32::from(*class),
            None => (self.sum / f64::from(self.count.max(1))) as f32,
        };
        self.classes.clear();
        (self.count, self.sum) = (0, 0.0);
        number
    }
}

fn by_key<S: Serializer>(lists: &[(&str, Vec<u32>)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(lists.iter().map(|(key, list)| (key, list)))
}

fn short_by_key<S: Serializer>(lists: &[(&str, Vec<f32>)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(lists.iter().map(|(key, list)| (key, ShortList(list))))
}

struct ShortList<'a>(&'a [f32]);

impl Serialize for ShortList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|number| Short(*number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colourings() -> [Colouring; 3] {
        let classes = Scale::Classes { names: Vec::new() };
        [
            Colouring::new("share", "valid pages", "{} valid", Scale::Share),
            Colouring { of_all: true, ..Colouring::new("erases", "erases", "{} erases", Scale::Linear) },
            Colouring::new("stream", "stream", "stream {}", classes),
        ]
    }

    fn unit(share: f32, stream: u16, state: State) -> Unit<3> {
        Unit { state, numbers: [share, 4.0 * share, stream.into()] }
    }

    fn gather(units: &[Unit<3>], most: usize) -> Cells {
        Cells::gather(&colourings(), units.iter().copied(), most)
    }

    fn numbers(cells: &Cells, of: usize) -> Vec<f32> {
        cells.numbers[of].1.clone()
    }

    #[test]
    fn a_small_device_has_a_cell_for_each_unit() {
        let units = [unit(0.25, 3, State::Closed), unit(0.5, 0, State::Free), unit(1.0, 1, State::Open)];
        let cells = gather(&units, 3);
        assert_eq!((cells.units, cells.units_per_cell, cells.by_state), (3, 1, [1, 1, 1, 0]));
        assert_eq!(numbers(&cells, 0), [0.25, 0.0, 1.0], "a free unit has no share");
        assert_eq!(numbers(&cells, 1), [1.0, 2.0, 4.0]);
        assert_eq!(numbers(&cells, 2), [3.0, 0.0, 1.0]);
        assert_eq!(cells.state, [State::Closed, State::Free, State::Open]);
    }

    #[test]
    fn a_cell_is_the_mean_of_the_units_that_have_the_number() {
        let units = [
            unit(0.5, 2, State::Closed),
            unit(0.0, 0, State::Free),
            unit(1.0, 2, State::Closed),
            unit(0.0, 7, State::Bad),
            unit(0.0, 7, State::Bad),
        ];
        let cells = gather(&units, 2);
        assert_eq!((cells.units, cells.units_per_cell), (5, 3));
        assert_eq!(numbers(&cells, 0), [0.75, 0.0]);
        assert_eq!(numbers(&cells, 1), [2.0, 0.0]);
        assert_eq!((numbers(&cells, 2), cells.state), (vec![2.0, 0.0], vec![State::Closed, State::Bad]));
    }

    #[test]
    fn shares_are_spread_over_twentieths_of_the_units_that_hold_data() {
        let shares = [0.0, 0.049, 0.05, 0.5, 0.999, 1.0];
        let mut units: Vec<_> = shares.iter().map(|share| unit(*share, 0, State::Closed)).collect();
        units.push(unit(0.5, 0, State::Free));
        let cells = gather(&units, 2);
        let mut expected = vec![0; PARTS];
        (expected[0], expected[1], expected[10], expected[19]) = (2, 1, 1, 2);
        assert_eq!(cells.spreads, [("share", expected)]);
        assert_eq!(cells.coarsened(&colourings(), 1).spreads, cells.spreads, "of units, not of cells");
    }

    #[test]
    fn a_million_units_fit_and_can_be_made_coarser() {
        let units = (0..1_000_000).map(|i| unit((i % 100) as f32 / 100.0, (i % 3) as u16, State::Closed));
        let cells = Cells::gather(&colourings(), units, crate::MOST_CELLS);
        assert_eq!((cells.units_per_cell, cells.state.len()), (50, 20_000));
        let coarse = cells.coarsened(&colourings(), 300);
        assert_eq!((coarse.units, coarse.units_per_cell, coarse.by_state), (1_000_000, 3350, cells.by_state));
        assert_eq!(coarse.state.len(), 1_000_000_usize.div_ceil(3350));
        assert!(numbers(&coarse, 0)[..298].iter().all(|share| (share - 0.495).abs() < 0.01));
        assert!(numbers(&coarse, 2).iter().all(|stream| *stream == stream.floor()), "classes are not averaged");
    }

    #[test]
    fn nothing_has_no_cells() {
        assert_eq!(gather(&[], 0).state, []);
    }

    #[test]
    fn numbers_are_short_on_the_wire() {
        let cells = gather(&[unit(1.0 / 3.0, 1, State::Open)], 1);
        let json = serde_json::to_string(&cells).unwrap();
        assert!(
            json.ends_with("\"state\":[1],\"numbers\":{\"share\":[0.333],\"erases\":[1.33],\"stream\":[1]}}"),
            "{json}"
        );
        for (number, text) in [(0.0, "0"), (123_456.0, "123456"), (99.96, "100"), (0.000_012_345, "0.0000123")] {
            assert_eq!(serde_json::to_string(&Short(number)).unwrap(), text);
        }
    }
}
