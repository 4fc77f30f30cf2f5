//! The report as a reader gets it: rendered to a file and opened in a real headless Chromium.

mod browser;
mod charts;
mod fixture;

use browser::Browser;
use isotherm_eval::results::{ResultsFile, TraceSummary};
use isotherm_report::render;
use serde_json::Value;
use std::path::PathBuf;

/// Writes the report of `results` and starts a browser for its address; none where there is no browser.
fn prepare(name: &str, results: &ResultsFile) -> Option<(String, Browser)> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("report.html");
    std::fs::write(&file, render(results).unwrap()).unwrap();
    Some((format!("file://{}", file.display()), Browser::start(&directory)?))
}

fn assert_quiet(browser: &mut Browser) {
    // An answer from the page comes after every event that it raised before.
    browser.evaluate("0");
    assert_eq!(browser.console, Vec::<String>::new(), "the console must stay empty");
    assert_eq!(browser.requests, Vec::<String>::new(), "the page must fetch nothing");
}

#[test]
fn every_panel_is_drawn_and_the_console_stays_empty() {
    let Some((file, mut browser)) = prepare("compare", &fixture::compare()) else { return };
    browser.open(&file, 1280, 900, "light");
    let panels = browser.evaluate("figures.reduce((n, f) => n + f.panels.length, 0)");
    assert_eq!(panels, 1 + 2 + 2 + 2 + 4 + 1, "by cause, over time, victims, erases, latency of two operations, heat");
    // A frame without data shows none of the palette's colours; a heat map has a shape for each cell instead.
    let coloured = "(() => { const style = getComputedStyle(document.documentElement); \
         const palette = new Set([0, 1, 2, 3, 4, 5, 6, 7].map(i => style.getPropertyValue('--s' + i).trim())); \
         return [...document.querySelectorAll('.chart')].map(c => { \
         const shapes = [...c.querySelectorAll('svg path')].filter(p => p.getBBox().width > 2); \
         const used = shapes.flatMap(p => [p.getAttribute('stroke'), p.getAttribute('fill')]).filter(x => palette.has(x)); \
         return shapes.length > 300 ? 300 : new Set(used).size; }); })()";
    let colours = browser.evaluate(coloured);
    let colours: Vec<u64> = colours.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert_eq!(Value::from(colours.len()), panels);
    assert!(colours.iter().all(|n| *n >= 2), "each chart shows two series or a grid of cells: {colours:?}");
    let sizes = "[...document.querySelectorAll('.chart')].every(c => c.clientHeight >= 200 && c.clientWidth >= 300)";
    assert_eq!(browser.evaluate(sizes), true);
    let named = "[...document.querySelectorAll('.chart')].every(c => c.getAttribute('aria-label').length > 5)";
    assert_eq!(browser.evaluate(named), true);
    assert_quiet(&mut browser);
}

#[test]
fn numbers_on_the_page_are_those_of_the_results() {
    let results = fixture::compare();
    let Some((file, mut browser)) = prepare("numbers", &results) else { return };
    browser.open(&file, 1280, 900, "light");
    let cells = browser.evaluate(
        "[...document.querySelectorAll('table.sortable tbody tr')].map(row => [row.cells[0].textContent, \
         [...row.querySelectorAll('[data-key]')].map(c => [c.dataset.key, c.dataset.value ?? null, c.textContent])])",
    );
    let rows = cells.as_array().unwrap();
    assert_eq!(rows.len(), results.runs.len());
    let mut checked = 0;
    for (row, run) in rows.iter().zip(&results.runs) {
        assert_eq!(row[0], run.label.as_str(), "rows stand in the order of the results");
        let json = serde_json::to_value(run).unwrap();
        for cell in row[1].as_array().unwrap() {
            let path = cell[0].as_str().unwrap();
            let expected = path.split('.').fold(&json, |at, key| &at[key]);
            let shown = cell[1].as_str().map(|text| text.parse::<f64>().unwrap());
            assert_eq!(shown, expected.as_f64(), "{path} of {}", run.label);
            checked += 1;
        }
    }
    assert!(checked >= 20 * rows.len(), "only {checked} numbers were checked");

    // What people read is the same number, rounded; and the chart ends each stack with it.
    let wa = results.runs[0].write_amplification.unwrap();
    let shown = browser.evaluate("document.querySelector('[data-key=write_amplification]').textContent");
    assert_eq!(shown.as_str().unwrap(), format!("{wa:.3}"));
    let own = browser.evaluate("[...document.querySelectorAll('[data-key=write_amplification]')].every(c => c.textContent === formatNumber(Number(c.dataset.value)))");
    assert_eq!(own, true, "tables and charts write the same number in the same way");
    let labels = browser.evaluate("[...document.querySelectorAll('#figure-0 svg text')].map(t => t.textContent)");
    assert!(labels.as_array().unwrap().contains(&Value::from(format!("{wa:.3}"))), "{labels}");
    let parts = browser.evaluate("figures[0].panels[0].chart.series.map(s => s.values[0]).reduce((a, b) => a + b, 0)");
    assert!((parts.as_f64().unwrap() - wa).abs() < 1e-9, "the parts sum to the write amplification");

    // The table beside a chart holds the chart's numbers.
    browser.evaluate("document.querySelector('#figure-0 details').open = true");
    let rows = browser.evaluate("[1].map(() => figures[0].panels[0].chart.categories.length)[0]");
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(browser.evaluate("document.querySelectorAll('#figure-0 .numbers tbody tr').length"), rows);
    assert_quiet(&mut browser);
}

#[test]
fn each_trace_has_an_answer_of_its_own() {
    let mut results = fixture::compare();
    let trace = |run: &mut isotherm_eval::RunResult, name: &str| {
        run.trace = format!("captures/{name}.csv");
        run.label = format!("{name}: {}", run.label);
        run.axes.insert("trace".to_owned(), Value::from(name));
    };
    // One trace writes twice as much as the other under each device.
    let mut mail = results.runs.clone();
    for run in &mut mail {
        run.write_amplification = run.write_amplification.map(|wa| 2.0 * wa);
        trace(run, "mail");
    }
    results.runs.iter_mut().for_each(|run| trace(run, "shop"));
    results.runs.extend(mail);
    let html = render(&results).unwrap();
    assert!(html.contains("<h1>6 devices under shop, mail</h1>"), "what runs under two traces is one device");
    let lead = html.split("<p class=\"lead\">").nth(1).unwrap().split("</p>").next().unwrap();
    let lines: Vec<&str> = lead.lines().collect();
    assert_eq!(lines.len(), 2, "{lead}");
    let less = |line: &str| line.split(" less than").next().unwrap().rsplit(", ").next().unwrap().to_owned();
    for (line, (name, other)) in lines.iter().zip([("shop: ", "mail"), ("mail: ", "shop")]) {
        assert!(line.starts_with(name) && line.contains(" writes least: "), "{line}");
        assert!(!line.contains(other), "a trace is compared with another: {line}");
        assert_eq!(line.matches(name).count(), 1, "the trace is named once: {line}");
    }
    assert_eq!(less(lines[0]), less(lines[1]), "twice of everything is the same gain");
    // Bars and lines of a trace stand together, under short titles.
    let figures = figures_of(&html);
    assert_eq!(titles(&figures, "Write amplification by cause"), ["shop", "mail"]);
    let over_time = titles(&figures, "Write amplification over time");
    let [greedy, other] =
        ["greedy", "cost_benefit"].map(|victim| over_time.iter().position(|t| *t == format!("shop, {victim}")));
    assert!(greedy < Some(2) && other < Some(2) && over_time.len() == 4, "{over_time:?}");
    assert_eq!(over_time[2], over_time[0].replace("shop", "mail"), "panels of each trace are in the same order");
}

/// The figures of a page, as its script has them.
fn figures_of(html: &str) -> Vec<Value> {
    let json = html.split("id=\"figures\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(json).unwrap()
}

fn figure_of<'a>(figures: &'a [Value], title: &str) -> &'a Value {
    figures.iter().find(|figure| figure["title"] == title).unwrap()
}

/// The titles of a figure's panels.
fn titles(figures: &[Value], title: &str) -> Vec<String> {
    let panels = figure_of(figures, title)["panels"].as_array().unwrap();
    panels.iter().map(|panel| panel["title"].as_str().unwrap().to_owned()).collect()
}

/// Several values of over-provisioning under two traces, one of which writes four times as much.
#[test]
fn space_is_compared_within_a_trace() {
    let mut results = fixture::compare();
    let runs = std::mem::take(&mut results.runs);
    for (trace, times) in [("shop", 1.0), ("mail", 4.0)] {
        for (op, share) in [("7 %", 0.07), ("28 %", 0.28)] {
            results.runs.extend(runs.iter().cloned().map(|mut run| {
                run.label = format!("{trace}: {}, OP {op}", run.label);
                run.axes.insert("trace".to_owned(), Value::from(trace));
                run.axes.insert("over_provisioning".to_owned(), Value::from(format!("OP {op}")));
                run.device.over_provisioning = share;
                run.write_amplification = run.write_amplification.map(|wa| times * wa);
                run
            }));
        }
    }
    let figures = figures_of(&render(&results).unwrap());
    let space = figure_of(&figures, "Write amplification against over-provisioning");
    let panels = space["panels"].as_array().unwrap();
    let victims = ["greedy", "cost_benefit"];
    let found = titles(&figures, "Write amplification against over-provisioning");
    assert_eq!(found.len(), 4, "{found:?}");
    for (at, title) in found.iter().enumerate() {
        let trace = if at < 2 { "shop" } else { "mail" };
        assert!(victims.iter().any(|victim| *title == format!("{trace}, {victim}")), "{found:?}");
        let series = panels[at]["chart"]["series"].as_array().unwrap();
        let names: Vec<&str> = series.iter().map(|line| line["name"].as_str().unwrap()).collect();
        assert_eq!(names.len(), 3, "a line for each placement: {names:?}");
        assert!(series.iter().all(|line| line["points"].as_array().unwrap().len() == 2));
    }
    let most = |at: usize| space["ranges"][at]["y"][1].as_f64().unwrap();
    assert_eq!(most(0), most(1), "panels of a trace can be compared");
    assert!((most(2) / most(0) - 4.0).abs() < 1e-9, "each trace has a scale of its own");
}

/// Reads are faster than writes, and their axes end where they do.
#[test]
fn axes_of_latency_end_with_the_requests_of_their_kind() {
    let mut results = fixture::compare();
    for run in &mut results.runs {
        let reads = &mut run.latency_distribution.read;
        reads.truncate(reads.len() - 2);
    }
    let figures = figures_of(&render(&results).unwrap());
    let latency = figure_of(&figures, "Latency");
    let panels = latency["panels"].as_array().unwrap();
    let slowest = |panel: &Value| {
        let series = panel["chart"]["series"].as_array().unwrap();
        let points = series.iter().flat_map(|line| line["points"].as_array().unwrap());
        points.map(|point| point[0].as_f64().unwrap()).fold(0.0, f64::max)
    };
    let mut ends = Vec::new();
    for kind in ["Write", "Read"] {
        let is_kind = |at: &usize| panels[*at]["chart"]["x"]["label"] == format!("{kind} latency");
        let of_kind: Vec<usize> = (0..panels.len()).filter(is_kind).collect();
        let end = of_kind.iter().map(|at| slowest(&panels[*at])).fold(0.0, f64::max);
        assert!(of_kind.iter().all(|at| latency["ranges"][*at]["x"][1] == end), "{kind}: {end}, {}", latency["ranges"]);
        ends.push(end);
    }
    assert!(ends[1] < ends[0], "the test needs reads that are faster: {ends:?}");
}

/// What `compare --seeds 3` writes: the report is about means.
#[test]
fn seeds_are_taken_together() {
    let mut results = fixture::compare();
    for run in &mut results.runs {
        (run.verdict.valid, run.verdict.reasons) = (true, Vec::new());
    }
    let first = std::mem::take(&mut results.runs);
    for run in &first {
        results.runs.extend((1..=3u64).map(|seed| {
            let mut run = run.clone();
            run.seed = seed;
            run.axes.insert("seed".to_owned(), Value::from(seed));
            run.trace = if seed == 1 { run.trace } else { format!("{}, seed {seed}", run.trace) };
            run.write_amplification = run.write_amplification.map(|wa| wa * (0.9 + 0.1 * seed as f64));
            run
        }));
    }
    let draw = |seed| TraceSummary { name: format!("{}, seed {seed}", fixture::EVIL), ..results.traces[0].clone() };
    let draws = [draw(2), draw(3)];
    results.traces.extend(draws);
    results.replicates = isotherm_eval::compare::replicates(&results.runs);
    let Some((file, mut browser)) = prepare("seeds", &results) else { return };
    browser.open(&file, 1280, 900, "light");
    let text = |browser: &mut Browser, selector: &str| {
        browser.evaluate(&format!("document.querySelector('{selector}').textContent")).as_str().unwrap().to_owned()
    };
    assert_eq!(text(&mut browser, "h1"), format!("6 devices under {}, 3 seeds", fixture::EVIL));
    let lead = text(&mut browser, ".lead");
    let best = &results
        .replicates
        .iter()
        .map(|device| device.values["write_amplification"])
        .reduce(|a, b| if b.mean < a.mean { b } else { a });
    let best = best.unwrap();
    let told = format!("{:.3} \u{b1} {:.3}", best.mean, best.confidence_95.unwrap());
    assert!(
        lead.contains(&told) && lead.ends_with("(means of 3 seeds, with 95 % confidence intervals)."),
        "{told}: {lead}"
    );
    assert_eq!(lead.matches("writes least").count(), 1, "{lead}");
    let halves = browser.evaluate("figures[0].panels[0].chart.intervals");
    let halves: Vec<f64> = halves.as_array().unwrap().iter().map(|half| half.as_f64().unwrap()).collect();
    assert!(
        halves.len() == 6 && halves.iter().any(|half| (half - best.confidence_95.unwrap()).abs() < 1e-12),
        "{halves:?}"
    );
    let captions = browser.evaluate("figures.map(f => [f.title, f.caption])");
    for caption in captions.as_array().unwrap() {
        let [title, caption] = [0, 1].map(|at| caption[at].as_str().unwrap());
        let said = if title.ends_with("by cause") { "Means over 3 seeds" } else { "Of the 3 seeds of a device" };
        assert!(caption.contains(said), "{title}: {caption}");
    }
    let seeds =
        browser.evaluate("[...document.querySelectorAll('[data-key=seed]')].slice(0, 4).map(c => c.textContent)");
    assert_eq!(seeds, serde_json::json!(["1", "2", "3", "1"]), "the table of runs tells seeds apart");
    let headings =
        browser.evaluate("[...document.querySelectorAll('section:nth-of-type(2) h3')].map(h => h.textContent)");
    assert_eq!(headings, serde_json::json!(["Means over seeds", "Each run"]), "one table ends where the next begins");
    assert_quiet(&mut browser);
}

#[test]
fn the_table_sorts_by_any_column() {
    let Some((file, mut browser)) = prepare("sorting", &fixture::compare()) else { return };
    browser.open(&file, 1280, 900, "light");
    let heading = "[...document.querySelectorAll('table.sortable th[scope=col]')].find(h => h.textContent.startsWith('write throughput'))";
    let values = "[...document.querySelectorAll('[data-key=write_throughput_bytes_per_second]')].map(c => Number(c.dataset.value))";
    let numbers = |value: Value| value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect::<Vec<_>>();
    for (press, sign) in [("ascending", 1.0), ("descending", -1.0)] {
        browser.evaluate(&format!("{heading}.querySelector('button').click()"));
        assert_eq!(browser.evaluate(&format!("{heading}.getAttribute('aria-sort')")), press);
        let found = numbers(browser.evaluate(values));
        assert!(found.windows(2).all(|w| sign * (w[1] - w[0]) >= 0.0), "{press}: {found:?}");
    }
    assert_quiet(&mut browser);
}

#[test]
fn it_fits_a_phone_follows_the_dark_and_prints_on_white() {
    let Some((file, mut browser)) = prepare("phone", &fixture::compare()) else { return };
    browser.open(&file, 390, 844, "light");
    assert_eq!(
        browser.evaluate("document.documentElement.scrollWidth"),
        390,
        "nothing may stick out of a phone's screen"
    );
    // What a note says of a table is read without scrolling the table, at any width.
    for width in [390, 1280] {
        browser.open(&file, width, 844, "light");
        let outside = "[...document.querySelectorAll('.note')].filter(n => n.closest('.scroll') || n.scrollWidth > n.clientWidth || \
                       n.getBoundingClientRect().right > document.documentElement.clientWidth).length";
        assert_eq!(browser.evaluate(outside), 0, "at {width} pixels");
    }
    browser.open(&file, 390, 844, "light");
    let paper = "getComputedStyle(document.documentElement).backgroundColor";
    let ink = "document.querySelector('#figure-0 svg text').getAttribute('fill')";
    // Charts are drawn anew after the event that asks for it: on a busy machine that takes a moment.
    let settle = |browser: &mut Browser, done: &dyn Fn(&(Value, Value)) -> bool| {
        let mut colours = (browser.evaluate(paper), browser.evaluate(ink));
        for _ in 0..100 {
            if done(&colours) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            colours = (browser.evaluate(paper), browser.evaluate(ink));
        }
        colours
    };
    let light = settle(&mut browser, &|_| true);
    browser.scheme("dark");
    let dark = settle(&mut browser, &|now| now.0 != light.0 && now.1 != light.1);
    assert!(light.0 != dark.0 && light.1 != dark.1, "page and charts follow the colour scheme: {light:?} {dark:?}");
    browser.evaluate("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(settle(&mut browser, &|now| *now == light), light, "paper is white");
    browser.evaluate("dispatchEvent(new Event('afterprint'))");
    assert_eq!(settle(&mut browser, &|now| *now == dark), dark);
    assert_quiet(&mut browser);
}

#[test]
fn names_from_users_stay_text() {
    let Some((file, mut browser)) = prepare("hostile", &fixture::compare()) else { return };
    browser.open(&file, 1280, 900, "light");
    assert_eq!(browser.evaluate("typeof window.broken"), "undefined", "a name ran as a script");
    let title = browser.evaluate("document.querySelector('h1').textContent");
    assert!(title.as_str().unwrap().contains(fixture::EVIL), "the title shows the name as it is: {title}");
    assert_eq!(browser.evaluate("document.images.length"), 0);
    assert_quiet(&mut browser);
}

#[test]
fn a_summary_has_a_row_for_each_published_number_and_the_pictures_asked_for() {
    let results = fixture::experiment();
    let summary = isotherm_report::summary::of(&[("epoch".into(), results)]).unwrap();
    let rows: Vec<&str> = summary.page.lines().filter(|line| line.starts_with("| [Epoch](epoch.toml)")).collect();
    assert_eq!(rows.len(), 2, "{}", summary.page);
    assert!(rows[0].contains("collections \\| page mapping"), "{}", rows[0]);
    assert!(rows[0].ends_with("| 0.6720 | 0.7000 | 1.042 | unproven, 1 of 4 runs not valid (agrees) |"), "{}", rows[0]);
    assert!(rows[1].ends_with("| not run: its trace is not at hand |"), "{}", rows[1]);
    let (name, picture) = &summary.pictures[0];
    assert_eq!((summary.pictures.len(), name.as_str()), (1, "collections.svg"));
    assert!(picture.contains("Figure 5: garbage collections") && summary.page.contains("](figures/collections.svg)"));
}

/// As a README shows it, in an `img`: what stands on the page beside it has no say.
#[test]
fn a_picture_is_dark_on_a_dark_screen() {
    let results = fixture::experiment();
    let (_, picture) = isotherm_report::summary::of(&[("epoch".into(), results)]).unwrap().pictures.remove(0);
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dark");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("picture.svg"), picture).unwrap();
    let page = "<!DOCTYPE html><meta name=\"color-scheme\" content=\"light dark\"><img src=\"picture.svg\">";
    std::fs::write(directory.join("page.html"), page).unwrap();
    let Some(mut browser) = Browser::start(&directory) else { return };
    let mut corner = |scheme: &str| {
        browser.open(&format!("file://{}", directory.join("page.html").display()), 800, 600, scheme);
        let clip = serde_json::json!({ "x": 20, "y": 10, "width": 2, "height": 2, "scale": 1 });
        let shot = browser.call("Page.captureScreenshot", serde_json::json!({ "format": "png", "clip": clip }));
        shot["data"].as_str().unwrap().to_owned()
    };
    let [light, dark, light_again] = ["light", "dark", "light"].map(&mut corner);
    assert!(light == light_again && light != dark, "the paper is the same in both");
}

#[test]
fn figures_of_one_name_are_one_picture_under_their_paper() {
    let mut results = fixture::experiment();
    let experiment = results.experiment.as_mut().unwrap();
    let copies = isotherm_eval::results::Figure {
        title: "Figure 5: pages copied".into(),
        y: "gc_pages_copied".into(),
        published: Vec::new(),
        ..experiment.figures[0].clone()
    };
    experiment.figures.push(copies);
    for figure in &mut experiment.figures {
        figure.picture_only = serde_json::from_value(serde_json::json!({ "placement": "epoch" })).unwrap();
    }
    let mut beyond = isotherm_eval::results::Experiment { paper: String::new(), ..experiment.clone() };
    for name in beyond.figures.iter_mut().filter_map(|figure| figure.picture.as_mut()) {
        *name = "own".into();
    }
    let own = ResultsFile { experiment: Some(beyond), ..results.clone() };
    let summary = isotherm_report::summary::of(&[("own".into(), own), ("epoch".into(), results)]).unwrap();
    let names: Vec<&str> = summary.pictures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["own.svg", "collections.svg"], "one for each experiment");
    let picture = &summary.pictures[0].1;
    for text in [">Figure 5 (placement: epoch)<", ">garbage collections<", ">pages copied<", ">epoch<"] {
        assert_eq!(picture.matches(text).count(), 1, "{text}: {picture}");
    }
    assert!(!picture.contains(">host_gc<"), "only what the picture is to show: {picture}");
    let places = ["## Beyond the papers\n", "\n## Epoch\n"].map(|heading| summary.page.find(heading).unwrap());
    assert!(places[0] < places[1] && summary.page.matches("### Figure 5 (placement: epoch)").count() == 2);
    let note = "From [epoch.toml](epoch.toml). Ours saves more, because the footprint is smaller.";
    assert!(summary.page.contains(note), "{}", summary.page);
}

/// The parts are more than the palette has colours, but some are nought in every run: the others need not share one.
#[test]
fn parts_that_are_nought_take_no_colour() {
    let mut results = fixture::experiment();
    let figure = &mut results.experiment.as_mut().unwrap().figures[0];
    (figure.kind, figure.x, figure.relative_to) = (isotherm_eval::results::FigureKind::Parts, "victim".into(), None);
    (figure.series, figure.y) = (Some("placement".into()), "flash_time_by_work_ns".into());
    figure.published = Vec::new();
    let parts = serde_json::to_value(&results.runs[0]).unwrap()["flash_time_by_work_ns"].clone();
    let parts = parts.as_object().unwrap();
    assert!(parts.keys().nth(8).unwrap() == "erase" && parts["erase"] != 0 && parts["map_read"] == 0, "{parts:?}");
    let picture = &isotherm_report::summary::of(&[("epoch".into(), results)]).unwrap().pictures[0].1;
    let attribute = |rect: &str, key: &str| rect.split(&format!(" {key}=\"")).nth(1).map(|rest| rest[..7].to_owned());
    let bars = picture.lines().filter(|line| line.starts_with("<rect") && line.contains("stroke="));
    let framed: Vec<&str> = bars.filter(|bar| attribute(bar, "fill") != attribute(bar, "stroke")).collect();
    assert!(picture.contains(">erase<") && framed.is_empty(), "a colour of a second round: {framed:?}");
}

/// As without the captures that an experiment's traces are in: the rows say that nothing was run, and nothing is drawn.
#[test]
fn a_picture_whose_runs_are_not_there_is_left_out() {
    let mut results = fixture::experiment();
    let figure = &mut results.experiment.as_mut().unwrap().figures[0];
    figure.picture_only = serde_json::from_value(serde_json::json!({ "placement": "left out" })).unwrap();
    let summary = isotherm_report::summary::of(&[("epoch".into(), results)]).unwrap();
    assert!(summary.pictures.is_empty() && !summary.page.contains("##"), "{}", summary.page);
    assert!(summary.page.contains("| Figure 5 |"), "{}", summary.page);
}

/// A published place along x, such as that of an optimum, is an upright line in its own panel alone.
#[test]
fn a_published_place_along_x_stands_upright_in_its_panel() {
    let mut results = fixture::experiment();
    for (at, run) in results.runs.iter_mut().enumerate() {
        run.axes.insert("share".into(), ((at + 1) as f64).into());
    }
    let experiment = results.experiment.as_mut().unwrap();
    let place = isotherm_eval::results::Published {
        label: "best share".into(),
        value: 2.5,
        upright: true,
        x: None,
        series: None,
        only: serde_json::from_value(serde_json::json!({ "victim": "greedy" })).unwrap(),
        ..experiment.figures[0].published[0].clone()
    };
    experiment.figures = vec![isotherm_eval::results::Figure {
        kind: isotherm_eval::results::FigureKind::Lines,
        x: "share".into(),
        relative_to: None,
        published: vec![place],
        ..experiment.figures[0].clone()
    }];
    let picture = &isotherm_report::summary::of(&[("epoch".into(), results)]).unwrap().pictures[0].1;
    let dotted: Vec<&str> =
        picture.lines().filter(|line| line.starts_with("<path d=\"M") && line.contains("\"2 2\"")).collect();
    let upright = |path: &&&str| {
        let numbers: Vec<&str> = path.split('"').nth(1).unwrap()[1..].split(['L', ' ']).collect();
        numbers.len() == 4 && numbers[0] == numbers[2] && numbers[1] != numbers[3]
    };
    assert_eq!(dotted.iter().filter(upright).count(), 1, "{picture}");
    assert_eq!(picture.matches(">best share (published)<").count(), 1, "and in the legend: {picture}");
}

/// What a picture leaves out is divided by all the same, and a line may be the mean of several runs.
#[test]
fn a_line_is_a_mean_relative_to_a_value_of_x() {
    let mut results = fixture::experiment();
    let victims = ["greedy", "cost_benefit"];
    for run in &mut results.runs {
        let at = victims.iter().position(|victim| run.axes["victim"] == *victim).unwrap();
        run.axes.insert("victim".into(), [10, 1000][at].into());
    }
    let experiment = results.experiment.as_mut().unwrap();
    let line = isotherm_eval::results::Figure {
        kind: isotherm_eval::results::FigureKind::Lines,
        relative_to: Some("1000".into()),
        mean: true,
        x_label: "victims looked at".into(),
        x_logarithmic: true,
        picture_only: serde_json::from_value(serde_json::json!({ "victim": 10 })).unwrap(),
        published: Vec::new(),
        ..experiment.figures[0].clone()
    };
    experiment.figures = vec![line];
    let page = render(&results).unwrap();
    let written = |text: &str| page.contains(text);
    assert!(written("mean over placement (3 runs), 95 % confidence") && written("victims looked at"));
    let picture = &isotherm_report::summary::of(&[("epoch".into(), results.clone())]).unwrap().pictures[0].1;
    let counts = |victim: i64| {
        let of = results.runs.iter().filter(move |run| run.axes["victim"] == victim);
        of.map(|run| (run.axes["placement"].clone(), run.gc_count as f64)).collect::<Vec<_>>()
    };
    let base = counts(1000);
    let ratios = counts(10).into_iter().map(|(name, count)| count / base.iter().find(|b| b.0 == name).unwrap().1);
    let estimate = isotherm_eval::estimate(&ratios.collect::<Vec<_>>()).unwrap();
    assert!(estimate.mean != 1.0 && estimate.confidence_95.unwrap() > 0.0);
    assert_eq!(picture.matches("<circle").count(), 1, "one point: {picture}");
    let points = page.split("\"points\":[[10.0,").nth(1).unwrap().split(']').next().unwrap();
    assert!((points.parse::<f64>().unwrap() - estimate.mean).abs() < 1e-12, "{points}");
}

#[test]
fn an_experiment_shows_published_numbers_beside_ours() {
    let results = fixture::experiment();
    let Some((file, mut browser)) = prepare("experiment", &results) else { return };
    browser.open(&file, 1280, 900, "light");
    let series = browser.evaluate("figures[0].panels[0].chart.series.map(s => [s.name, s.origin, s.slot, s.values])");
    let published = series.as_array().unwrap().iter().find(|s| s[1] == "published").unwrap();
    assert_eq!(published[0], "epoch (published)");
    assert!(published[3].as_array().unwrap().contains(&Value::from(0.672)));
    let reference = series.as_array().unwrap().iter().find(|s| s[0] == "single").unwrap();
    assert!(
        reference[3].as_array().unwrap().iter().all(|v| *v == 1.0),
        "numbers are relative to `single`: {reference}"
    );
    assert_eq!(browser.evaluate("figures[0].panels[0].chart.rules.map(r => r.value)[0]"), 0.9);
    assert_eq!(browser.evaluate("document.querySelectorAll('#figure-0 svg path').length > 5"), true);
    // A distribution has a panel for each x, and each outline sums to 100 %.
    assert_eq!(browser.evaluate("figures[1].panels.map(p => p.title).sort().join()"), "cost_benefit,greedy");
    let sums = browser.evaluate(
        "figures[1].panels.flatMap(p => p.chart.series.map(s => Math.round(s.values.reduce((a, b) => a + b))))",
    );
    assert_eq!(sums, serde_json::json!([100, 100, 100, 100, 100, 100]));
    let edges = browser.evaluate(
        "figures[1].panels[0].chart.series[0].edges.length - figures[1].panels[0].chart.series[0].values.length",
    );
    assert_eq!(edges, 1);
    // An agreement has one panel with a point for each run, and a line from the least to the largest number of both axes.
    let panel = browser.evaluate("figures[2].panels.length === 1 && figures[2].panels[0].chart");
    let series = panel["series"].as_array().unwrap();
    let points = |s: &Value| s["points"].as_array().unwrap().clone();
    let (line, runs) = series.split_last().unwrap();
    assert_eq!((&line["origin"], &line["name"], runs.len()), (&"theory".into(), &"y = x".into(), 3));
    let drawn: Vec<Value> = runs.iter().flat_map(points).collect();
    assert_eq!(drawn.len(), results.runs.len());
    let totals = || results.runs.iter().map(|run| run.pages_programmed_total);
    let (least, most) = (totals().min().unwrap(), totals().max().unwrap());
    assert_eq!(points(line), [serde_json::json!([least, least]), serde_json::json!([most, most])]);
    assert_quiet(&mut browser);
}
