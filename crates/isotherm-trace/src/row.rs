//! The field scanner that all text formats share: one pass over the line's bytes, no allocation unless a field is wrong.

use crate::options::TimeScale;
use std::fmt;

/// What a field means, for messages and for finding its column again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Field {
    Time,
    Op,
    Offset,
    Length,
    Volume,
    Stream,
    Other,
}

impl Field {
    const COUNT: usize = 7;

    /// The word that messages use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Op => "operation",
            Self::Offset => "offset",
            Self::Length => "length",
            Self::Volume => "volume",
            Self::Stream => "stream",
            Self::Other => "field",
        }
    }
}

/// What is wrong with a field. Boxed by [`Row`], because the good path must not pay for it.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) field: Field,
    pub(crate) problem: String,
    pub(crate) fix: String,
}

impl Fault {
    #[cold]
    pub(crate) fn new(field: Field, problem: impl Into<String>, fix: impl Into<String>) -> Box<Self> {
        Box::new(Self { field, problem: problem.into(), fix: fix.into() })
    }
}

/// How fields are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Separator {
    /// One comma; blanks around it are ignored.
    Comma,
    /// Any run of spaces and tabs.
    Blanks,
}

/// One line, scanned from left to right.
pub(crate) struct Row<'a> {
    line: &'a [u8],
    at: usize,
    separator: Separator,
    starts: [u32; Field::COUNT],
}

/// Shows bytes of a trace in a message: at most 40 of them, unprintable ones escaped.
pub(crate) struct Excerpt<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(40)];
        write!(f, "\"{}{}\"", shown.escape_ascii(), if shown.len() < self.0.len() { "..." } else { "" })
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

impl<'a> Row<'a> {
    /// Starts at the first byte of `line`, which has no line end.
    #[inline(always)]
    pub(crate) fn new(line: &'a [u8], separator: Separator) -> Self {
        Self { line, at: 0, separator, starts: [0; Field::COUNT] }
    }

    /// Column of the first byte of the field last read as `field`, from 1.
    pub(crate) fn column(&self, field: Field) -> u32 {
        self.starts[field as usize] + 1
    }

    /// The whole line.
    pub(crate) fn line(&self) -> &'a [u8] {
        self.line
    }

    #[inline(always)]
    fn skip_blanks(&mut self) {
        while self.line.get(self.at).is_some_and(|&b| is_blank(b)) {
            self.at += 1;
        }
    }

    /// Moves to the first byte of the next field and remembers where it is.
    #[inline(always)]
    fn begin(&mut self, field: Field) {
        if self.separator == Separator::Comma && self.at > 0 && self.line.get(self.at) == Some(&b',') {
            self.at += 1;
        }
        self.skip_blanks();
        self.starts[field as usize] = self.at as u32;
    }

    /// The bytes from `start` to the end of the field, for messages.
    fn rest_of_field(&self, start: usize) -> &'a [u8] {
        let rest = &self.line[start.min(self.line.len())..];
        let end = match self.separator {
            Separator::Comma => memchr::memchr(b',', rest),
            Separator::Blanks => memchr::memchr2(b' ', b'\t', rest),
        };
        &rest[..end.unwrap_or(rest.len())]
    }

    #[cold]
    fn not_a_number(&self, field: Field) -> Box<Fault> {
        let found = self.rest_of_field(self.starts[field as usize] as usize);
        let problem = match found.first() {
            None if self.starts[field as usize] as usize >= self.line.len() => "is missing".to_owned(),
            None => "is empty".to_owned(),
            Some(b'-') => format!("{} is negative", Excerpt(found)),
            Some(_) => format!("{} is not a number", Excerpt(found)),
        };
        Fault::new(field, problem, "correct the row, or skip it with --skip-bad N")
    }

    #[cold]
    fn too_large(&self, field: Field) -> Box<Fault> {
        let found = self.rest_of_field(self.starts[field as usize] as usize);
        let problem = format!("{} does not fit 64 bits", Excerpt(found));
        Fault::new(field, problem, "correct the row, or skip it with --skip-bad N")
    }

    /// A field must be followed by a separator or the end of the line.
    #[inline(always)]
    fn finish(&mut self, field: Field) -> Result<(), Box<Fault>> {
        match self.line.get(self.at) {
            None => return Ok(()),
            Some(&b',') if self.separator == Separator::Comma => return Ok(()),
            Some(&b) if is_blank(b) => {}
            Some(_) => return Err(self.not_a_number(field)),
        }
        self.skip_blanks();
        let ended = match self.line.get(self.at) {
            None => true,
            Some(&b) => self.separator == Separator::Blanks || b == b',',
        };
        if ended { Ok(()) } else { Err(self.not_a_number(field)) }
    }

    /// Digits from here on: their value (wrapped if it overflows) and their number.
    #[inline(always)]
    fn digits(&mut self) -> (u64, usize) {
        let start = self.at;
        let mut value = 0u64;
        while let Some(&byte) = self.line.get(self.at) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
        (value, self.at - start)
    }

    /// A whole number.
    #[inline(always)]
    pub(crate) fn integer(&mut self, field: Field) -> Result<u64, Box<Fault>> {
        self.begin(field);
        let (value, digits) = self.digits();
        if digits == 0 {
            return Err(self.not_a_number(field));
        }
        // Nineteen digits always fit; longer ones are rare enough to be read twice.
        let value = if digits > 19 { self.long_integer(field)? } else { value };
        self.finish(field)?;
        Ok(value)
    }

    #[cold]
    fn long_integer(&self, field: Field) -> Result<u64, Box<Fault>> {
        let text = &self.line[self.starts[field as usize] as usize..self.at];
        let value = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok());
        value.ok_or_else(|| self.too_large(field))
    }

    /// A whole number of 512-byte sectors, in bytes. Overflow saturates, which the limits then refuse.
    #[inline(always)]
    pub(crate) fn sectors(&mut self, field: Field) -> Result<u64, Box<Fault>> {
        Ok(self.integer(field)?.saturating_mul(512))
    }

    /// A whole number kept as its digits: the name of a volume.
    #[inline(always)]
    pub(crate) fn number_text(&mut self, field: Field) -> Result<&'a [u8], Box<Fault>> {
        self.begin(field);
        let start = self.at;
        let (_, digits) = self.digits();
        if digits == 0 {
            return Err(self.not_a_number(field));
        }
        self.finish(field)?;
        Ok(&self.line[start..start + digits])
    }

    /// Two fields as one name, with what separates them.
    #[inline(always)]
    pub(crate) fn pair(&mut self, field: Field) -> &'a [u8] {
        self.word(Field::Other);
        let start = self.starts[Field::Other as usize] as usize;
        let second = self.word(field);
        let end = self.starts[field as usize] as usize + second.len();
        self.starts[field as usize] = start as u32;
        &self.line[start..end]
    }

    /// The byte with which the next field begins, where blanks separate fields.
    #[inline(always)]
    pub(crate) fn next_byte(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.line.get(self.at).copied()
    }

    /// A time that must be a whole number of units.
    #[inline(always)]
    pub(crate) fn whole_time(&mut self, scale: TimeScale) -> Result<u64, Box<Fault>> {
        let value = self.integer(Field::Time)?;
        value.checked_mul(scale.nanoseconds).ok_or_else(|| self.too_large(Field::Time))
    }

    /// A time in nanoseconds. One with a fraction is in another unit, which has to be named.
    #[inline(always)]
    pub(crate) fn whole_nanoseconds(&mut self) -> Result<u64, Box<Fault>> {
        self.integer(Field::Time).map_err(|fault| self.other_unit(fault))
    }

    #[cold]
    fn other_unit(&self, fault: Box<Fault>) -> Box<Fault> {
        let found = self.rest_of_field(self.starts[Field::Time as usize] as usize);
        let is_decimal = std::str::from_utf8(found).is_ok_and(|text| text.trim().parse::<f64>().is_ok());
        if !is_decimal || found.iter().all(u8::is_ascii_digit) || !found[0].is_ascii_digit() {
            return fault;
        }
        let problem = format!("{} is no whole number of nanoseconds", Excerpt(found));
        Fault::new(Field::Time, problem, "name its unit with --time-unit: s, ms, us or ns")
    }

    /// A time in units of `scale`, whole or decimal (an exponent is understood), in nanoseconds rounded down.
    #[inline(always)]
    pub(crate) fn time(&mut self, scale: TimeScale) -> Result<u64, Box<Fault>> {
        self.begin(Field::Time);
        let (value, digits) = self.digits();
        if digits == 0 {
            return Err(self.not_a_number(Field::Time));
        }
        let plain = !matches!(self.line.get(self.at), Some(b'.' | b'e' | b'E'));
        if plain && digits <= 19 {
            self.finish(Field::Time)?;
            return value.checked_mul(scale.nanoseconds).ok_or_else(|| self.too_large(Field::Time));
        }
        self.decimal_time(scale.power)
    }

    /// The general case of [`Row::time`]: reads the field again with fraction and exponent, in whole arithmetic.
    fn decimal_time(&mut self, power: i32) -> Result<u64, Box<Fault>> {
        self.at = self.starts[Field::Time as usize] as usize;
        let (mut mantissa, mut exponent, mut in_fraction) = (0u128, power, false);
        while let Some(&byte) = self.line.get(self.at) {
            match byte {
                // Digits beyond 30 cannot change a result that fits 64 bits, except in the fraction, where they vanish.
                b'0'..=b'9' if mantissa < 10u128.pow(30) => {
                    mantissa = mantissa * 10 + u128::from(byte - b'0');
                    exponent -= i32::from(in_fraction);
                }
                b'0'..=b'9' if in_fraction => {}
                b'0'..=b'9' => return Err(self.too_large(Field::Time)),
                b'.' if !in_fraction => in_fraction = true,
                _ => break,
            }
            self.at += 1;
        }
        if matches!(self.line.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            let negative = self.line.get(self.at) == Some(&b'-');
            self.at += usize::from(matches!(self.line.get(self.at), Some(b'-' | b'+')));
            let (value, digits) = self.digits();
            if digits == 0 || digits > 3 {
                return Err(self.not_a_number(Field::Time));
            }
            exponent += if negative { -(value as i32) } else { value as i32 };
        }
        self.finish(Field::Time)?;
        let nanoseconds = if exponent >= 0 {
            10u128.checked_pow(exponent as u32).and_then(|scale| mantissa.checked_mul(scale))
        } else {
            Some(10u128.checked_pow(exponent.unsigned_abs()).map_or(0, |scale| mantissa / scale))
        };
        nanoseconds.and_then(|ns| u64::try_from(ns).ok()).ok_or_else(|| self.too_large(Field::Time))
    }

    /// A word: the bytes up to the next separator. Empty if the line has ended.
    #[inline(always)]
    pub(crate) fn word(&mut self, field: Field) -> &'a [u8] {
        self.begin(field);
        let start = self.at;
        let mut end = start;
        while let Some(&byte) = self.line.get(end) {
            let separates = match self.separator {
                Separator::Comma => byte == b',',
                Separator::Blanks => is_blank(byte),
            };
            if separates {
                break;
            }
            end += 1;
        }
        self.at = end;
        while end > start && is_blank(self.line[end - 1]) {
            end -= 1;
        }
        &self.line[start..end]
    }

    /// A wrong word in `field`, with the words that are right.
    #[cold]
    pub(crate) fn unknown(&self, field: Field, found: &[u8], known: &str) -> Box<Fault> {
        let problem = if found.is_empty() { "is missing".to_owned() } else { format!("{} is unknown", Excerpt(found)) };
        Fault::new(field, problem, format!("write one of {known}, or skip the row with --skip-bad N"))
    }

    /// Whether the line ends here.
    #[inline(always)]
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.line.len()
    }

    /// Nothing but blanks may follow.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> Result<(), Box<Fault>> {
        if self.at == self.line.len() {
            return Ok(());
        }
        self.begin(Field::Other);
        if self.at == self.line.len() && self.line.last() != Some(&b',') {
            return Ok(());
        }
        let problem = format!("{} follows the last column", Excerpt(self.rest_of_field(self.at)));
        Err(Fault::new(Field::Other, problem, "remove it, or name the right format with --format"))
    }
}
