//! What a report holds: sections of text, tables and figures, without a word on how they look.

use crate::figure::Figure;

/// A whole report.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title of the document and its first heading.
    pub title: String,
    /// The answer, in a sentence or two under the title; lines stay apart.
    pub lead: String,
    /// Version of isotherm that made the results, for the foot of the page.
    pub version: String,
    /// The parts, in reading order.
    pub sections: Vec<Section>,
}

/// A part of a report under a heading of its own.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// What stands under it.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section that holds `blocks`.
    pub fn new(title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { title: title.into(), blocks }
    }
}

/// One element of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph of text.
    Text(String),
    /// A short list of sentences.
    List(Vec<String>),
    /// A judgement that a reader must not miss.
    Notice(Notice),
    /// Names with their values, such as the trace in numbers.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// Charts with a caption.
    Figure(Figure),
    /// Text to copy: a command, a specification.
    Code(Code),
}

/// Whether a notice is good news.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// All is as it must be.
    Good,
    /// Something takes the meaning from the numbers.
    Bad,
}

/// A judgement with its reasons.
#[derive(Clone, Debug)]
pub struct Notice {
    /// Good or bad.
    pub tone: Tone,
    /// The judgement, in a sentence.
    pub title: String,
    /// Reasons, each in a sentence.
    pub reasons: Vec<String>,
}

/// A name and its value.
#[derive(Clone, Debug)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// Its value with the unit.
    pub value: String,
}

impl Fact {
    /// A fact.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// Text to copy.
#[derive(Clone, Debug)]
pub struct Code {
    /// What it is.
    pub title: String,
    /// The text itself.
    pub text: String,
    /// Shown only when the reader opens it: for long texts.
    pub folded: bool,
}

/// A table whose rows the reader can sort by any column.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its heading; empty where that of the section is enough.
    pub title: String,
    /// What the table holds, in a sentence.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// Rows, each with one cell for every column; the first cell names the row.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// Heading shared with the neighbours that have the same; empty for a column of its own.
    pub group: String,
    /// Heading.
    pub title: String,
    /// Unit of the numbers as shown, empty for texts and bare numbers.
    pub unit: String,
}

/// A cell: what the reader sees, and the number behind it.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// The number as `results.json` has it, for sorting and for checking the page; absent in cells of text.
    pub value: Option<f64>,
    /// Path of the number in `results.json`, from the run; empty in cells of text.
    pub key: String,
}

impl Cell {
    /// A cell of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}
