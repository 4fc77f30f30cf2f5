//! `isotherm man`: manual pages, made from the command line and the table of keys.

use crate::output::print;
use crate::reference;
use anyhow::bail;
use clap::{Args, CommandFactory};
use clap_mangen::Man;
use std::process::ExitCode;

/// Arguments of `man`.
#[derive(Args)]
#[command(after_help = "Example:\n  isotherm man run > isotherm-run.1")]
pub struct ManArgs {
    /// Verb whose page is printed; without one, the page of isotherm itself
    verb: Option<String>,
}

/// Prints a page in roff. The pages of isotherm itself and of verbs that take keys list the keys of a specification.
pub fn run(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let mut whole = crate::Command::command();
    // Verbs learn their names in full.
    whole.build();
    let command = match &args.verb {
        None => whole,
        Some(verb) => {
            let names: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
            let Some(command) = whole.find_subcommand(verb) else {
                bail!("{verb}: unknown verb; choose from {}", names.join(", "));
            };
            command.clone()
        }
    };
    let has_keys = args.verb.is_none() || command.get_arguments().any(|argument| argument.get_id() == "set");
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    let mut page = String::from_utf8(page)?;
    if has_keys {
        page.push_str(&reference::roff());
    }
    print(&page)?;
    Ok(ExitCode::SUCCESS)
}
