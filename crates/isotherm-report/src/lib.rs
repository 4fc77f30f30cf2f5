//! Reports: one self-contained HTML file for people, from the same structures that scripts read in `results.json`.
//!
//! Nothing is fetched when a report opens: text and tables are written here, figures are embedded as JSON and drawn by the
//! embedded chart library (`assets/echarts`), and the page's own policy forbids it any connection. Every text is escaped
//! where it enters the page, because names of traces come from users.
//!
//! ```
//! use isotherm_report::figure::{Axis, Chart, Figure, Panel, Plane, PlaneSeries};
//! use isotherm_report::page::{Block, Section};
//! use isotherm_report::{Page, render_page};
//!
//! let points = vec![(7.0, Some(2.9)), (15.0, Some(1.9)), (28.0, Some(1.4))];
//! let series = vec![PlaneSeries { name: "greedy".into(), points, ..PlaneSeries::default() }];
//! let (x, y) = (Axis::linear("over-provisioning", "%"), Axis::linear("write amplification", ""));
//! let chart = Chart::Plane(Plane { x, y, series, ..Plane::default() });
//! let panels = vec![Panel::new("", chart)];
//! let figure = Figure { title: "What space buys".into(), caption: String::new(), panels };
//! let sections = vec![Section::new("Figures", vec![Block::Figure(figure)])];
//! let html = render_page(&Page { title: "My page".into(), sections, ..Page::default() })?;
//! assert!(html.contains("What space buys"));
//! # Ok::<(), isotherm_report::ReportError>(())
//! ```
//!
//! Results become a page by [`render`], several of them a table and pictures by [`summary::of`]; [`Page`] and [`figure`] are for
//! pages of one's own.
//!
//! Layers, top down: [`render`] picks what results show (`runs` for `run` and `compare`, `sweep` and `hotness` for experiments)
//! and fills a [`Page`]; [`figure`] says what a chart shows, never how it looks; `ranges` says how far axes reach; `html` writes the page. Looks live in
//! `assets/page.css` and `assets/charts.js` alone.

pub mod figure;
pub mod page;
pub mod summary;

mod arrangement;
mod axes;
mod error;
mod findings;
mod hotness;
mod html;
mod lead;
mod panels;
mod ranges;
mod runs;
mod said;
mod several;
mod split;
mod svg;
mod sweep;
mod table;

pub use error::ReportError;
pub use page::Page;
pub use svg::svg;

use isotherm_eval::results::ResultsFile;

/// The report of a results file, as the text of one HTML file.
///
/// # Errors
/// No runs, or an experiment whose figures do not fit its runs.
pub fn render(results: &ResultsFile) -> Result<String, ReportError> {
    render_page(&page_of(results)?)
}

/// The figures of that report, each as the name and the text of an SVG file.
///
/// # Errors
/// As [`render`].
pub fn pictures(results: &ResultsFile) -> Result<Vec<(String, String)>, ReportError> {
    let page = page_of(results)?;
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let figures = blocks.filter_map(|block| if let page::Block::Figure(figure) = block { Some(figure) } else { None });
    let named =
        |(at, figure): (usize, &figure::Figure)| (format!("{:02}-{}.svg", at + 1, slug(&figure.title)), svg(figure));
    Ok(figures.enumerate().map(named).collect())
}

/// A title as part of a file's name.
fn slug(title: &str) -> String {
    let letters = title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let words: String = letters.collect();
    words.split('-').filter(|word| !word.is_empty()).take(8).collect::<Vec<_>>().join("-")
}

/// What a results file shows.
fn page_of(results: &ResultsFile) -> Result<Page, ReportError> {
    if results.runs.is_empty() && results.hotness.is_empty() {
        return Err(ReportError::NoRuns);
    }
    match &results.experiment {
        Some(experiment) => match &experiment.hotness {
            Some(asked) => Ok(hotness::page(results, experiment, asked)),
            None => sweep::page(results, experiment),
        },
        None => runs::page(results),
    }
}

/// A page of any content, as the text of one HTML file.
///
/// # Errors
/// A figure holds a number that JSON cannot.
pub fn render_page(page: &Page) -> Result<String, ReportError> {
    html::document(page)
}
