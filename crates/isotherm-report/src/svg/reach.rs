//! Axes: where numbers lie along them, and the round ones that stand beside them.

use super::canvas::{Picture, RIGHT, width_of};
use super::signs::colour;
use crate::figure::{Axis, Scale};
use crate::ranges::Ranges;
use crate::table::number;

/// Room that a number takes at a level axis and at an upright one.
pub(super) const TICKS: [f64; 2] = [46.0, 26.0];

/// An axis: what it shows, and where that lies.
pub(super) struct Reach {
    pub(super) scale: Scale,
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Reach {
    pub(super) fn new(axis: &Axis, range: Option<[f64; 2]>, from: f64, to: f64) -> Self {
        let [least, mut most] = range.unwrap_or([1.0, 2.0]);
        if least == most {
            most = if axis.scale == Scale::Logarithmic { least * 10.0 } else { least + 1.0 };
        }
        Self { scale: axis.scale, least, most, from, to }
    }

    pub(super) fn at(&self, number: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (number - self.least) / (self.most - self.least),
            Scale::Logarithmic => (number / self.least).ln() / (self.most / self.least).ln(),
        };
        self.from + share * (self.to - self.from)
    }

    /// Round numbers along it, each with at least `room`, up to six.
    pub(super) fn ticks(&self, room: f64) -> Vec<f64> {
        let most = ((self.to - self.from).abs() / room).clamp(2.0, 6.0);
        if self.scale == Scale::Logarithmic {
            let (low, high) = (self.least.log10().floor() as i32, self.most.log10().ceil() as i32);
            let within = |steps: &[f64]| -> Vec<f64> {
                let all = (low..=high).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
                all.filter(|tick| self.least <= *tick * (1.0 + 1e-9) && *tick <= self.most * (1.0 + 1e-9)).collect()
            };
            let fine = within(&[1.0, 2.0, 5.0]);
            return if fine.len() as f64 <= most { fine } else { within(&[1.0]) };
        }
        let power = 10f64.powf(((self.most - self.least) / most).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power);
        let step = steps.into_iter().find(|step| (self.most - self.least) / step <= most).unwrap_or(20.0 * power);
        let (first, last) = ((self.least / step).ceil() as i64, (self.most / step + 1e-9).floor() as i64);
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// A round number, without the digits that it does not have.
pub(super) fn tick(value: f64) -> String {
    let (value, unit) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, " G"),
        large if large >= 1e6 => (value / 1e6, " M"),
        large if large >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let text = number(value);
    let text = if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    text + unit
}

pub(super) fn title_of(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

/// The frame of a plane: axes, the name of x, round numbers.
pub(super) fn plane(picture: &mut Picture, (x, x_name): (&Reach, &str), y: &Reach) {
    for at in y.ticks(TICKS[1]) {
        picture.line((x.from, y.at(at)), (x.to, y.at(at)), colour("line"));
        picture.text((x.from - 6.0, y.at(at) + 4.0), "end", "soft", &tick(at));
    }
    for at in x.ticks(TICKS[0]) {
        picture.line((x.at(at), y.from), (x.at(at), y.from + 4.0), colour("soft"));
        picture.middle(x.at(at), y.from + 17.0, &tick(at));
    }
    picture.line((x.from, y.from), (x.to, y.from), colour("soft"));
    picture.y = picture.name((x.from + x.to) / 2.0, y.from + 34.0, x_name) + 8.0;
}

/// Where x and y of a plane lie that begins at the height where the picture is, with so much room for names at its right.
pub(super) fn reaches(picture: &Picture, axes: [&Axis; 2], ranges: Ranges, height: f64, names: f64) -> (Reach, Reach) {
    let top = picture.y + 8.0;
    let y = Reach::new(axes[1], ranges.y, top + height, top);
    let widest = y.ticks(TICKS[1]).into_iter().map(|at| width_of(&tick(at))).fold(0.0, f64::max);
    let x = Reach::new(axes[0], ranges.x, picture.left + 8.0 + widest + 6.0, picture.right - f64::max(RIGHT, names));
    (x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!([0.0, 0.5, 10.0, 1.25, 1e-7].map(tick), ["0", "0.5", "10", "1.25", "1.00e-7"]);
        assert_eq!([5000.0, 5e4, 1.5e6, -2e9].map(tick), ["5000", "50 k", "1.5 M", "-2 G"]);
        let ticks = |axis: Axis, range, to| Reach::new(&axis, Some(range), 0.0, to).ticks(46.0);
        let linear = |to| ticks(Axis::linear("", ""), [7.03, 28.1], to);
        assert_eq!(linear(300.0), [10.0, 15.0, 20.0, 25.0]);
        assert_eq!(linear(100.0), [10.0, 20.0], "no more than there is room for");
        let logarithmic = |range| ticks(Axis::logarithmic("", ""), range, 300.0);
        assert_eq!(logarithmic([0.5, 2000.0]), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(logarithmic([128.0, 4096.0]), [200.0, 500.0, 1000.0, 2000.0], "less than two powers of ten");
    }
}
