//! `isotherm validate`: the simulator against theory.

use crate::output::{self, print};
use crate::progress;
use crate::table::Table;
use clap::Args;
use isotherm_eval::files;
use isotherm_eval::validate::{Cell, Depth, Validation};
use std::process::ExitCode;

/// Arguments of `validate`.
#[derive(Args)]
#[command(
    after_help = "Every cell is a device filled and overwritten until steady; the formulas and their sources are in the \
    module closed_form. Exit code 1 if a cell deviates by more than its tolerance."
)]
pub struct ValidateArgs {
    /// Only blocks of 64 pages and the middle of the tables
    #[arg(long)]
    quick: bool,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// Validates.
pub fn run(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let validation = Validation::new(if args.quick { Depth::Quick } else { Depth::Full });
    let control = progress::interruptible()?;
    let cells = progress::with_bar(&control, Some(validation.pages()), || validation.run(&control))?;
    let failed = cells.iter().filter(|c| !c.pass).count();
    if args.json {
        print(&files::to_json(&serde_json::json!({ "pass": failed == 0, "failed": failed, "cells": cells })))?;
    } else {
        let said = if failed == 0 { "all pass".to_owned() } else { format!("{failed} FAIL") };
        print(&format!("{}\n{} cells, {said}\n", table(&cells), cells.len()))?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(crate::CHECK_FAILED) })
}

fn table(cells: &[Cell]) -> String {
    let mut table = Table::plain(&["cell", "expected WA", "measured", "deviation", "allowed", ""]);
    for cell in cells {
        table.row(vec![
            cell.name.clone(),
            output::real(Some(cell.expected), 3),
            output::real(Some(cell.measured), 3),
            format!("{:+.2} %", cell.deviation * 100.0),
            format!("{:.0} %", cell.tolerance * 100.0),
            if cell.pass { "pass".to_owned() } else { "FAIL".to_owned() },
        ]);
    }
    table.render(output::width())
}
