//! In place of the Parquet form where the crate is built without its feature `parquet`: files of it are recognised and refused.

use crate::error::TraceError;
use crate::records::{Records, Setup};
use crate::source::Source;
use isotherm::request::Request;
use std::convert::Infallible;
use std::io;
use std::marker::PhantomData;

/// Refuses the file.
pub(crate) fn open(_: &Source, setup: Setup) -> Result<Box<dyn Records>, TraceError> {
    Err(TraceError::NoParquet { path: setup.path })
}

/// Cannot be made.
pub(crate) struct ParquetSink<W>(Infallible, PhantomData<W>);

impl<W> ParquetSink<W> {
    pub(crate) fn new(_: W) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn begin_with_streams(&mut self) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn write(&mut self, _: &[Request]) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        match self.0 {}
    }
}
