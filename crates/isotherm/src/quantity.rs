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
        // Whole numbers beyond 2^53 too are read to the last digit.
        let whole = text[..unit_at].parse::<u64>().ok();
        let exact = whole.zip(scale).and_then(|(whole, scale)| whole.checked_mul(scale as u64));
        if let Some(exact) = exact.filter(|bytes| *bytes <= 1_000_000_000_000_000_000) {
            return Ok(Self(exact));
        }
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
            // What `Display` writes above 100 % is read digit by digit, as a product would be rounded.
            Ok(percent) if percent > 100.0 && scale < 1.0 && !number.contains(['e', 'E']) => {
                format!("{number}e-2").parse().map(Self).map_err(|_| format!("\"{text}\" is not a share"))
            }
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
    /// The fraction, or a percentage above 1, which a bare number does not mean; either parses back to the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 <= 1.0 {
            return write!(f, "{}", self.0);
        }
        let digits = self.0.to_string();
        let (whole, rest) = digits.split_once('.').unwrap_or((&digits, ""));
        let percent = format!("{whole}{rest:0<2}");
        let (percent, rest) = percent.split_at(whole.len() + 2);
        write!(f, "{percent}{}{rest}%", if rest.is_empty() { "" } else { "." })
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
        assert_eq!("9007199254740993".parse(), Ok(ByteSize((1 << 53) + 1)));
        assert!("4 potatoes".parse::<ByteSize>().is_err());
        assert_eq!("7.5%".parse::<Share>().unwrap().0, 0.075);
        for (share, text) in [(0.07, "0.07"), (1.0, "1"), (1.5, "150%"), (1.0701, "107.01%"), (10.0, "1000%")] {
            assert_eq!(Share(share).to_string(), text);
        }
        let mut above_one = 1.0f64;
        for _ in 0..1000 {
            above_one = above_one.next_up() * 1.001;
            assert_eq!(Share(above_one).to_string().parse(), Ok(Share(above_one)));
        }
        assert!("-1%".parse::<Share>().is_err());
        assert!("nan".parse::<Share>().is_err());
    }
}
