//! Bars lying along the value axis, in groups or stacks, each with its number.

use super::canvas::{Canvas, FONT, MARGIN, Ruler, WIDTH, look, title_of, width_of};
use crate::figure::Bars;
use crate::table::number;

/// Pixels of a bar, and between two groups.
const BAR: f64 = 11.0;
const GAP: f64 = 9.0;

/// Draws the bars.
pub(super) fn draw(canvas: &mut Canvas, bars: &Bars) {
    let longest = bars.categories.iter().map(|name| width_of(name, FONT)).fold(0.0, f64::max);
    let left = MARGIN + longest.min(WIDTH / 3.0) + 8.0;
    let of = |category: usize| bars.series.iter().filter_map(move |s| s.values.get(category).copied().flatten());
    let numbers = (0..bars.categories.len()).flat_map(|category| {
        let sum = std::iter::once(of(category).sum()).filter(|_| bars.stacked);
        of(category).filter(|_| !bars.stacked).chain(sum)
    });
    let numbers = numbers.chain(bars.rules.iter().map(|rule| rule.value)).chain([0.0]);
    let ruler = Ruler::new(&bars.value, numbers, true, (left, WIDTH - MARGIN - 50.0));
    let top = canvas.y;
    let in_category = |category: usize| if bars.stacked { 1 } else { of(category).count().max(1) };
    let height = |category: usize| in_category(category) as f64 * BAR + GAP;
    let bottom = top + (0..bars.categories.len()).map(height).sum::<f64>();
    for (x, text) in ruler.ticks() {
        canvas
            .add(format_args!("<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>"));
        canvas.text(x, bottom + FONT + 1.0, "middle", "tick", &text);
    }
    let zero = ruler.at(0.0).unwrap_or(left);
    for (category, name) in bars.categories.iter().enumerate() {
        let mut y = canvas.y + GAP / 2.0;
        canvas.text(left - 6.0, canvas.y + height(category) / 2.0 + 4.0, "end", "small", name);
        let (mut sum, mut end) = (0.0, zero);
        for series in &bars.series {
            let Some(value) = series.values.get(category).copied().flatten() else { continue };
            let Some(to) = ruler.at(value + sum) else { continue };
            let (x, width) = (end.min(to), (to - end).abs());
            let look = look(series.slot, series.origin);
            let thick = BAR - 1.5;
            canvas.add(format_args!(
                "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{thick:.1}\" {look}/>"
            ));
            if bars.stacked {
                (sum, end) = (sum + value, to);
            } else {
                canvas.text(to.max(zero) + 4.0, y + thick - 0.5, "start", "tick", &number(value));
                y += BAR;
            }
        }
        if bars.stacked {
            canvas.text(end + 4.0, y + BAR - 2.0, "start", "tick", &number(sum));
        }
        canvas.y += height(category);
    }
    for rule in &bars.rules {
        if let Some(x) = ruler.at(rule.value) {
            canvas.add(format_args!(
                "<line class=\"rule\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>"
            ));
        }
    }
    canvas.y += 2.0 * FONT + 4.0;
    canvas.text((left + WIDTH) / 2.0, canvas.y, "middle", "small", &title_of(&bars.value));
    let rules: Vec<String> = bars.rules.iter().map(|rule| format!("{}: {}", rule.label, number(rule.value))).collect();
    if !rules.is_empty() {
        canvas.line(&format!("Dashed line: {}", rules.join("; ")), FONT, "small");
    }
    canvas.y += 10.0;
}
