//! The canonical binary form: the columns of canonical CSV (`ts_ns`, `op`, `offset`, `length`, and `stream` where the trace says who
//! asks) in Parquet, zstd-compressed.
//!
//! `ts_ns`, `offset`, `length` and `stream` are unsigned 64-bit integers, `op` the word that the text form has. Columns are found by name, in
//! any order and beside others, so that files written by other tools are read too. Memory is a few pages of each column.
//! Pages carry checksums, so that damage is found before it is decoded.

use crate::error::{Place, TraceError};
use crate::formats::csv;
use crate::records::{Records, Setup};
use crate::row::{Excerpt, Fault, Field};
use crate::sink::{Sink, Sources};
use crate::source::Source;
use crate::volumes::Volumes;
use isotherm::request::Request;
use parquet::basic::{Compression, Encoding, Type, ZstdLevel};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

const COLUMNS: [(&str, Type); 4] =
    [("ts_ns", Type::INT64), ("op", Type::BYTE_ARRAY), ("offset", Type::INT64), ("length", Type::INT64)];

/// The column that says who asks: it need not be there.
const STREAM: (&str, Type) = ("stream", Type::INT64);

/// The columns of a file that is written.
fn columns(has_streams: bool) -> impl Iterator<Item = (&'static str, Type)> {
    COLUMNS.into_iter().chain(has_streams.then_some(STREAM))
}

/// Rows of one group: what the writer holds in memory.
const GROUP_ROWS: usize = 1 << 18;

/// Rows decoded at once.
const CHUNK_ROWS: usize = 4096;

fn failed(path: &str, error: &ParquetError) -> TraceError {
    TraceError::input(path, format!("cannot read Parquet: {error}"), "the file is damaged or truncated: copy it again")
}

/// Runs the decoder. It asserts what it expects of its input, so that hostile content makes it panic: that is the file's
/// fault and must end as an error. What was being decoded is dropped afterwards, never used again.
fn decode<T>(work: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(ParquetError::General("its content contradicts itself".to_owned())))
}

/// Reads the canonical Parquet form.
pub(crate) struct ParquetRecords {
    file: Box<dyn FileReader>,
    setup: Setup,
    /// Where the four columns stand in the file's schema.
    places: [usize; 4],
    /// Where the column of streams stands, if there is one.
    stream: Option<usize>,
    sources: Sources,
    group: usize,
    columns: Option<Columns>,
    /// Rows decoded and not yet taken, from `taken` on.
    chunk: Chunk,
    taken: usize,
    rows: u64,
    skipped: u64,
    latest_ns: u64,
}

struct Columns {
    numbers: [Column<Int64Type>; 3],
    op: Column<ByteArrayType>,
    stream: Option<Column<Int64Type>>,
}

#[derive(Default)]
struct Chunk {
    numbers: [Vec<i64>; 3],
    ops: Vec<ByteArray>,
    /// Empty without the column.
    streams: Vec<i64>,
}

/// One column of one row group. Other tools write nullable columns, so nulls must be told from values.
struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    nullable: bool,
}

impl<T: DataType> Column<T> {
    /// Replaces `values` by up to [`CHUNK_ROWS`] values; how many there were.
    fn read(&mut self, values: &mut Vec<T::T>) -> ParquetResult<usize> {
        values.clear();
        let mut levels = Vec::new();
        let levels = if self.nullable { Some(&mut levels) } else { None };
        let (rows, count, _) = self.reader.read_records(CHUNK_ROWS, levels, None, values)?;
        if rows != count || values.len() != count {
            return Err(ParquetError::General("a column of the trace has nulls".to_owned()));
        }
        Ok(count)
    }
}

/// Checks what the decoder takes on trust: that every chunk of the columns at `places` lies inside the file.
fn check_chunks(file: &dyn FileReader, places: &[usize], file_bytes: u64) -> ParquetResult<()> {
    let metadata = file.metadata();
    let columns = metadata.file_metadata().schema_descr_ptr().num_columns();
    for group in metadata.row_groups() {
        let sound = group.num_columns() == columns
            && places.iter().all(|&place| {
                let chunk = group.column(place);
                let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
                let end = start.checked_add(chunk.compressed_size());
                let inside = end.and_then(|end| u64::try_from(end).ok()).is_some_and(|end| end <= file_bytes);
                let forward = start >= 0 && chunk.data_page_offset() >= start && chunk.compressed_size() >= 0;
                inside && forward && chunk.num_values() == group.num_rows() && group.num_rows() >= 0
            });
        if !sound {
            return Err(ParquetError::General("a row group points outside the file".to_owned()));
        }
    }
    Ok(())
}

/// Opens the canonical Parquet form.
pub(crate) fn open(source: &Source, setup: Setup) -> Result<Box<dyn Records>, TraceError> {
    let path = setup.path.clone();
    let (file, file_bytes): (Box<dyn FileReader>, u64) = match source {
        Source::Memory(_, bytes) => {
            let file_bytes = bytes.len() as u64;
            let bytes = bytes::Bytes::from_owner(bytes.clone());
            (Box::new(decode(|| SerializedFileReader::new(bytes)).map_err(|error| failed(&path, &error))?), file_bytes)
        }
        _ => {
            let file = source.file()?;
            let file_bytes = file.metadata().map_err(|error| setup.io_error(error))?.len();
            (Box::new(decode(|| SerializedFileReader::new(file)).map_err(|error| failed(&path, &error))?), file_bytes)
        }
    };
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let position = |name: &str| schema.columns().iter().position(|column| column.path().string() == name);
    let place = |(name, physical): (&str, Type)| {
        let sound = position(name).filter(|&index| {
            let column = schema.column(index);
            column.physical_type() == physical && column.max_rep_level() == 0 && column.max_def_level() <= 1
        });
        sound.ok_or_else(|| {
            let problem = format!("it has no column {name} of type {physical}");
            let fix = "write the columns ts_ns, op, offset, length, and stream where there is one (64-bit integers, op a string)";
            TraceError::input(&path, problem, fix)
        })
    };
    let mut places = [0; 4];
    for (at, column) in places.iter_mut().zip(COLUMNS) {
        *at = place(column)?;
    }
    let stream = position(STREAM.0).map(|_| place(STREAM)).transpose()?;
    let read: Vec<usize> = places.into_iter().chain(stream).collect();
    check_chunks(&*file, &read, file_bytes).map_err(|error| failed(&path, &error))?;
    Ok(Box::new(ParquetRecords {
        file,
        setup,
        places,
        stream,
        sources: Sources::default(),
        group: 0,
        columns: None,
        chunk: Chunk::default(),
        taken: 0,
        rows: 0,
        skipped: 0,
        latest_ns: 0,
    }))
}

impl ParquetRecords {
    fn open_group(&self, group: usize) -> ParquetResult<Columns> {
        let group = self.file.get_row_group(group)?;
        let nullable = |place: usize| group.metadata().column(place).column_descr().max_def_level() > 0;
        let number = |place: usize| match group.get_column_reader(place)? {
            ColumnReader::Int64ColumnReader(reader) => Ok(Column { reader, nullable: nullable(place) }),
            _ => Err(ParquetError::General("a row group contradicts the schema".to_owned())),
        };
        let [time, op, offset, length] = self.places;
        let numbers = [number(time)?, number(offset)?, number(length)?];
        let stream = self.stream.map(number).transpose()?;
        match group.get_column_reader(op)? {
            ColumnReader::ByteArrayColumnReader(reader) => {
                Ok(Columns { numbers, op: Column { reader, nullable: nullable(op) }, stream })
            }
            _ => Err(ParquetError::General("a row group contradicts the schema".to_owned())),
        }
    }

    /// Decodes the next rows; false at the end of the file.
    fn next_chunk(&mut self) -> ParquetResult<bool> {
        loop {
            let columns = match &mut self.columns {
                Some(columns) => columns,
                None if self.group == self.file.num_row_groups() => return Ok(false),
                None => {
                    let opened = self.open_group(self.group)?;
                    self.group += 1;
                    self.columns.insert(opened)
                }
            };
            let count = columns.op.read(&mut self.chunk.ops)?;
            let streams = columns.stream.iter_mut().zip([&mut self.chunk.streams]);
            for (column, values) in columns.numbers.iter_mut().zip(&mut self.chunk.numbers).chain(streams) {
                if column.read(values)? != count {
                    return Err(ParquetError::General("the columns differ in length".to_owned()));
                }
            }
            self.taken = 0;
            if count > 0 {
                return Ok(true);
            }
            self.columns = None;
        }
    }

    fn bad_row(&mut self, fault: Fault) -> Result<(), TraceError> {
        if self.skipped < self.setup.skip_bad {
            self.skipped += 1;
            return Ok(());
        }
        Err(TraceError::Row {
            path: self.setup.path.clone(),
            place: Place::Row { row: self.rows },
            field: fault.field.name(),
            problem: fault.problem,
            fix: fault.fix,
        })
    }

    /// Hands row `index` of the chunk on.
    fn take_row(&mut self, index: usize, batch: &mut Vec<Request>) -> Result<(), Box<Fault>> {
        let [time, offset, length] = [0, 1, 2].map(|column| self.chunk.numbers[column][index] as u64);
        let word = self.chunk.ops[index].data();
        let Some((op, durable)) = csv::operation(word) else {
            let problem = format!("{} is unknown", Excerpt(word));
            return Err(Fault::new(Field::Op, problem, "write one of R, W, D, Z, F, WF, DF, ZF"));
        };
        let not_before_ns = if self.setup.refuse_disorder { self.latest_ns } else { 0 };
        let source = self.chunk.streams.get(index).map(|stream| self.sources.number(*stream as u64));
        let mut sink = Sink { requests: batch, volumes: &mut self.setup.volumes, source, durable, not_before_ns };
        sink.push(op, time, offset, length)?;
        self.latest_ns = time;
        Ok(())
    }
}

impl Records for ParquetRecords {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let before = batch.len();
        while batch.len() - before < most {
            if self.taken == self.chunk.ops.len()
                && !decode(|| self.next_chunk()).map_err(|e| failed(&self.setup.path, &e))?
            {
                break;
            }
            let end = self.chunk.ops.len().min(self.taken + most - (batch.len() - before));
            for index in self.taken..end {
                self.rows += 1;
                if let Err(fault) = self.take_row(index, batch) {
                    self.bad_row(*fault)?;
                }
            }
            self.taken = end;
        }
        Ok(batch.len() - before)
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn names_streams(&self) -> bool {
        self.stream.is_some()
    }

    fn into_volumes(self: Box<Self>) -> Volumes {
        self.setup.volumes
    }
}

fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => inner.downcast::<io::Error>().map_or_else(io::Error::other, |e| *e),
        other => io::Error::other(other),
    }
}

/// Writes the canonical Parquet form.
pub(crate) struct ParquetSink<W: Write + Send> {
    /// Taken by the writer with the first group: the schema stands before it.
    file: Option<W>,
    writer: Option<SerializedFileWriter<W>>,
    has_streams: bool,
    pending: Vec<Request>,
}

/// Writes the head of a file.
fn begin<W: Write + Send>(file: W, has_streams: bool) -> ParquetResult<SerializedFileWriter<W>> {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("isotherm {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_dictionary_enabled(false);
    let mut fields = String::new();
    for (name, physical) in columns(has_streams) {
        let column = ColumnPath::from(name);
        if physical == Type::INT64 {
            properties = properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
            fields += &format!("required int64 {name} (INTEGER(64, false)); ");
        } else {
            properties = properties.set_column_dictionary_enabled(column, true);
            fields += &format!("required binary {name} (STRING); ");
        }
    }
    let schema = Arc::new(parse_message_type(&format!("message trace {{ {fields}}}"))?);
    SerializedFileWriter::new(file, schema, Arc::new(properties.build()))
}

impl<W: Write + Send> ParquetSink<W> {
    pub(crate) fn new(file: W) -> io::Result<Self> {
        Ok(Self { file: Some(file), writer: None, has_streams: false, pending: Vec::with_capacity(GROUP_ROWS) })
    }

    /// Writes the column of streams too; called before the first requests.
    pub(crate) fn begin_with_streams(&mut self) -> io::Result<()> {
        self.has_streams = true;
        self.writer().map(|_| ()).map_err(as_io)
    }

    fn writer(&mut self) -> ParquetResult<&mut SerializedFileWriter<W>> {
        if let Some(file) = self.file.take() {
            self.writer = Some(begin(file, self.has_streams)?);
        }
        self.writer.as_mut().ok_or_else(|| ParquetError::General("its head could not be written".to_owned()))
    }

    pub(crate) fn write(&mut self, requests: &[Request]) -> io::Result<()> {
        for request in requests {
            self.pending.push(*request);
            if self.pending.len() == GROUP_ROWS {
                self.write_group().map_err(as_io)?;
            }
        }
        Ok(())
    }

    fn write_group(&mut self) -> ParquetResult<()> {
        let word = |request: &Request| ByteArray::from(bytes::Bytes::from_static(csv::word(request).as_bytes()));
        let ops: Vec<ByteArray> = self.pending.iter().map(word).collect();
        let numbers = |number: fn(&Request) -> u64| self.pending.iter().map(|r| number(r) as i64).collect::<Vec<_>>();
        let numbers =
            [numbers(|r| r.arrival_ns), numbers(|r| r.offset), numbers(|r| r.length), numbers(|r| u64::from(r.source))];
        let has_streams = self.has_streams;
        let mut group = self.writer()?.next_row_group()?;
        let mut numbers = numbers.iter();
        for (_, physical) in columns(has_streams) {
            let mut column =
                group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".to_owned()))?;
            match (physical, numbers.as_slice()) {
                (Type::INT64, [values, ..]) => {
                    column.typed::<Int64Type>().write_batch(values, None, None)?;
                    numbers.next();
                }
                _ => {
                    column.typed::<ByteArrayType>().write_batch(&ops, None, None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        self.pending.clear();
        Ok(())
    }

    /// Writes what is pending and the footer; gives the file back.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.pending.is_empty() {
            self.write_group().map_err(as_io)?;
        }
        self.writer().map_err(as_io)?;
        let writer = self.writer.expect("the head was written now, if not before");
        writer.into_inner().map_err(as_io)
    }
}
