//! How series are told apart: colours, which are those of the report's style sheet, frames, dashes and shapes.

use crate::figure::{Mark, Origin, PlaneSeries};

/// Where the colours are named.
const STYLE: &str = include_str!("../assets/page.css");
pub(super) const COLOURS: usize = 8;
const DASHES: [&str; 3] = ["none", "6 3", "2 2"];

/// Where the colours of a dark page begin in it.
const DARK: &str = "(prefers-color-scheme: dark)";

/// The colours that the style sheet names, each as its name and its value: first the light ones, then the dark ones.
fn colours() -> [impl Iterator<Item = (&'static str, &'static str)>; 2] {
    let (light, dark) = STYLE.split_once(DARK).expect("the style sheet has dark colours");
    [light, dark].map(|part| part.split("--").filter_map(|text| text.split(';').next()?.split_once(": ")))
}

/// The light colour that the style sheet calls `name`.
pub(super) fn colour(name: &str) -> &'static str {
    let [mut light, _] = colours();
    light.find(|(other, _)| *other == name).expect("the style sheet names it").1
}

/// The style by which a picture follows the reader's colour scheme, as the report does: on a dark screen each colour that `body` draws with
/// is the style sheet's dark one of that name. The light ones stay in attributes, which a style outdoes: they are what paper and
/// programs that know no style sheets show.
pub(super) fn dark_style(body: &str) -> String {
    let [light, dark] = colours();
    let dark: Vec<_> = dark.collect();
    let mut rules = String::new();
    for (name, light) in light {
        let Some((_, dark)) = dark.iter().find(|(other, _)| *other == name) else { continue };
        for attribute in ["fill", "stroke"] {
            if body.contains(&format!(" {attribute}=\"{light}\"")) {
                rules.push_str(&format!("[{attribute}=\"{light}\"]{{{attribute}:{dark}}}"));
            }
        }
    }
    format!("<style>@media screen and {DARK}{{{rules}}}</style>")
}

pub(super) fn slot_colour(slot: usize) -> &'static str {
    colour(&format!("s{}", slot % COLOURS))
}

/// What stands for a series in the legend.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Shape {
    Box,
    Line,
    Point,
}

/// How a series is drawn, in the picture and in the legend beside its name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sign {
    pub(super) shape: Shape,
    pub(super) fill: &'static str,
    pub(super) frame: &'static str,
    pub(super) dash: &'static str,
}

impl Sign {
    /// Bars: those of a second round of colours have a frame, published ones nothing else.
    pub(super) fn of_bars(slot: usize, origin: Origin) -> Self {
        let ink = slot_colour(slot);
        if origin == Origin::Published {
            return Self { shape: Shape::Box, fill: "none", frame: ink, dash: "4 2" };
        }
        Self { shape: Shape::Box, fill: ink, frame: if slot >= COLOURS { colour("ink") } else { ink }, dash: "none" }
    }

    /// Lines: those of a second round are dashed.
    pub(super) fn of_outlines(slot: usize) -> Self {
        let ink = slot_colour(slot);
        Self { shape: Shape::Line, fill: "none", frame: ink, dash: DASHES[slot / COLOURS % DASHES.len()] }
    }

    /// Lines and points: published ones are hollow.
    pub(super) fn of_plane(series: &PlaneSeries) -> Self {
        let sign = Self::of_outlines(series.slot);
        match (series.origin, series.mark) {
            (Origin::Theory, _) => Self { dash: "2 2", ..sign },
            (Origin::Published, _) => Self { shape: Shape::Point, dash: "none", ..sign },
            (_, Mark::Points) => Self { shape: Shape::Point, fill: sign.frame, dash: "none", ..sign },
            _ => sign,
        }
    }

    /// Of lines that coincide.
    pub(super) fn stripes() -> Self {
        Self { shape: Shape::Line, fill: "none", frame: colour("soft"), dash: "4 4" }
    }

    /// Of what comes from runs that are not valid.
    pub(super) fn pale() -> Self {
        Self { shape: Shape::Box, fill: colour("line"), frame: colour("line"), dash: "none" }
    }
}
