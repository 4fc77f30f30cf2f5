//! The `isotherm` command.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    isotherm_cli::main(&std::env::args_os().collect::<Vec<OsString>>())
}
