//! A placement plan: which handle the bytes of an address range belong to, for clients whose protocol carries no placement hint.

use serde_json::Value;

/// Ranges of a drive with the handle of each.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HandlePlan {
    /// First byte, one past the last, handle; in order, without overlap.
    ranges: Vec<(u64, u64, u16)>,
}

/// A plan that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{problem}; write for example {{\"ranges\": [{{\"offset\": 0, \"length\": 1048576, \"handle\": 1}}]}}")]
pub struct PlanError {
    problem: String,
}

impl HandlePlan {
    /// Reads a plan: a JSON object whose `ranges` have `offset` and `length` in bytes, and `handle`, below `handles`. What no range
    /// covers belongs to handle 0.
    ///
    /// # Errors
    /// No such object, a handle that is not there, or ranges that overlap.
    pub fn from_json(text: &str, handles: u16) -> Result<Self, PlanError> {
        let wrong = |problem: String| PlanError { problem };
        let value: Value =
            serde_json::from_str(text).map_err(|error| wrong(format!("the plan is no JSON: {error}")))?;
        let ranges = value["ranges"].as_array().ok_or_else(|| wrong("the plan has no \"ranges\"".to_owned()))?;
        let mut found = Vec::with_capacity(ranges.len());
        for (index, range) in ranges.iter().enumerate() {
            let number = |key: &str| {
                range[key].as_u64().ok_or_else(|| wrong(format!("range {index} has no whole number \"{key}\"")))
            };
            let (offset, length, handle) = (number("offset")?, number("length")?, number("handle")?);
            if handle >= u64::from(handles) {
                return Err(wrong(format!("range {index} names handle {handle}, and there are {handles} (--handles)")));
            }
            found.push((offset, offset.saturating_add(length), handle as u16));
        }
        found.sort_unstable();
        if let Some(pair) = found.windows(2).find(|pair| pair[0].1 > pair[1].0) {
            return Err(wrong(format!("the ranges at {} and {} overlap", pair[0].0, pair[1].0)));
        }
        Ok(Self { ranges: found })
    }

    /// The handle of a byte.
    pub fn handle_of(&self, offset: u64) -> u16 {
        let after = self.ranges.partition_point(|(start, ..)| *start <= offset);
        match self.ranges[..after].last() {
            Some((_, end, handle)) if offset < *end => *handle,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_handle_of_their_range() {
        let text =
            r#"{"ranges": [{"offset": 100, "length": 50, "handle": 2}, {"offset": 10, "length": 90, "handle": 1}]}"#;
        let plan = HandlePlan::from_json(text, 3).unwrap();
        assert_eq!([0, 9, 10, 99, 100, 149, 150].map(|offset| plan.handle_of(offset)), [0, 0, 1, 1, 2, 2, 0]);
        for (text, part) in [
            ("[", "no JSON"),
            ("{}", "ranges"),
            (r#"{"ranges": [{"offset": 1, "length": 2}]}"#, "handle"),
            (r#"{"ranges": [{"offset": 1, "length": 2, "handle": 3}]}"#, "there are 3"),
            (
                r#"{"ranges": [{"offset": 0, "length": 9, "handle": 0}, {"offset": 8, "length": 1, "handle": 0}]}"#,
                "overlap",
            ),
        ] {
            assert!(HandlePlan::from_json(text, 3).unwrap_err().to_string().contains(part), "{text}");
        }
    }
}
