//! A table of results: one record batch, which other libraries take as it is.

use crate::arrow::capsule;
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt8Array, UInt16Array,
    UInt64Array,
};
use arrow_schema::{Field, Schema};
use isotherm_eval::columns::{Column, Columns};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use serde_json::Value;
use std::sync::Arc;

/// Columns of equal length, in Arrow's form.
///
/// pandas, polars, DuckDB, pyarrow and others read it without copying, by the method ``__arrow_c_stream__``:
/// ``polars.DataFrame(table)``, ``pyarrow.table(table)``, ``pandas.DataFrame.from_arrow(table)``.
#[pyclass(frozen, module = "isotherm")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    fn of(columns: Vec<(String, ArrayRef)>) -> Self {
        let fields: Vec<Field> =
            columns.iter().map(|(name, values)| Field::new(name, values.data_type().clone(), true)).collect();
        let arrays: Vec<ArrayRef> = columns.into_iter().map(|column| column.1).collect();
        let rows = arrays.first().map_or(0, |array| array.len());
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
        Self { batch: batch.expect("columns are of equal length and match the schema made from them") }
    }

    /// The table of one batch.
    pub fn of_batch(batch: RecordBatch) -> Self {
        Self { batch }
    }

    /// The table of a results file.
    pub fn of_columns(columns: Columns) -> Self {
        let array = |column| -> ArrayRef {
            match column {
                Column::Whole(cells) => Arc::new(Int64Array::from(cells)),
                Column::Real(cells) => Arc::new(Float64Array::from(cells)),
                Column::Text(cells) => Arc::new(StringArray::from(cells)),
            }
        };
        Self::of(columns.into_iter().map(|(name, column)| (name, array(column))).collect())
    }

    /// The lists of a JSON object that are as long as the first of them.
    pub fn of_lists(object: &Value) -> Self {
        let lists =
            object.as_object().into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_array()?)));
        let lists: Vec<_> = lists.filter(|(_, list)| list.iter().all(|v| v.is_number() || v.is_null())).collect();
        let rows = lists.first().map_or(0, |(_, list)| list.len());
        let array = |list: &[Value]| -> ArrayRef {
            if list.iter().all(Value::is_u64) {
                Arc::new(list.iter().map(Value::as_u64).collect::<UInt64Array>())
            } else {
                Arc::new(list.iter().map(Value::as_f64).collect::<Float64Array>())
            }
        };
        let whole = lists.into_iter().filter(|(_, list)| list.len() == rows);
        Self::of(whole.map(|(name, list)| (name.clone(), array(list))).collect())
    }
}

#[pymethods]
impl Table {
    /// A capsule with the table as a stream of one batch, by Arrow's PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Consumers may ask for other types; the interface lets a producer give what it has.
        let _ = requested_schema;
        let schema = self.batch.schema();
        capsule(py, Box::new(RecordBatchIterator::new(vec![Ok(self.batch.clone())], schema)))
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The values of a column as a list, ``None`` where there is none.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(array) = self.batch.column_by_name(name) else {
            return Err(PyKeyError::new_err(format!("no column \"{name}\"; column_names has them all")));
        };
        let any = array.as_any();
        if let Some(array) = any.downcast_ref::<Int64Array>() {
            PyList::new(py, array.iter())
        } else if let Some(array) = any.downcast_ref::<UInt64Array>() {
            PyList::new(py, array.iter())
        } else if let Some(array) = any.downcast_ref::<Float64Array>() {
            PyList::new(py, array.iter())
        } else if let Some(array) = any.downcast_ref::<UInt16Array>() {
            PyList::new(py, array.iter())
        } else if let Some(array) = any.downcast_ref::<UInt8Array>() {
            PyList::new(py, array.iter())
        } else {
            PyList::new(py, any.downcast_ref::<StringArray>().expect("tables have no other types").iter())
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        self.column(py, name)
    }

    fn __repr__(&self) -> String {
        format!("<isotherm.Table of {} rows and {} columns>", self.batch.num_rows(), self.batch.num_columns())
    }
}
