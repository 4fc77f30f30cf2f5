//! What is written and drawn, and how much room it takes.

use super::signs::{Shape, Sign, colour};
use std::fmt::Write as _;

/// So narrow that the letters can still be read on a telephone: of 360 pixels, a letter's height is over 8.
pub(super) const WIDTH: f64 = 520.0;
/// How wide a page shows a picture where it has room.
pub(super) const SHOWN: f64 = 580.0;
pub(super) const RIGHT: f64 = 16.0;
/// Height of a line of text.
pub(super) const LINE: f64 = 18.0;
/// About how wide a letter is.
const LETTER: f64 = 6.6;

/// A name in a legend and what stands for it.
pub(super) type Entry = (String, Sign);

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// About how wide a text is.
pub(super) fn width_of(text: &str) -> f64 {
    LETTER * text.chars().count() as f64
}

/// A text in lines of so much width, unless a word is wider.
fn lines_of(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width_of(line) + width_of(word) + LETTER <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A picture that grows downwards.
pub(super) struct Picture {
    pub(super) body: String,
    /// Where the next thing begins.
    pub(super) y: f64,
    /// Between what things lie: the picture's edges, or those of one of several columns.
    pub(super) left: f64,
    pub(super) right: f64,
}

impl Picture {
    pub(super) fn add(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("writing to a string cannot fail");
        self.body.push('\n');
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: &str, ink: &str, text: &str) {
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{}\">{}</text>",
            colour(ink),
            escaped(text)
        ));
    }

    /// A text over as many lines as it takes.
    pub(super) fn paragraph(&mut self, ink: &str, text: &str) {
        for line in lines_of(text, self.right - RIGHT - self.left - 8.0) {
            self.text((self.left + 8.0, self.y + 13.0), "start", ink, &line);
            self.y += LINE;
        }
    }

    /// A text around `x`, or as near as it stays between the edges.
    pub(super) fn middle(&mut self, x: f64, y: f64, text: &str) {
        let half = width_of(text) / 2.0;
        let x = x.min(self.right - 2.0 - half).max(self.left + 2.0 + half);
        self.text((x, y), "middle", "soft", text);
    }

    /// The name of a level axis around `x`, over as many lines as it takes from `y` on. The height of the last of them.
    pub(super) fn name(&mut self, x: f64, y: f64, name: &str) -> f64 {
        let lines = lines_of(name, self.right - self.left - 4.0);
        for (at, line) in lines.iter().enumerate() {
            self.middle(x, y + LINE * at as f64, line);
        }
        y + LINE * (lines.len() - 1) as f64
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str) {
        self.add(format_args!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{stroke}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, more: &str) {
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\" {more}/>"
        ));
    }

    /// Names beside their signs, over as many lines as they take.
    pub(super) fn legend(&mut self, keys: &[Entry]) {
        let start = self.left + 8.0;
        let mut x = start;
        for (name, sign) in keys {
            let width = 22.0 + width_of(name);
            if x > start && x + width > self.right - RIGHT {
                (x, self.y) = (start, self.y + LINE);
            }
            let Sign { shape, fill, frame, dash } = *sign;
            let middle = self.y + 9.0;
            match shape {
                Shape::Box => {
                    let more = format!("stroke=\"{frame}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"");
                    self.rect((x, middle - 5.0), (10.0, 10.0), fill, &more);
                }
                Shape::Line => self.add(format_args!(
                    "<path d=\"M{:.1} {middle:.1}h14\" stroke=\"{frame}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
                    x - 2.0
                )),
                Shape::Point => self.add(format_args!(
                    "<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"3.5\" fill=\"{fill}\" stroke=\"{frame}\"/>",
                    x + 5.0
                )),
            }
            self.text((x + 16.0, self.y + 13.0), "start", "ink", name);
            x += width + 12.0;
        }
        self.y += LINE + 6.0;
    }
}
