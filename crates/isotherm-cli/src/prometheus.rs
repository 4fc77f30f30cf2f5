//! Prometheus' text format, for live pages.

use std::fmt::Write as _;

/// Families of metrics, in the order in which they were added.
#[derive(Default)]
pub struct Families(String);

impl Families {
    /// A family with a value for each set of labels, such as `{cause="host"}`.
    pub fn add(&mut self, name: &str, kind: &str, help: &str, values: impl IntoIterator<Item = (String, f64)>) {
        let text = &mut self.0;
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# HELP isotherm_{name} {help}\n# TYPE isotherm_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "isotherm_{name}{labels} {value}");
        }
    }

    /// A counter without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.add(name, "counter", help, [(String::new(), value as f64)]);
    }

    /// A number that goes up and down, without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.add(name, "gauge", help, [(String::new(), value as f64)]);
    }

    /// All of them.
    pub fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_a_help_a_type_and_their_values() {
        let mut families = Families::default();
        families.counter("erases_total", "Erases.", 7);
        families.add("bytes", "gauge", "Bytes, by cause.", [("{cause=\"gc\"}".to_owned(), 1.5)]);
        let expected = "# HELP isotherm_erases_total Erases.\n# TYPE isotherm_erases_total counter\nisotherm_erases_total 7\n\
                        # HELP isotherm_bytes Bytes, by cause.\n# TYPE isotherm_bytes gauge\nisotherm_bytes{cause=\"gc\"} 1.5\n";
        assert_eq!(families.finish(), expected);
    }
}
