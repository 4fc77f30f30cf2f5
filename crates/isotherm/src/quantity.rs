//! Quantities as users write them: `4GiB`, `7.5%`. MB is not MiB.

use std::fmt;
use std::str::FromStr;

/// A number of bytes: `4096`, `4KiB`, `2GB`, `1.5TiB`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "NumberOrText", into = "String")]
pub struct ByteSize(pub u64);

/// A share of a whole: `7%`, `0.07`. Stored as a fraction.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "NumberOrText", into = "String")]
pub struct Share(pub f64);

/// TOML and JSON give either a bare number or a text with a unit.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Whole(u64),
    Real(f64),
    Text(String),
}

const UNITS: [(&str, f64); 15] = [
    ("", 1.0),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("PB", 1e15),
    ("K", 1024.0),
    ("M", 1_048_576.0),
];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let unit = text[unit_at..].trim();
        let scale = UNITS.iter().find(|u| u.0 == unit).map(|u| u.1);
        let number = text[..unit_at].parse::<f64>().ok();
        match (number, scale) {
            (Some(number), Some(scale)) if number * scale <= 1e18 => Ok(Self((number * scale).round() as u64)),
            _ => Err(format!(
                "\"{text}\" is not a size: write a number with B, KiB, MiB, GiB, TiB, PiB, kB, MB, GB, TB or PB"
            )),
        }
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |n| (n.trim(), 0.01));
        match number.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Self(number * scale)),
            _ => Err(format!("\"{text}\" is not a share: write 7% or 0.07")),
        }
    }
}

impl TryFrom<NumberOrText> for ByteSize {
    type Error = String;
    fn try_from(value: NumberOrText) -> Result<Self, String> {
        match value {
            NumberOrText::Whole(bytes) => Ok(Self(bytes)),
            NumberOrText::Real(number) => Err(format!("{number} is not a whole number of bytes")),
            NumberOrText::Text(text) => text.parse(),
        }
    }
}

impl TryFrom<NumberOrText> for Share {
    type Error = String;
    fn try_from(value: NumberOrText) -> Result<Self, String> {
        match value {
            NumberOrText::Whole(number) => Ok(Self(number as f64)),
            NumberOrText::Real(number) => number.to_string().parse(),
            NumberOrText::Text(text) => text.parse(),
        }
    }
}

impl fmt::Display for ByteSize {
    /// The largest binary unit that divides the size, so that it parses back to the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, log2) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 != 0 && self.0.is_multiple_of(1 << log2) {
                return write!(f, "{}{unit}", self.0 >> log2);
            }
        }
        write!(f, "{}B", self.0)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl From<ByteSize> for String {
    fn from(size: ByteSize) -> Self {
        size.to_string()
    }
}

impl From<Share> for String {
    fn from(share: Share) -> Self {
        share.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares_parse_and_print_back() {
        for (text, bytes) in [("4KiB", 4096), ("1.5GiB", 1_610_612_736), ("2GB", 2_000_000_000), ("17", 17)] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!(size.0, bytes, "{text}");
            assert_eq!(size.to_string().parse::<ByteSize>().unwrap(), size);
        }
        assert!("4 potatoes".parse::<ByteSize>().is_err());
        assert_eq!("7.5%".parse::<Share>().unwrap().0, 0.075);
        assert!("-1%".parse::<Share>().is_err());
        assert!("nan".parse::<Share>().is_err());
    }
}
