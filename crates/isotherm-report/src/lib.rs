//! Reports: one self-contained HTML file for people, from the same structures that scripts read in `results.json`.
//!
//! Nothing is fetched when a report opens: text and tables are written here, figures are embedded as JSON and drawn by the
//! embedded chart library (`assets/echarts`), and the page's own policy forbids it any connection. Every text is escaped
//! where it enters the page, because names of traces come from users.
//!
//! Layers, top down: [`render`] picks what results show (`runs` for `run` and `compare`, `sweep` for experiments) and
//! fills a [`Page`]; [`figure`] says what a chart shows, never how it looks; `html` writes the page. Looks live in
//! `assets/page.css` and `assets/charts.js` alone.

pub mod figure;
pub mod hotness;
pub mod page;

mod axes;
mod error;
mod html;
mod panels;
mod runs;
mod several;
mod split;
mod sweep;
mod table;

pub use error::ReportError;
pub use page::Page;

use isotherm_eval::results::ResultsFile;

/// The report of a results file, as the text of one HTML file.
///
/// # Errors
/// No runs, or an experiment whose figures do not fit its runs.
pub fn render(results: &ResultsFile) -> Result<String, ReportError> {
    if results.runs.is_empty() {
        return Err(ReportError::NoRuns);
    }
    let page = match &results.experiment {
        Some(experiment) => sweep::page(results, experiment)?,
        None => runs::page(results)?,
    };
    render_page(&page)
}

/// A page of any content, as the text of one HTML file.
///
/// # Errors
/// A figure holds a number that JSON cannot.
pub fn render_page(page: &Page) -> Result<String, ReportError> {
    html::document(page)
}
