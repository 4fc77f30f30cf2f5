//! What is said of runs, each thing once: with the labels of those that it is said of, and with their seeds where it is not of all.

/// A run, by its label and its seed, with what is said of it.
pub(crate) type OfRun<'a> = (&'a str, u64, Vec<String>);

/// Lines that a reader can still take in; the column "Valid" of the table has the rest.
const LINES_MAX: usize = 12;

/// What is said of the runs of one label.
struct Line<'a> {
    label: &'a str,
    text: String,
    seeds: Vec<u64>,
    /// Whether the numbers of other seeds than the first are others.
    differs: bool,
}

impl Line<'_> {
    /// Whose it is, where that is not all runs of the label alike.
    fn whose(&self, runs: &[OfRun<'_>]) -> String {
        let mut all: Vec<u64> = runs.iter().filter(|run| run.0 == self.label).map(|run| run.1).collect();
        all.sort_unstable();
        all.dedup();
        let seeds = match self.seeds.as_slice() {
            seeds if seeds.len() == all.len() && !self.differs => return String::new(),
            seeds if seeds.len() == all.len() => format!("all {} seeds", all.len()),
            [one] => format!("seed {one}"),
            several => format!("seeds {}", several.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
        };
        let numbers =
            if self.differs { format!("; the numbers are those of seed {}", self.seeds[0]) } else { String::new() };
        format!(" ({seeds}{numbers})")
    }
}

/// A text without its numbers.
fn without_numbers(text: &str) -> String {
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    text.split(is_of_number).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("#")
}

/// What is said of each run: once for all seeds of a label, and on one line for labels of which the same is said.
pub(crate) fn grouped(runs: &[OfRun<'_>]) -> Vec<String> {
    let mut of_labels: Vec<Line> = Vec::new();
    for (label, seed, texts) in runs {
        for text in texts {
            let is_same =
                |line: &&mut Line| line.label == *label && without_numbers(&line.text) == without_numbers(text);
            match of_labels.iter_mut().find(is_same) {
                Some(line) => {
                    line.seeds.extend((!line.seeds.contains(seed)).then_some(*seed));
                    line.differs |= line.text != *text;
                }
                None => of_labels.push(Line { label, text: text.clone(), seeds: vec![*seed], differs: false }),
            }
        }
    }
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for line in &of_labels {
        let text = format!("{}: {}", line.whose(runs), line.text);
        match lines.iter_mut().find(|(known, _)| *known == text) {
            Some((_, labels)) => labels.push(line.label),
            None => lines.push((text, vec![line.label])),
        }
    }
    let more = lines.len().saturating_sub(LINES_MAX);
    let mut said: Vec<String> =
        lines.into_iter().take(LINES_MAX).map(|(text, labels)| labels.join(" \u{b7} ") + &text).collect();
    if more > 0 {
        said.push(format!("and {more} more, which the table marks in the column Valid"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(of: &[(&str, u64, &str)]) -> Vec<String> {
        grouped(&of.iter().map(|(label, seed, text)| (*label, *seed, vec![(*text).to_owned()])).collect::<Vec<_>>())
    }

    #[test]
    fn what_differs_in_numbers_alone_is_said_once_with_its_seeds() {
        let found = said(&[("a", 1, "7.5 % too much"), ("a", 2, "8 % too much"), ("b", 1, "right"), ("b", 2, "wrong")]);
        let told = [
            "a (all 2 seeds; the numbers are those of seed 1): 7.5 % too much",
            "b (seed 1): right",
            "b (seed 2): wrong",
        ];
        assert_eq!(found, told);
        let of_some = said(&[("a", 1, "wrong 1"), ("a", 2, "right"), ("a", 3, "wrong 1"), ("a", 4, "wrong 2")]);
        assert_eq!(of_some, ["a (seeds 1, 3, 4; the numbers are those of seed 1): wrong 1", "a (seed 2): right"]);
        assert_eq!(said(&[("a", 1, "wrong"), ("a", 2, "wrong"), ("b", 1, "wrong")]), ["a \u{b7} b: wrong"]);
    }
}
