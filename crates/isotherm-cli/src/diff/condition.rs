//! Conditions under which a difference is a failure: `wa > +2%`.

use super::metrics::{self, key_of};

/// How a number is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// What it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// The change, over the old number: `+2%`.
    Relative(f64),
    /// The change: `+2`.
    Absolute(f64),
    /// The new number itself: `2`.
    Value(f64),
}

/// A condition on one number of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As it was written.
    pub text: String,
    /// The number's key in results.
    pub key: String,
    operator: Operator,
    limit: Limit,
}

const GRAMMAR: &str = "write NAME > +N% (relative change), NAME > +N (change) or NAME > N (limit), with >, >=, < or <=; such as 'wa > +2%'";

impl std::str::FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |problem: &str| format!("\"{text}\" {problem}; {GRAMMAR}");
        let at = text.find(['>', '<']).ok_or_else(|| wrong("has no > or <"))?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (operator, number) = match rest.as_bytes() {
            [b'>', b'=', ..] => (Operator::AtLeast, &rest[2..]),
            [b'<', b'=', ..] => (Operator::AtMost, &rest[2..]),
            [b'>', ..] => (Operator::Above, &rest[1..]),
            _ => (Operator::Below, &rest[1..]),
        };
        if name.is_empty() {
            return Err(wrong("names no number"));
        }
        let number = number.trim();
        let (digits, is_relative) = number.strip_suffix('%').map_or((number, false), |digits| (digits.trim(), true));
        let value: f64 = digits.parse().map_err(|_| wrong("has no number on the right"))?;
        let is_change = digits.starts_with(['+', '-']);
        let limit = match (is_change, is_relative) {
            _ if !value.is_finite() => return Err(wrong("has no number on the right")),
            (true, true) => Limit::Relative(value / 100.0),
            (true, false) => Limit::Absolute(value),
            (false, false) => Limit::Value(value),
            (false, true) => return Err(wrong("has a percentage without a sign: +2% or -2%")),
        };
        Ok(Self { text: text.trim().to_owned(), key: key_of(name), operator, limit })
    }
}

impl Condition {
    /// Whether it is met; `Err` says why that cannot be told.
    pub fn is_met(&self, old: Option<f64>, new: Option<f64>) -> Result<bool, String> {
        let none = |which: &str| {
            format!(
                "\"{}\": {} has no value in the {which} results, so that it cannot be judged",
                self.text,
                metrics::short(&self.key)
            )
        };
        let new = new.ok_or_else(|| none("new"))?;
        let (number, limit) = match self.limit {
            Limit::Value(limit) => (new, limit),
            Limit::Absolute(limit) => (new - old.ok_or_else(|| none("old"))?, limit),
            Limit::Relative(limit) => {
                let old = old.ok_or_else(|| none("old"))?;
                (change(old, new), limit)
            }
        };
        Ok(match self.operator {
            Operator::Above => number > limit,
            Operator::AtLeast => number >= limit,
            Operator::Below => number < limit,
            Operator::AtMost => number <= limit,
        })
    }
}

/// Relative change; from nothing to something it is infinite.
pub fn change(old: f64, new: f64) -> f64 {
    if old == new { 0.0 } else { (new - old) / old.abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(text: &str, old: f64, new: f64) -> bool {
        text.parse::<Condition>().unwrap().is_met(Some(old), Some(new)).unwrap()
    }

    #[test]
    fn changes_and_limits_are_told_apart() {
        assert!(met("wa > +2%", 2.0, 2.05) && !met("wa > +2%", 2.0, 2.03) && !met("wa > +2%", 2.0, 1.0));
        assert!(met("wa>=+2%", 1.0, 1.02) && met("years < -10%", 5.0, 4.4) && !met("years < -10%", 5.0, 4.6));
        assert!(met("erases > +100", 1000.0, 1101.0) && !met("erases > +100", 1000.0, 1100.0));
        assert!(met("wa > 2", 9.0, 2.1) && !met("wa > 2", 1.0, 2.0) && met("wa <= 2", 9.0, 2.0));
        // From nothing to something is more than any share.
        assert!(met("gc_pages_copied > +1000%", 0.0, 1.0) && !met("gc_pages_copied > +0%", 0.0, 0.0));
        assert_eq!("p999_write > +5%".parse::<Condition>().unwrap().key, "latency_ns.write.p999");
    }

    #[test]
    fn what_is_no_condition_is_told_with_the_grammar() {
        for text in ["wa", "wa > ", "wa > +x%", "> +2%", "wa > 2%", "wa > inf", "wa = 2"] {
            let problem = text.parse::<Condition>().unwrap_err();
            assert!(problem.contains("wa > +2%"), "{problem}");
        }
        let problem = "wa > +2%".parse::<Condition>().unwrap().is_met(None, Some(1.0)).unwrap_err();
        assert!(problem.contains("wa has no value in the old results"), "{problem}");
    }
}
