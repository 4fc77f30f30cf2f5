//! Results as a table in Parquet, for tools that read columns.

use crate::columns::{Column, Columns};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// The table as a Parquet file.
///
/// # Panics
/// If the library refuses columns that match the schema made from them (a bug).
pub fn to_parquet(columns: &Columns) -> Vec<u8> {
    let fields: Vec<String> = columns
        .iter()
        // The schema is written in a language whose words end at a space.
        .map(|(name, column)| (name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.', "_"), column))
        .map(|(name, column)| match column {
            Column::Whole(_) => format!("optional int64 {name};"),
            Column::Real(_) => format!("optional double {name};"),
            Column::Text(_) => format!("optional binary {name} (utf8);"),
        })
        .collect();
    let encode = || -> parquet::errors::Result<Vec<u8>> {
        let schema = Arc::new(parse_message_type(&format!("message runs {{ {} }}", fields.join(" ")))?);
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default())).build();
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for (_, column) in columns {
            let mut writer = group.next_column()?.expect("the schema has one field for each column");
            match column {
                Column::Whole(cells) => {
                    let (values, levels) = split(cells, |v| *v);
                    writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
                }
                Column::Real(cells) => {
                    let (values, levels) = split(cells, |v| *v);
                    writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
                }
                Column::Text(cells) => {
                    let (values, levels) = split(cells, |v| ByteArray::from(v.as_str()));
                    writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                }
            }
            writer.close()?;
        }
        group.close()?;
        file.close()?;
        Ok(bytes)
    };
    encode().expect("columns match the schema made from them")
}

/// Present values, and a level for each cell: 1 where present.
fn split<T, U>(cells: &[Option<T>], value: impl Fn(&T) -> U) -> (Vec<U>, Vec<i16>) {
    (cells.iter().flatten().map(value).collect(), cells.iter().map(|c| i16::from(c.is_some())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn parquet_holds_what_the_columns_hold() {
        let columns: Columns = vec![
            ("erase_count.max".to_owned(), Column::Whole(vec![Some(3), None])),
            ("write_amplification".to_owned(), Column::Real(vec![Some(1.5), Some(2.0)])),
            ("label".to_owned(), Column::Text(vec![Some("a".to_owned()), None])),
        ];
        let reader = SerializedFileReader::new(bytes::Bytes::from(to_parquet(&columns))).unwrap();
        let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|r| r.unwrap().to_string()).collect();
        assert_eq!(rows[0], "{erase_count.max: 3, write_amplification: 1.5, label: \"a\"}");
        assert_eq!(rows[1], "{erase_count.max: null, write_amplification: 2.0, label: null}");
    }
}
