//! The `isotherm` command.

mod trace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "isotherm", version, about)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Look at traces, convert them, make synthetic ones
    Trace(trace::TraceArgs),
}

fn main() -> ExitCode {
    let Verb::Trace(args) = Cli::parse().verb;
    match trace::run(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
