//! Writes a [`Page`] as one HTML file. Text is escaped here and nowhere else: every string of the page model is plain text.

use crate::error::ReportError;
use crate::figure::Figure;
use crate::page::{Block, Cell, Code, Column, Fact, Notice, Page, Section, Table, Tone};
use crate::ranges::{self, Ranges};
use serde::Serialize;

const STYLE: &str = include_str!("assets/page.css");
const CHART_LIBRARY: &str = include_str!("assets/echarts/echarts.min.js");
const CHARTS: &str = include_str!("assets/charts.js");
const TABLES: &str = include_str!("assets/tables.js");

/// Forbids the page any connection, so that a report can be opened without a thought about what it might send.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The text of the file.
pub(crate) fn document(page: &Page) -> Result<String, ReportError> {
    let mut figures = Vec::new();
    let mut body = String::new();
    for (index, section) in page.sections.iter().enumerate() {
        write_section(&mut body, section, index, &mut figures);
    }
    let data = script_json(&figures)?;
    let contents: String = page
        .sections
        .iter()
        .enumerate()
        .map(|(i, s)| format!("<li><a href=\"#section-{i}\">{}</a></li>", escape(&s.title)))
        .collect();
    let title = escape(&page.title);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"lead\">{lead}</p>\n</header>\n\
         <nav aria-label=\"Contents\"><ul>{contents}</ul></nav>\n<main>\n\
         <noscript><p class=\"notice bad\">The charts need JavaScript; the text and the table do not.</p></noscript>\n\
         {body}</main>\n<footer><p>Made by isotherm {version}. Nothing on this page is fetched from a network.</p></footer>\n\
         <script type=\"application/json\" id=\"figures\">{data}</script>\n\
         <script>\n{CHART_LIBRARY}\n</script>\n<script>\n{TABLES}</script>\n<script>\n{CHARTS}</script>\n</body>\n</html>\n",
        lead = escape(&page.lead),
        version = escape(&page.version),
    ))
}

/// Text as it may stand in HTML, inside elements and attributes.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // HTML has no way to write other control characters; a reader must still see that one was there.
            c if c.is_control() && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// A figure as the script draws it.
#[derive(Serialize)]
struct Drawn<'a> {
    #[serde(flatten)]
    figure: &'a Figure,
    /// For each panel, what its axes show.
    ranges: Vec<Ranges>,
}

/// JSON that cannot end the script element it stands in.
fn script_json(figures: &[&Figure]) -> Result<String, ReportError> {
    let drawn: Vec<Drawn> = figures.iter().map(|figure| Drawn { figure, ranges: ranges::of(figure) }).collect();
    Ok(serde_json::to_string(&drawn)?.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
}

fn write_section<'a>(out: &mut String, section: &'a Section, index: usize, figures: &mut Vec<&'a Figure>) {
    out.push_str(&format!("<section aria-labelledby=\"section-{index}\">\n"));
    out.push_str(&format!("<h2 id=\"section-{index}\">{}</h2>\n", escape(&section.title)));
    for block in &section.blocks {
        match block {
            Block::Text(text) => out.push_str(&format!("<p>{}</p>\n", escape(text))),
            Block::List(items) => write_list(out, items),
            Block::Notice(notice) => write_notice(out, notice),
            Block::Facts(facts) => write_facts(out, facts),
            Block::Table(table) => write_table(out, table),
            Block::Code(code) => write_code(out, code),
            Block::Figure(figure) => {
                write_figure(out, figure, figures.len());
                figures.push(figure);
            }
        }
    }
    out.push_str("</section>\n");
}

/// Escaped text in which no line breaks behind the hyphens of an option.
fn with_whole_options(text: &str) -> String {
    let word = |word: &str| match word.trim_end().starts_with("--") {
        true => format!("<span class=\"option\">{}</span>{}", word.trim_end(), &word[word.trim_end().len()..]),
        false => word.to_owned(),
    };
    text.split_inclusive(' ').map(word).collect()
}

fn write_list(out: &mut String, items: &[String]) {
    let items: String = items.iter().map(|i| format!("<li>{}</li>", with_whole_options(&escape(i)))).collect();
    out.push_str(&format!("<ul>{items}</ul>\n"));
}

fn write_notice(out: &mut String, notice: &Notice) {
    let (class, sign) = match notice.tone {
        Tone::Good => ("good", "\u{2713}"),
        Tone::Bad => ("bad", "\u{26a0}\u{fe0e}"),
    };
    let title = escape(&notice.title);
    out.push_str(&format!("<div class=\"notice {class}\"><p><span aria-hidden=\"true\">{sign}</span> {title}</p>"));
    if !notice.reasons.is_empty() {
        write_list(out, &notice.reasons);
    }
    out.push_str("</div>\n");
}

fn write_facts(out: &mut String, facts: &[Fact]) {
    out.push_str("<dl class=\"facts\">");
    for fact in facts {
        out.push_str(&format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(&fact.name), escape(&fact.value)));
    }
    out.push_str("</dl>\n");
}

fn write_code(out: &mut String, code: &Code) {
    let (title, text) = (escape(&code.title), escape(&code.text));
    let body = format!(
        "<div class=\"code\"><button type=\"button\" class=\"copy\">Copy</button><pre tabindex=\"0\"><code>{text}</code></pre></div>"
    );
    if code.folded {
        out.push_str(&format!("<details><summary>{title}</summary>{body}</details>\n"));
    } else {
        out.push_str(&format!("<h3>{title}</h3>\n{body}\n"));
    }
}

/// The chart itself is drawn by the script; what stands here is its frame, its caption and the place of its table.
fn write_figure(out: &mut String, figure: &Figure, index: usize) {
    out.push_str(&format!(
        "<figure id=\"figure-{index}\" data-figure=\"{index}\">\n<h3>{}</h3>\n",
        escape(&figure.title)
    ));
    let many = if figure.panels.len() > 1 { " many" } else { "" };
    out.push_str(&format!("<div class=\"legend\" data-legend></div>\n<div class=\"panels{many}\">\n"));
    for (i, panel) in figure.panels.iter().enumerate() {
        out.push_str("<div class=\"panel\">");
        if !panel.title.is_empty() {
            out.push_str(&format!("<h4>{}</h4>", escape(&panel.title)));
        }
        let label =
            if panel.title.is_empty() { figure.title.clone() } else { format!("{}: {}", figure.title, panel.title) };
        out.push_str(&format!(
            "<div class=\"chart\" role=\"img\" aria-label=\"{}\" data-panel=\"{i}\"></div></div>\n",
            escape(&label)
        ));
    }
    out.push_str(&format!("</div>\n<figcaption>{}</figcaption>\n", escape(&figure.caption)));
    out.push_str("<details data-numbers><summary>The numbers as a table</summary><div class=\"numbers\"></div></details>\n</figure>\n");
}

fn write_table(out: &mut String, table: &Table) {
    let [title, caption] = [&table.title, &table.caption].map(|text| escape(text));
    if !title.is_empty() {
        out.push_str(&format!("<h3>{title}</h3>\n"));
    }
    // The note stands above what scrolls: it is read as text is, however wide the table and however small the screen.
    let label = if title.is_empty() { &caption } else { &title };
    out.push_str(&format!(
        "<p class=\"note\">{caption}</p>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\"><table class=\"sortable\" aria-label=\"{label}\">\n<thead>\n"
    ));
    write_groups(out, &table.columns);
    out.push_str("<tr>");
    for column in &table.columns {
        let unit =
            if column.unit.is_empty() { String::new() } else { format!("<small>{}</small>", escape(&column.unit)) };
        out.push_str(&format!(
            "<th scope=\"col\"><button type=\"button\">{}{unit}</button></th>",
            escape(&column.title)
        ));
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            write_cell(out, cell, i == 0);
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

/// The row of headings that several columns share; none where no column has one.
fn write_groups(out: &mut String, columns: &[Column]) {
    if columns.iter().all(|c| c.group.is_empty()) {
        return;
    }
    out.push_str("<tr class=\"groups\">");
    let mut rest = columns;
    while let Some(first) = rest.first() {
        let span = rest.iter().take_while(|c| c.group == first.group).count();
        if first.group.is_empty() {
            out.push_str(&format!("<td colspan=\"{span}\"></td>"));
        } else {
            out.push_str(&format!("<th scope=\"colgroup\" colspan=\"{span}\">{}</th>", escape(&first.group)));
        }
        rest = &rest[span..];
    }
    out.push_str("</tr>\n");
}

fn write_cell(out: &mut String, cell: &Cell, heads_row: bool) {
    let number = cell.value.map_or_else(String::new, |v| format!(" data-value=\"{v}\""));
    let key = if cell.key.is_empty() { String::new() } else { format!(" data-key=\"{}\"", escape(&cell.key)) };
    let (open, close) = if heads_row { ("th scope=\"row\"", "th") } else { ("td", "td") };
    // Names of policies have no spaces to break at.
    let text = if heads_row { escape(&cell.text).replace('_', "_<wbr>") } else { escape(&cell.text) };
    out.push_str(&format!("<{open}{key}{number}>{text}</{close}>"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Bars, Chart, Panel};

    #[test]
    fn hostile_text_stays_text_everywhere() {
        let evil = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"&";
        let bars = Bars { categories: vec![evil.into()], category_label: evil.into(), ..Bars::default() };
        let panel = Panel::new(evil, Chart::Bars(bars));
        let figure = Figure { title: evil.into(), caption: evil.into(), panels: vec![panel] };
        let table = Table {
            title: evil.into(),
            caption: evil.into(),
            columns: vec![Column { group: evil.into(), title: evil.into(), unit: evil.into() }],
            rows: vec![vec![Cell { text: evil.into(), value: Some(1.5), key: evil.into() }]],
        };
        let code = Code { title: evil.into(), text: evil.into(), folded: true };
        let notice = Notice { tone: Tone::Bad, title: evil.into(), reasons: vec![evil.into()] };
        let blocks = vec![
            Block::Text(evil.into()),
            Block::List(vec![evil.into()]),
            Block::Notice(notice),
            Block::Facts(vec![Fact::new(evil, evil)]),
            Block::Table(table),
            Block::Code(code),
            Block::Figure(figure),
        ];
        let page = Page {
            title: evil.into(),
            lead: evil.into(),
            version: evil.into(),
            sections: vec![Section::new(evil, blocks)],
        };
        let html = document(&page).unwrap();
        assert!(!html.contains("alert(1)</script>"), "a text ended the element it stands in");
        assert!(!html.contains("<img src=x"), "a text became an element");
        assert!(html.contains("&lt;img src=x onerror=&#39;alert(2)&#39;&gt;"));
        // One element for each script of the template, none added by the texts.
        assert_eq!(html.matches("<script").count(), 4);
    }

    #[test]
    fn an_option_is_one_word() {
        let told = with_whole_options(&escape("use --repeat 8, a - b, or <--x"));
        assert_eq!(told, "use <span class=\"option\">--repeat</span> 8, a - b, or &lt;--x");
    }

    #[test]
    fn a_control_character_is_shown_as_a_replacement() {
        assert_eq!(escape("a\u{0}b\tc"), "a\u{fffd}b\tc");
    }
}
