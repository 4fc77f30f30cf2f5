//! Detection by content: the format whose own parser can read most of the first lines.

use crate::binary::MAGIC;
use crate::error::TraceError;
use crate::formats::csv::{self, SHAPE};
use crate::options::OpenOptions;
use crate::registry::{Decoder, Format};
use crate::row::Excerpt;

/// First bytes of a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// The format of a file that begins with `head`.
pub(crate) fn detect(path: &str, head: &[u8], options: &OpenOptions) -> Result<Format, TraceError> {
    let mut best = (0, None);
    for format in Format::all() {
        let understood = match &format.entry().decoder {
            Decoder::Stream { recognise, .. } => recognise(head, options),
            Decoder::Parquet => {
                if head.starts_with(PARQUET_MAGIC) {
                    MAGIC
                } else {
                    0
                }
            }
        };
        if understood > best.0 {
            best = (understood, Some(format));
        }
    }
    let first = head.split(|&b| b == b'\n').next().unwrap_or_default();
    // What is wrong with its values is told once they are read.
    let csv = || if is_shaped_as_csv(first) { "csv".parse().ok() } else { None };
    best.1.or_else(csv).ok_or_else(|| {
        TraceError::input(
            path,
            format!("its format is not recognised: it begins with {}", Excerpt(first)),
            format!("convert it to {SHAPE}, or name its format with --format (see isotherm list formats)"),
        )
    })
}

/// Whether a line has the operations of canonical CSV in their place, and as many fields.
fn is_shaped_as_csv(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|&b| b == b',').map(<[u8]>::trim_ascii).collect();
    (4..=5).contains(&fields.len()) && csv::operation(fields[1]).is_some()
}
