//! Errors of the engine as exceptions of Python, in Python's words: keys stand with the keyword that sets them.

use isotherm::device::DeviceError as Stopped;
use isotherm_advise::AdviceError;
use isotherm_eval::EvalError;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(isotherm, IsothermError, PyRuntimeError, "What isotherm could not do.");
create_exception!(
    isotherm,
    SpecError,
    PyValueError,
    "A specification that is wrong: which key, what is wrong with it, and what would be right."
);
create_exception!(
    isotherm,
    TraceError,
    PyValueError,
    "A trace that cannot be read or used: where, why, and what to do."
);
create_exception!(isotherm, DeviceError, IsothermError, "A device that could not carry a request out.");

/// A message with the keyword behind each key that has one: `device.over_provisioning (op=)`.
fn in_python(message: &str) -> String {
    isotherm_cli::message::with_names(message, |option| format!("({}=)", option.replace('-', "_")))
}

/// A wrong specification.
pub fn spec(error: &isotherm::SpecError) -> PyErr {
    SpecError::new_err(in_python(&error.to_string()))
}

/// A trace that cannot be read.
pub fn trace(error: &isotherm_trace::TraceError) -> PyErr {
    match error {
        isotherm_trace::TraceError::Io { cause, .. } => os(&error.to_string(), cause),
        isotherm_trace::TraceError::Spec(wrong) => spec(wrong),
        other => TraceError::new_err(in_python(&other.to_string())),
    }
}

/// A device that stopped.
pub fn device(error: &Stopped) -> PyErr {
    DeviceError::new_err(in_python(&error.to_string()))
}

/// Any error of the evaluation.
pub fn eval(error: &EvalError) -> PyErr {
    match error {
        EvalError::Trace(error) => trace(error),
        EvalError::Spec(error) => spec(error),
        EvalError::Device { .. } => DeviceError::new_err(in_python(&error.to_string())),
        EvalError::Filler { .. }
        | EvalError::TooFar { .. }
        | EvalError::NoWrites { .. }
        | EvalError::NoPoint { .. } => PyValueError::new_err(in_python(&error.to_string())),
        EvalError::Memory { .. } => PyMemoryError::new_err(in_python(&error.to_string())),
        EvalError::File { reason, .. } => os(&error.to_string(), reason),
        other => IsothermError::new_err(in_python(&other.to_string())),
    }
}

/// Any error of an advice: the command line's options are the keywords of the same names.
pub fn advice(error: &AdviceError) -> PyErr {
    match error {
        AdviceError::Eval(EvalError::Spec(wrong)) => SpecError::new_err(keywords(&in_python(&wrong.to_string()))),
        AdviceError::Eval(error) => eval(error),
        other => PyValueError::new_err(keywords(&other.to_string())),
    }
}

/// `--scale-rate: 0 is out of range` as `scale_rate: 0 is out of range`.
fn keywords(message: &str) -> String {
    let mut parts = message.split("--");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| !(letter.is_alphanumeric() || letter == '-')).unwrap_or(part.len());
        text.push_str(&part[..end].replace('-', "_"));
        text.push_str(&part[end..]);
    }
    text
}

/// A trace that is not there.
pub fn no_file(path: &str, cause: &std::io::Error) -> PyErr {
    os(&format!("{path}: cannot open the trace: {cause}; check the path"), cause)
}

/// What the operating system refused: the subclass of `OSError` follows from its number.
fn os(message: &str, cause: &std::io::Error) -> PyErr {
    match cause.raw_os_error() {
        Some(number) => PyOSError::new_err((number, message.to_owned())),
        None => PyOSError::new_err(message.to_owned()),
    }
}
