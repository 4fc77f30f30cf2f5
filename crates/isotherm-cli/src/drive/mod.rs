//! `isotherm drive`: simulated SSDs with real bytes.

mod ask;
mod attach;
mod create;
mod facts;
mod recording;
mod serve;
mod streams;
mod watch;

pub use create::device;
pub use watch::describe;

use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Arguments of `drive`.
#[derive(Args)]
pub struct DriveArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make a flash image: an empty drive in a sparse file
    Create(create::CreateArgs),
    /// Serve a drive to clients, until it is stopped
    Serve(serve::ServeArgs),
    /// Serve a drive in the background and put a loop device on it: prints /dev/loopN (as root)
    Attach(attach::AttachArgs),
    /// Undo `attach`: detach the loop device, and stop the drive in order
    Detach(attach::DetachArgs),
    /// Print what an image is
    Info(create::InfoArgs),
    /// Read every page of an image and list what is damaged
    Check(create::CheckArgs),
    #[command(flatten)]
    Ask(ask::Question),
}

/// Runs the verb.
///
/// # Errors
/// The message names the place and the fix.
pub fn run(args: &DriveArgs) -> anyhow::Result<ExitCode> {
    match &args.verb {
        Verb::Create(args) => create::create(args),
        Verb::Serve(args) => serve::serve(args),
        Verb::Attach(args) => attach::attach(args),
        Verb::Detach(args) => attach::detach(args),
        Verb::Info(args) => create::info(args),
        Verb::Check(args) => create::check(args),
        Verb::Ask(question) => ask::ask(question),
    }
}
