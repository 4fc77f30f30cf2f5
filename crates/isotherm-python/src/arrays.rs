//! Requests that a program holds in arrays, read where they lie: NumPy's through the buffer protocol, others through Arrow.
//!
//! Buffers belong to Python, and only who holds the interpreter may look at them. A reader therefore takes it for a moment every
//! [`CHUNK`] requests and copies these; the arrays themselves are never copied. Nothing keeps a program from writing to its array
//! meanwhile, so every pass adds up a hash of each column, and a pass that ends with another one is an error that names it. Arrow's
//! arrays are constant by contract.

use crate::foreign::values;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use isotherm::{Op, Request};
use isotherm_eval::Requests;
use isotherm_trace::{END_BYTES_MAX, TRANSFER_BYTES_MAX, TraceError, TraceReader};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// Requests that are copied at a time: enough that taking the interpreter costs nothing.
pub const CHUNK: usize = 1 << 16;

/// Operations by their codes in arrays.
const OPS: [Op; 5] = [Op::Read, Op::Write, Op::Trim, Op::Flush, Op::WriteZeroes];

/// One column: values of any integer type, or one for all.
#[derive(Debug)]
pub enum Column {
    /// The same value everywhere.
    All(i128),
    /// A buffer of Python's.
    U64(PyBuffer<u64>),
    /// See `U64`.
    I64(PyBuffer<i64>),
    /// See `U64`.
    U32(PyBuffer<u32>),
    /// See `U64`.
    I32(PyBuffer<i32>),
    /// See `U64`.
    U16(PyBuffer<u16>),
    /// See `U64`.
    U8(PyBuffer<u8>),
    /// See `U64`.
    I8(PyBuffer<i8>),
    /// Chunks of Arrow's, each with the number of values before it.
    Arrow(Vec<(usize, ArrayRef)>, usize),
}

/// Reads a column of one type of values, if the object has that.
type Kind = fn(&str, &Bound<'_, PyAny>) -> Option<PyResult<Column>>;

fn view<T: Element>(name: &str, object: &Bound<'_, PyAny>) -> Option<PyResult<PyBuffer<T>>> {
    let buffer = PyBuffer::<T>::get(object).ok()?;
    let wrong = |problem: String| Some(Err(PyValueError::new_err(format!("{name}: {problem}"))));
    if is_swapped(buffer.format().to_bytes()) {
        let problem =
            format!("{name}: the array has the other byte order; give {name}.astype({name}.dtype.newbyteorder(\"=\"))");
        return Some(Err(PyTypeError::new_err(problem)));
    }
    if buffer.dimensions() != 1 {
        return wrong(format!("the array has {} dimensions; give one of shape (requests,)", buffer.dimensions()));
    }
    if !buffer.is_c_contiguous() {
        return wrong("the values do not lie side by side; give numpy.ascontiguousarray of it".to_owned());
    }
    Some(Ok(buffer))
}

/// Whether values of this format have their bytes in the order of other machines: pyo3 takes some of these for our own.
fn is_swapped(format: &[u8]) -> bool {
    matches!((format, cfg!(target_endian = "big")), ([b'>' | b'!', _, ..], false) | ([b'<', _, ..], true))
}

/// Refuses arrays with a mask, which the buffer behind them says nothing of.
fn refuse_mask(name: &str, object: &Bound<'_, PyAny>) -> PyResult<()> {
    if object.hasattr("mask")? && object.hasattr("filled")? {
        return Err(PyTypeError::new_err(format!(
            "{name}: a masked array has requests that are none; give {name}.compressed(), and the same of the other columns, or \
             {name}.filled(VALUE)"
        )));
    }
    Ok(())
}

impl Column {
    /// The column in `object`: an integer, or an array of integers.
    pub fn of(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(value) = object.extract::<i128>() {
            if !(i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&value) {
                return Err(PyValueError::new_err(format!(
                    "{name}: {value} is out of range; 64 bits hold every number"
                )));
            }
            return Ok(Self::All(value));
        }
        refuse_mask(name, object)?;
        let kinds: [Kind; 7] = [
            |name, object| Some(view(name, object)?.map(Self::U64)),
            |name, object| Some(view(name, object)?.map(Self::I64)),
            |name, object| Some(view(name, object)?.map(Self::U32)),
            |name, object| Some(view(name, object)?.map(Self::I32)),
            |name, object| Some(view(name, object)?.map(Self::U16)),
            |name, object| Some(view(name, object)?.map(Self::U8)),
            |name, object| Some(view(name, object)?.map(Self::I8)),
        ];
        if let Some(column) = kinds.iter().find_map(|kind| kind(name, object)) {
            return column;
        }
        let given = match object.getattr("dtype") {
            Ok(dtype) => format!("an array of {dtype}"),
            Err(_) => format!("{}", object.get_type().name()?),
        };
        let fix = if object.hasattr("dtype")? {
            "convert it, for example with .astype(\"uint64\")"
        } else {
            "give a NumPy array of integers"
        };
        Err(PyTypeError::new_err(format!("{name}: {given} is no array of integers; {fix}")))
    }

    /// The number of values, where it has one of its own.
    pub fn len(&self) -> Option<usize> {
        Some(match self {
            Self::All(_) => return None,
            Self::U64(buffer) => buffer.item_count(),
            Self::I64(buffer) => buffer.item_count(),
            Self::U32(buffer) => buffer.item_count(),
            Self::I32(buffer) => buffer.item_count(),
            Self::U16(buffer) => buffer.item_count(),
            Self::U8(buffer) => buffer.item_count(),
            Self::I8(buffer) => buffer.item_count(),
            Self::Arrow(_, count) => *count,
        })
    }

    /// Whether a value above 2^63, as `copy` gives it, is a negative one.
    fn has_negative(&self) -> bool {
        match self {
            Self::All(value) => *value < 0,
            Self::I64(_) | Self::I32(_) | Self::I8(_) => true,
            Self::U64(_) | Self::U32(_) | Self::U16(_) | Self::U8(_) => false,
            Self::Arrow(chunks, _) => chunks.first().is_some_and(|(_, array)| array.data_type().is_signed_integer()),
        }
    }

    /// Appends the values from `at` on, at most `most` of them, to `out`; negative ones come out above 2^63.
    fn copy(&self, py: Python<'_>, at: usize, most: usize, out: &mut Vec<u64>) {
        match self {
            Self::All(value) => out.extend(std::iter::repeat_n(*value as u64, most)),
            Self::U64(buffer) => values(py, buffer, at, most, |value| out.push(value)),
            Self::I64(buffer) => values(py, buffer, at, most, |value| out.push(value as u64)),
            Self::U32(buffer) => values(py, buffer, at, most, |value| out.push(u64::from(value))),
            Self::I32(buffer) => values(py, buffer, at, most, |value| out.push(i64::from(value) as u64)),
            Self::U16(buffer) => values(py, buffer, at, most, |value| out.push(u64::from(value))),
            Self::U8(buffer) => values(py, buffer, at, most, |value| out.push(u64::from(value))),
            Self::I8(buffer) => values(py, buffer, at, most, |value| out.push(i64::from(value) as u64)),
            Self::Arrow(chunks, _) => copy_chunks(chunks, at, most, out),
        }
    }
}

fn copy_chunks(chunks: &[(usize, ArrayRef)], mut at: usize, most: usize, out: &mut Vec<u64>) {
    let end = at + most;
    let mut chunk = chunks.partition_point(|(before, _)| *before <= at) - 1;
    while at < end {
        let (before, array) = &chunks[chunk];
        let (from, to) = (at - before, (end - before).min(array.len()));
        macro_rules! values {
            ($type:ty) => {
                out.extend(array.as_primitive::<$type>().values()[from..to].iter().map(|value| *value as u64))
            };
        }
        match array.data_type() {
            DataType::UInt64 => values!(UInt64Type),
            DataType::Int64 => values!(Int64Type),
            DataType::UInt32 => values!(UInt32Type),
            DataType::Int32 => values!(Int32Type),
            DataType::UInt16 => values!(UInt16Type),
            _ => values!(UInt8Type),
        }
        at = before + to;
        chunk += 1;
    }
}

/// Columns of requests, checked.
#[derive(Debug)]
pub struct Arrays {
    columns: [Column; 4],
    count: usize,
    /// A hash of each column, as it was when it was checked.
    hashes: [u64; 4],
}

/// What the columns are called where something is wrong with one.
const NAMES: [&str; 4] = ["offset", "length", "op", "time"];

impl Arrays {
    /// Takes columns in the order offset, length, op, time, and checks every value.
    ///
    /// # Errors
    /// An exception that names the column, and the place in it.
    pub fn new(py: Python<'_>, columns: [Column; 4]) -> PyResult<Self> {
        let lengths = columns.iter().zip(NAMES).filter_map(|(column, name)| Some((name, column.len()?)));
        let lengths: Vec<(&str, usize)> = lengths.collect();
        let count = lengths.first().map_or(0, |first| first.1);
        if let Some((name, other)) = lengths.iter().find(|(_, length)| *length != count) {
            let first = lengths[0].0;
            return Err(PyValueError::new_err(format!(
                "{name}: {other} values, but {first} has {count}; give as many"
            )));
        }
        if count == 0 {
            return Err(PyValueError::new_err("offset: there are no requests; give at least one"));
        }
        let mut arrays = Self { columns, count, hashes: [0; 4] };
        let mut pass = Pass::default();
        let (mut last_ns, mut at) = (0, 0);
        while at < count {
            py.check_signals()?;
            let some = CHUNK.min(count - at);
            pass.copy(py, &arrays, at, some);
            last_ns = pass.check(&arrays, at, last_ns)?;
            at += some;
        }
        arrays.hashes = pass.hashes;
        Ok(arrays)
    }

    /// The columns `offset`, `length`, and, where there, `op` and `time` of batches of Arrow's.
    ///
    /// # Errors
    /// A column that is not there, has another type, or holds nulls.
    pub fn of_batches(py: Python<'_>, batches: &[RecordBatch]) -> PyResult<Self> {
        let column = |name: &str, default: Option<i128>| -> PyResult<Column> {
            let (mut chunks, mut before) = (Vec::new(), 0);
            for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
                let Some(array) = batch.column_by_name(name) else {
                    let missing = || PyValueError::new_err(format!("{name}: the table has no such column"));
                    return default.map(Column::All).ok_or_else(missing);
                };
                let allowed = [
                    DataType::UInt64,
                    DataType::Int64,
                    DataType::UInt32,
                    DataType::Int32,
                    DataType::UInt16,
                    DataType::UInt8,
                ];
                if !allowed.contains(array.data_type()) {
                    let given = array.data_type();
                    return Err(PyTypeError::new_err(format!(
                        "{name}: a column of {given} is none of integers; cast it to uint64"
                    )));
                }
                if array.null_count() > 0 {
                    return Err(PyValueError::new_err(format!(
                        "{name}: {} values are missing; fill them",
                        array.null_count()
                    )));
                }
                chunks.push((before, array.clone()));
                before += array.len();
            }
            Ok(Column::Arrow(chunks, before))
        };
        Self::new(
            py,
            [column("offset", None)?, column("length", None)?, column("op", Some(1))?, column("time", Some(0))?],
        )
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Passes every request to `visit`, chunk by chunk, with the interpreter released.
    ///
    /// # Errors
    /// What `visit` says, a signal, or an array that was changed.
    pub fn for_each<E: Send>(
        &self,
        py: Python<'_>,
        failed: impl Fn(E) -> PyErr,
        mut visit: impl FnMut(&[Request]) -> Result<(), E> + Send,
    ) -> PyResult<()> {
        let mut pass = Pass::default();
        let mut at = 0;
        while at < self.count {
            py.check_signals()?;
            let some = CHUNK.min(self.count - at);
            pass.copy(py, self, at, some);
            at += some;
            if at == self.count {
                pass.compare(self).map_err(|name| PyValueError::new_err(changed(name)))?;
            }
            let visit = &mut visit;
            let pass = &pass;
            py.detach(move || {
                let mut requests = Vec::with_capacity(some);
                pass.push_to(&mut requests);
                visit(&requests)
            })
            .map_err(&failed)?;
        }
        Ok(())
    }
}

fn changed(name: &str) -> String {
    format!("{name}: the array was changed while it was in use; give a copy, or wait until the run is over")
}

/// One pass over the columns: the values at hand, and the hashes so far.
#[derive(Debug, Default)]
struct Pass {
    values: [Vec<u64>; 4],
    hashes: [u64; 4],
}

impl Pass {
    fn copy(&mut self, py: Python<'_>, arrays: &Arrays, at: usize, count: usize) {
        for ((values, hash), column) in self.values.iter_mut().zip(&mut self.hashes).zip(&arrays.columns) {
            values.clear();
            column.copy(py, at, count, values);
            if column.len().is_some() {
                *hash =
                    values.iter().zip(at as u64..).fold(*hash, |sum, (value, at)| sum.wrapping_add(mixed(*value, at)));
            }
        }
    }

    /// Checks the values at hand, the first of which is number `first`; the last time.
    fn check(&self, arrays: &Arrays, first: usize, mut last_ns: u64) -> PyResult<u64> {
        let [offsets, lengths, ops, times] = &self.values;
        let wrong = |column: usize, at: usize, problem: String| {
            let value = self.values[column][at];
            let signed = arrays.columns[column].has_negative();
            let value = if signed { (value as i64).to_string() } else { value.to_string() };
            Err(PyValueError::new_err(format!("{}[{}]: {value} {problem}", NAMES[column], first + at)))
        };
        let negative = |column: usize, value: u64| (value as i64) < 0 && arrays.columns[column].has_negative();
        for at in 0..offsets.len() {
            let (offset, length, op, time) = (offsets[at], lengths[at], ops[at], times[at]);
            let Some(op) = OPS.get(op as usize) else {
                return wrong(2, at, "is no operation; use isotherm.Op: READ 0, WRITE 1, TRIM 2, FLUSH 3".to_owned());
            };
            if offset > END_BYTES_MAX {
                let problem = if negative(0, offset) { "is negative" } else { "lies beyond 4 PiB" };
                return wrong(0, at, format!("{problem}; give bytes from the start of the device"));
            }
            if negative(1, length) || (length == 0) != (*op == Op::Flush) {
                return wrong(1, at, "bytes; give at least one (a flush has none)".to_owned());
            }
            if (length > TRANSFER_BYTES_MAX && !op.discards()) || length > END_BYTES_MAX - offset {
                return wrong(1, at, "bytes are too many; no request is larger than 4 GiB".to_owned());
            }
            if time > i64::MAX as u64 && !negative(3, time) {
                return wrong(3, at, "ns are too many; give nanoseconds from the start of the trace".to_owned());
            }
            if time < last_ns || negative(3, time) {
                return wrong(3, at, format!("ns comes after {last_ns} ns; sort the requests by time"));
            }
            last_ns = time;
        }
        Ok(last_ns)
    }

    /// Whether the columns were what they were, at the end of a pass; the name of one that was not.
    fn compare(&self, arrays: &Arrays) -> Result<(), &'static str> {
        let differs = |at: &usize| self.hashes[*at] != arrays.hashes[*at];
        (0..4).find(differs).map_or(Ok(()), |at| Err(NAMES[at]))
    }

    fn push_to(&self, requests: &mut Vec<Request>) {
        let [offsets, lengths, ops, times] = &self.values;
        let rows = offsets.iter().zip(lengths).zip(ops.iter().zip(times));
        requests.extend(rows.map(|((offset, length), (op, time))| Request {
            arrival_ns: *time,
            // What was changed meanwhile may be anything; whoever uses it is told at the end.
            offset: (*offset).min(END_BYTES_MAX),
            length: (*length).min(END_BYTES_MAX - (*offset).min(END_BYTES_MAX)),
            op: OPS[(*op as usize).min(OPS.len() - 1)],
            source: 0,
            durable: false,
        }));
    }
}

/// A value and its place, mixed so that sums tell columns apart; without a chain from value to value.
fn mixed(value: u64, at: u64) -> u64 {
    let sum = (value ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    sum ^ (sum >> 32)
}

/// Arrays that traces share.
#[derive(Debug)]
pub struct Held(pub Arc<Arrays>);

impl Requests for Held {
    fn open(&self) -> Result<Box<dyn TraceReader + Send>, TraceError> {
        Ok(Box::new(Reader { arrays: self.0.clone(), pass: Pass::default(), at: 0, waiting: Vec::new(), next: 0 }))
    }

    fn content(&self) -> u64 {
        self.0.hashes.iter().zip(1..).fold(self.0.count as u64, |sum, (hash, at)| mixed(sum ^ *hash, at))
    }
}

struct Reader {
    arrays: Arc<Arrays>,
    pass: Pass,
    /// Requests that were copied.
    at: usize,
    /// These, as far as they were not given on.
    waiting: Vec<Request>,
    next: usize,
}

impl TraceReader for Reader {
    fn fill(&mut self, batch: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        if self.next == self.waiting.len() {
            self.waiting.clear();
            self.next = 0;
            let some = CHUNK.min(self.arrays.len() - self.at);
            if some > 0 {
                let (pass, arrays, at) = (&mut self.pass, &self.arrays, self.at);
                Python::attach(|py| pass.copy(py, arrays, at, some));
                self.pass.push_to(&mut self.waiting);
                self.at += some;
            }
            if self.at == self.arrays.len() && some > 0 {
                self.pass.compare(&self.arrays).map_err(|name| TraceError::Input {
                    path: name.to_owned(),
                    problem: "the array was changed while it was in use".to_owned(),
                    fix: "give a copy, or wait until the run is over".to_owned(),
                })?;
            }
        }
        let some = most.min(self.waiting.len() - self.next);
        batch.extend_from_slice(&self.waiting[self.next..self.next + some]);
        self.next += some;
        Ok(some)
    }

    fn skipped(&self) -> u64 {
        0
    }

    fn format(&self) -> &'static str {
        "arrays"
    }
}
