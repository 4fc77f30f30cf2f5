//! `isotherm man` and `isotherm completions`: manual pages and shell completions, made from the command line and the table of keys.

use crate::output::print;
use crate::reference;
use anyhow::{Context as _, bail};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use isotherm_eval::files;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `man`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  isotherm man run | man -l -\n  isotherm man drive serve > isotherm-drive-serve.1\n  isotherm man --all /usr/local/share/man/man1"
)]
pub struct ManArgs {
    /// Verb whose page is printed, such as `run` or `drive serve`; without one, the page of isotherm itself
    #[arg(value_name = "VERB", conflicts_with = "all")]
    verb: Vec<String>,
    /// Write the page of every verb into this folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    all: Option<PathBuf>,
}

/// Arguments of `completions`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  isotherm completions bash > /etc/bash_completion.d/isotherm\n  isotherm completions zsh > \"${fpath[1]}/_isotherm\"\n  \
    isotherm completions fish > ~/.config/fish/completions/isotherm.fish"
)]
pub struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// Prints a page in roff, or writes all of them.
pub fn run(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let mut whole = crate::Command::command();
    // Verbs learn their names in full.
    whole.build();
    match &args.all {
        Some(folder) => {
            files::writable_folder(folder)?;
            write_all(&whole, folder)?;
        }
        None => {
            let mut command = &whole;
            for verb in &args.verb {
                let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
                command = command
                    .find_subcommand(verb)
                    .with_context(|| format!("{verb}: unknown verb; choose from {}", names.join(", ")))?;
            }
            print(&page(command)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a script that completes the command's words.
pub fn completions(args: &CompletionArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Command::command(), "isotherm", &mut script);
    print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of a verb. Those of isotherm itself and of verbs that take keys list the keys of a specification.
fn page(command: &Command) -> anyhow::Result<String> {
    let has_keys =
        command.get_name() == "isotherm" || command.get_arguments().any(|argument| argument.get_id() == "set");
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    let mut page = String::from_utf8(page)?;
    if has_keys {
        page.push_str(&reference::roff());
    }
    Ok(page)
}

/// Writes the pages of a command and of all verbs below it.
fn write_all(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    if name.contains(['/', ' ']) {
        bail!("{name}: no name of a page");
    }
    files::write_whole(&folder.join(format!("{name}.1")), page(command)?.as_bytes())?;
    let mut verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    verbs.try_for_each(|verb| write_all(verb, folder))
}
