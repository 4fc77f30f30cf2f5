//! The `isotherm` command: one file per verb, glue alone.
//!
//! It is a library so that other programs can carry the command along: the Python package has it as a console script.

mod advise;
mod compare;
mod control_group;
mod diff;
mod doctor;
mod drive;
mod figures;
mod hotness;
mod keys;
mod list;
mod man;
pub mod message;
mod options;
mod output;
mod progress;
mod prometheus;
mod reading;
mod reference;
mod report;
mod run;
mod schema;
mod sfs;
mod sweep;
mod table;
mod trace;
mod validate;

use clap::{Parser, Subcommand};
use isotherm_eval::EvalError;
use std::ffi::OsString;
use std::process::ExitCode;

/// Replays block traces on simulated SSDs that separate hot data from cold, and says which one writes least.
///
/// Give it a trace, and it tells how much a drive with a given placement and cleaning writes on top of what the host writes,
/// how fast it is, how long it lasts, and whether that answer can be trusted.
#[derive(Parser)]
#[command(name = "isotherm", version, max_term_width = 110, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 all went well, 1 a check failed, 2 wrong usage or input, or a device that ended full or worn out, 130 interrupted.\n\
    Begin with: isotherm compare traces/sqlite-wal-ext4.csv.zst --placement single,host_gc,epoch --address compact --precondition trace"
)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Replay one trace on one device and print what it cost
    Run(run::RunArgs),
    /// Replay one trace on every combination of placements, victim policies and over-provisioning, best first
    Compare(compare::CompareArgs),
    /// Compare two results number by number, and fail where a limit is passed: a gate for continuous integration
    Diff(diff::DiffArgs),
    /// Say what to change about a workload and its drive, with the years it buys
    Advise(Box<advise::AdviseArgs>),
    /// Make and serve simulated SSDs that hold real bytes: as block devices, with their counters live
    Drive(drive::DriveArgs),
    /// SFS as a file system: make, mount, check and look at volumes
    Sfs(sfs::SfsArgs),
    /// Judge the writes of a trace by hot data identification schemes, against a reference
    Hotness(hotness::HotnessArgs),
    /// Run every point of an experiment file on all cores, resumable
    Sweep(sweep::SweepArgs),
    /// Write the HTML report of a results file again
    Report(report::ReportArgs),
    /// Put published numbers and ours side by side, from the results of several experiments, and draw their pictures
    Figures(figures::FiguresArgs),
    /// Check the simulator against closed forms of write amplification
    Validate(validate::ValidateArgs),
    /// Look at traces, convert them, make synthetic ones
    Trace(trace::TraceArgs),
    /// Tell what this machine can do: FUSE, loop devices, memory, the folder's file system
    Doctor(doctor::DoctorArgs),
    /// List what can be named: placements, victims, FTLs, trace formats, synthetic patterns, timings
    List(list::ListArgs),
    /// Print a manual page in roff, or write all of them
    Man(man::ManArgs),
    /// Print a script that completes isotherm's words in a shell
    Completions(man::CompletionArgs),
}

/// Exit code for a check that failed, or a bug.
const CHECK_FAILED: u8 = 1;
/// Exit code for wrong usage or input, and for a device that was full or worn out before the trace ended.
const WRONG_INPUT: u8 = 2;
/// Exit code after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// Runs the command with these words, the first of which is the name of the program.
pub fn main(words: &[OsString]) -> ExitCode {
    let words = &sfs::with_helper(words.to_vec());
    let command = match Command::try_parse_from(words) {
        Ok(command) => command,
        Err(said) => {
            // Help goes to standard output, mistakes to standard error; neither can be told of elsewhere.
            let _ = said.print();
            let usual = u8::try_from(said.exit_code()).unwrap_or(WRONG_INPUT);
            let is_mistake = said.use_stderr();
            return is_mistake.then(|| sfs::code_of_wrong_use(words)).flatten().unwrap_or(usual).into();
        }
    };
    options::remember(words.get(1..).unwrap_or_default());
    let result = match command.verb {
        Verb::Run(args) => run::run(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Diff(args) => diff::run(&args),
        Verb::Advise(args) => advise::run(&args),
        Verb::Drive(args) => drive::run(&args),
        Verb::Sfs(args) => sfs::run(&args),
        Verb::Hotness(args) => hotness::run(&args),
        Verb::Sweep(args) => sweep::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Figures(args) => figures::run(&args),
        Verb::Validate(args) => validate::run(&args),
        Verb::Trace(args) => trace::run(args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::List(args) => list::run(&args),
        Verb::Man(args) => man::run(&args),
        Verb::Completions(args) => man::completions(&args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("isotherm: {}", message::with_options(&format!("{error:#}")));
        ExitCode::from(match error.downcast_ref::<EvalError>() {
            Some(EvalError::Law(_)) => CHECK_FAILED,
            Some(EvalError::Interrupted) => INTERRUPTED,
            _ => WRONG_INPUT,
        })
    })
}
