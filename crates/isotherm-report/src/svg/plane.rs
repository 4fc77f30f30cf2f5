//! Lines, steps and points over two numeric axes.

use super::canvas::{Canvas, FONT, MARGIN, Ruler, look, title_of};
use crate::figure::{Mark, Origin, Plane, PlaneSeries};
use crate::table::number;
use std::fmt::Write as _;

/// Pixels of the plane from top to bottom.
const HEIGHT: f64 = 260.0;
/// Pixels for the numbers beside it.
const BESIDE: f64 = 64.0;

/// Draws the plane, `width` pixels across with its margins.
pub(super) fn draw(canvas: &mut Canvas, plane: &Plane, width: f64) {
    canvas.y += FONT;
    canvas.text(MARGIN, canvas.y, "start", "small", &title_of(&plane.y));
    let (top, left, right) = (canvas.y + 10.0, MARGIN + BESIDE, width - MARGIN - 16.0);
    let bottom = top + HEIGHT;
    let points = || plane.series.iter().flat_map(|series| &series.points);
    let x = Ruler::new(&plane.x, points().map(|point| point.0), false, (left, right));
    let heights = points().filter_map(|point| point.1).chain(plane.rules.iter().map(|rule| rule.value));
    let y = Ruler::new(&plane.y, heights, true, (bottom, top));
    for (at, text) in x.ticks() {
        canvas.add(format_args!(
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>"
        ));
        canvas.text(at, bottom + FONT + 3.0, "middle", "tick", &text);
    }
    for (at, text) in y.ticks() {
        canvas.add(format_args!(
            "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"
        ));
        canvas.text(left - 6.0, at + 4.0, "end", "tick", &text);
    }
    for rule in &plane.rules {
        if let Some(at) = y.at(rule.value) {
            canvas.add(format_args!(
                "<line class=\"rule\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"
            ));
            canvas.text(right, at - 4.0, "end", "tick", &format!("{}: {}", rule.label, number(rule.value)));
        }
    }
    plane.series.iter().for_each(|series| draw_series(canvas, series, &x, &y));
    canvas.y = bottom + 2.0 * FONT + 8.0;
    canvas.text((left + right) / 2.0, canvas.y, "middle", "small", &title_of(&plane.x));
    canvas.y += 12.0;
}

fn draw_series(canvas: &mut Canvas, series: &PlaneSeries, x: &Ruler, y: &Ruler) {
    let places = series.points.iter().map(|(at, height)| Some((x.at(*at)?, y.at((*height)?)?)));
    if series.mark == Mark::Points || series.origin == Origin::Published {
        let look = look(series.slot, series.origin);
        for (cx, cy) in places.flatten() {
            canvas.add(format_args!("<circle class=\"point\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"4\" {look}/>"));
        }
        return;
    }
    let (mut path, mut is_drawn) = (String::new(), false);
    for place in places {
        let Some((to_x, to_y)) = place else {
            is_drawn = false;
            continue;
        };
        let written = match (is_drawn, series.mark) {
            (false, _) => write!(path, "M{to_x:.1} {to_y:.1}"),
            // A value holds from its own x back to the one before.
            (true, Mark::Steps) => write!(path, "V{to_y:.1}H{to_x:.1}"),
            (true, _) => write!(path, "L{to_x:.1} {to_y:.1}"),
        };
        written.expect("writing to a string cannot fail");
        is_drawn = true;
    }
    let dash = if series.origin == Origin::Theory { " stroke-dasharray=\"2 2\"" } else { "" };
    let slot = series.slot % 8;
    canvas.add(format_args!("<path class=\"line\" stroke=\"var(--s{slot})\"{dash} d=\"{path}\"/>"));
}
