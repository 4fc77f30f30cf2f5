//! What a picture is drawn on: lines of text from top to bottom, a legend, and scales.

use crate::figure::{Axis, Origin, Scale};
use crate::table::number;
use std::fmt::Write as _;

/// Pixels across.
pub(super) const WIDTH: f64 = 760.0;
/// Pixels of a line of text.
pub(super) const FONT: f64 = 13.0;
/// Pixels around everything.
pub(super) const MARGIN: f64 = 12.0;
/// Colours of the palette; the next ones are the same again, paler.
const SLOTS: usize = 8;

/// A name in a legend.
pub(super) struct Entry {
    pub name: String,
    pub slot: usize,
    pub origin: Origin,
}

/// A picture in the making: its elements, and how far down it has come.
pub(super) struct Canvas {
    body: String,
    pub y: f64,
}

impl Default for Canvas {
    fn default() -> Self {
        Self { body: String::new(), y: MARGIN }
    }
}

/// Text as it stands in an SVG file.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Pixels that a text takes across, more or less: no font is at hand.
pub(super) fn width_of(text: &str, font: f64) -> f64 {
    text.chars().count() as f64 * font * 0.56
}

/// How a series looks: published numbers are hollow, a second round of the palette is paler.
pub(super) fn look(slot: usize, origin: Origin) -> String {
    let colour = format!("var(--s{})", slot % SLOTS);
    let fade = if slot < SLOTS { "" } else { " opacity=\"0.55\"" };
    match origin {
        Origin::Published => format!("fill=\"none\" stroke=\"{colour}\" stroke-dasharray=\"3 2\"{fade}"),
        Origin::Measured | Origin::Theory => format!("fill=\"{colour}\"{fade}"),
    }
}

impl Canvas {
    /// Adds an element.
    pub(super) fn add(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("writing to a string cannot fail");
        self.body.push('\n');
    }

    /// Writes a text at a place; `anchor` is `start`, `middle` or `end`.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = escape(text);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// Writes lines of text across the whole picture, broken between words.
    pub(super) fn line(&mut self, text: &str, font: f64, class: &str) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && width_of(&line, font) + width_of(word, font) + font > WIDTH - 2.0 * MARGIN {
                self.y += font + 5.0;
                self.text(MARGIN, self.y, "start", class, &std::mem::take(&mut line));
            }
            line += if line.is_empty() { "" } else { " " };
            line += word;
        }
        self.y += font + 5.0;
        self.text(MARGIN, self.y, "start", class, &line);
        self.y += 6.0;
    }

    /// Names what colours mean, several to a line; a single series needs no name.
    pub(super) fn legend(&mut self, entries: &[Entry]) {
        if entries.len() < 2 {
            return;
        }
        self.y += FONT + 2.0;
        let mut x = MARGIN;
        for entry in entries {
            let width = 26.0 + width_of(&entry.name, FONT);
            if x > MARGIN && x + width > WIDTH - MARGIN {
                x = MARGIN;
                self.y += FONT + 5.0;
            }
            let (look, y) = (look(entry.slot, entry.origin), self.y - 9.0);
            self.add(format_args!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"12\" height=\"9\" {look}/>"));
            self.text(x + 17.0, self.y, "start", "small", &entry.name);
            x += width;
        }
        self.y += 8.0;
    }

    /// The text of the file.
    pub(super) fn finish(self, colours: &str, title: &str) -> String {
        let (height, title, body) = (self.y + MARGIN, escape(title), self.body);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" role=\"img\">\n\
             <title>{title}</title>\n<style>\n{colours}\n\
             text {{ fill: var(--ink); font-size: {FONT}px; }} .title {{ font-size: 15px; font-weight: 600; }} \
             .panel {{ font-weight: 600; }} .small, .tick {{ fill: var(--soft); font-size: 12px; }}\n\
             .grid {{ stroke: var(--line); }} .rule {{ stroke: var(--soft); stroke-dasharray: 5 3; }} \
             .line {{ fill: none; stroke-width: 1.8; }}\n</style>\n\
             <rect width=\"100%\" height=\"100%\" style=\"fill: var(--paper)\"/>\n{body}</svg>\n"
        )
    }
}

/// From the numbers of an axis to pixels.
pub(super) struct Ruler {
    logarithmic: bool,
    from: f64,
    to: f64,
    pixels: (f64, f64),
    step: f64,
}

impl Ruler {
    /// A scale for `numbers` on `axis` between two pixels. A linear axis begins at zero where `from_zero` asks for it.
    pub(super) fn new(axis: &Axis, numbers: impl Iterator<Item = f64>, from_zero: bool, pixels: (f64, f64)) -> Self {
        let logarithmic = axis.scale == Scale::Logarithmic;
        let shown = numbers.filter(|n| n.is_finite() && (!logarithmic || *n > 0.0));
        let (mut from, mut to) =
            shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), n| (least.min(n), most.max(n)));
        if from > to {
            (from, to) = (1.0, 2.0);
        }
        if logarithmic {
            (from, to) = (from.log10().floor(), to.log10().ceil());
            let to = if to > from { to } else { from + 1.0 };
            return Self { logarithmic, from, to, pixels, step: 1.0 };
        }
        if from_zero {
            (from, to) = (from.min(0.0), to.max(0.0));
        }
        let span = if to > from { to - from } else { 1.0 };
        let power = 10f64.powf((span / 6.0).log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| span / s <= 6.0).unwrap_or(power);
        let (from, to) = ((from / step).floor() * step, ((from + span) / step).ceil() * step);
        Self { logarithmic, from, to, pixels, step }
    }

    /// Where a number lies; `None` if the axis cannot show it.
    pub(super) fn at(&self, number: f64) -> Option<f64> {
        let along = if self.logarithmic { number.log10() } else { number };
        let share = (along - self.from) / (self.to - self.from);
        share.is_finite().then(|| self.pixels.0 + share * (self.pixels.1 - self.pixels.0))
    }

    /// Round numbers along the axis, with their places and texts.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let count = ((self.to - self.from) / self.step).round() as usize;
        let along = (0..=count).map(|i| self.from + i as f64 * self.step);
        let number_at = |a: f64| if self.logarithmic { 10f64.powf(a) } else { (a / self.step).round() * self.step };
        // What rounding leaves of a step of a tenth is not shown.
        let shown = |n: f64| number((n * 1e9).round() / 1e9);
        along.filter_map(|a| Some((self.at(number_at(a))?, shown(number_at(a))))).collect()
    }
}

/// An axis and its unit as people read it.
pub(super) fn title_of(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{}, {}", axis.label, axis.unit) }
}
