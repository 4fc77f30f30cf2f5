//! The keys of a specification as a page of documentation, `docs/keys.md`, and as a section of the manual page, made from their
//! table.
//!
//! A test compares page and table, and writes the page anew where it is told to:
//! `ISOTHERM_DOCS=write cargo test -p isotherm-cli reference`.

use isotherm::registry::Parameter;
use isotherm::spec::Specification;
use isotherm_eval::ReplaySpec;
use isotherm_sfs::SystemSpec;

/// Every key, section by section.
fn tables() -> impl Iterator<Item = &'static [Parameter]> {
    SystemSpec::TABLES.iter().chain(ReplaySpec::TABLES).copied()
}

fn option(row: &Parameter) -> String {
    row.option.map_or_else(String::new, |option| format!("--{option}"))
}

/// The keys as Markdown, a table for each section.
pub fn markdown() -> String {
    let mut text = "# Keys of a specification\n\n\
        Made from the table of keys by `isotherm list parameters --markdown`. Keys are set by `--set KEY=VALUE`, in the file of \
        `--spec`, by axes of experiments, and by the option named here. `replay.` keys belong to a run, not to a device: options \
        and experiments set them.\n"
        .to_owned();
    for rows in tables() {
        let section = rows[0].key.split('.').next().expect("a key begins with its section");
        text.push_str(&format!(
            "\n## {section}\n\n| key | takes | default | option | meaning |\n|---|---|---|---|---|\n"
        ));
        for row in rows {
            let cells = [row.key, &row.allowed(), row.default_words(), &option(row), row.help];
            let cells = cells.map(|cell| cell.replace('|', "\\|").replace('<', "&lt;"));
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    text
}

/// The keys as a section of a manual page.
pub fn roff() -> String {
    // A backslash, a hyphen, and a dot or a quote that begins a line mean something to roff.
    let plain = |text: &str| {
        let text = text.replace('\\', "\\e").replace('-', "\\-");
        if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
    };
    let mut text =
        ".SH \"KEYS OF A SPECIFICATION\"\nSet by \\-\\-set KEY=VALUE, or in the file of \\-\\-spec.\n".to_owned();
    for row in tables().flatten() {
        let option = row.option.map_or_else(String::new, |option| format!(" Option: --{option}."));
        let end = if row.help.ends_with('.') { "" } else { "." };
        let body = format!("{}{end} Takes {}. Default: {}.{option}", row.help, row.allowed(), row.default_words());
        text.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", plain(row.key), plain(&body)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_page_is_that_of_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keys.md");
        if std::env::var_os("ISOTHERM_DOCS").is_some_and(|what| what == "write") {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, markdown()).unwrap();
        } else {
            let page = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(page == markdown(), "table and page differ: ISOTHERM_DOCS=write writes it anew");
        }
        for row in tables().flatten() {
            assert!(markdown().contains(&format!("| {} |", row.key)) && roff().contains(&format!("\\fB{}", row.key)));
        }
    }
}
