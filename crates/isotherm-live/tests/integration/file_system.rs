//! What the page shows of a file system: other words, other ways of colouring, ratios, tables, a histogram.

use crate::fake::{EVIL, Fake};
use crate::page::{address, assert_quiet, prepare, press, wait_for};
use serde_json::json;

fn file_system() -> Fake {
    Fake { is_file_system: true, ..Fake::default() }
}

/// Whether the page has drawn so many samples, told by a number of its table of groups.
fn drawn(samples: u64) -> String {
    format!(
        "Number(document.querySelector('#tables tr:last-child td:last-child')?.dataset.value ?? 0) >= {}",
        30 + samples
    )
}

#[test]
fn figures_ratios_and_tables_are_those_of_the_source() {
    let Some((_, page, mut browser)) = prepare("file-system", file_system()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(&mut browser, &drawn(6));
    let tile = "key => document.querySelector(`[data-tile='${key}'] dd`)";
    let tiles = browser.evaluate(&format!(
        "['ratio/write cost', 'ratio/end to end', 'free', 'figure/space in use', 'figure/waiting'].map(key => ({tile})(key).textContent)"
    ));
    // 250 for 100, and 350 for 200 times 120 for 100.
    let texts = ["2.50", "2.10", "23\u{a0}cleaning 9", "63\u{a0}%", "3.00\u{a0}MiB"];
    assert_eq!(tiles, json!(texts));
    let legends = browser.evaluate(
        "Object.fromEntries(['ratio', 'event', 'free'].map(id => [id, [...document.querySelectorAll(`#${id}-chart .legend li`)].slice(1).map(li => li.textContent)]))",
    );
    assert_eq!(legends["ratio"], json!(["write cost 2.50", "end to end 2.10"]));
    assert_eq!(legends["event"], json!(["segments cleaned 6.00\u{a0}a\u{a0}second"]));
    assert_eq!(legends["free"], json!(["free segments 23", "cleaning 9", "reserve 4"]));
    let heading = browser.evaluate("document.querySelector('#tables h2').textContent");
    let note = browser.evaluate("document.querySelector('#tables .note').textContent");
    assert_eq!((heading, note), (json!("Groups of hotness"), json!(EVIL)));
    let rows = browser.evaluate("[...document.querySelectorAll('#tables tbody tr')].map(row => [...row.cells].slice(0, 2).map(c => c.textContent))");
    assert_eq!(rows, json!([["1 (coldest)", "1.2\u{a0}\u{d7}\u{a0}10\u{207b}\u{2075}"], ["2 (hottest)", "0.25"]]));
    let titles = browser
        .evaluate("['map', 'spread', 'free', 'victims'].map(id => document.getElementById(`${id}-title`).textContent)");
    assert_eq!(titles, json!(["Segment map", "Segments by utilisation", "Free segments", "Last cleaned"]));
    let hidden = browser.evaluate("[...document.querySelectorAll('main section')].filter(s => s.hidden).map(s => s.textContent.trim().split('\\n')[0])");
    assert_eq!(hidden, json!(["P99 latency", "Latencies since start", "Slowest recent requests"]), "it measures none");
    assert_eq!(browser.evaluate("document.getElementById('failure').hidden"), true);
    assert_quiet(&mut browser, &page);
}

#[test]
fn the_map_is_coloured_as_the_source_says() {
    let Some((_, page, mut browser)) = prepare("segments", file_system()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(&mut browser, "document.querySelectorAll('#map-legend > *').length > 0");
    let ways = browser.evaluate("[...document.querySelectorAll('#map-choice label')].map(label => label.textContent)");
    assert_eq!(ways, json!(["utilisation", "hotness", "age", "group", "state"]));
    let legend = "document.getElementById('map-legend').textContent.replaceAll('\u{a0}', ' ')";
    for (way, words) in [
        ("utilisation", "0 % live100 %"),
        // From an eighth on: the one before has nought, which has no logarithm.
        ("hotness", "hotness 0.130.94"),
        ("age", "age 0, written last6.00, written longest ago"),
        ("group", "group 0 (host)group 1free: 1"),
        ("state", "free: 1open: 1written: 13chosen to be cleaned"),
    ] {
        browser.evaluate(&format!("document.querySelector('input[value={way}]').click()"));
        let shown = browser.evaluate(legend);
        assert!(shown.as_str().unwrap().contains(words), "{way}: {shown}");
    }
    browser.evaluate("document.getElementById('map').focus()");
    for _ in 0..4 {
        press(&mut browser, "ArrowRight");
    }
    let read = browser.evaluate("document.getElementById('map-read').textContent.replaceAll('\u{a0}', ' ')");
    assert_eq!(read, "Segment 3: written, 19 % live, hotness 0.81, age 3.00, group 1");
    assert_quiet(&mut browser, &page);
}

#[test]
fn the_histogram_has_a_bar_for_each_twentieth_and_can_be_read_with_the_keyboard() {
    let Some((_, page, mut browser)) = prepare("histogram", file_system()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(&mut browser, "document.querySelectorAll('#spread-chart .bar').length === 20");
    let counts =
        browser.evaluate("[...document.querySelectorAll('#spread-chart .bar')].map(bar => Number(bar.dataset.count))");
    // Sixteenths 1 and 3 to 15: of free and bad segments nothing is counted.
    let mut expected = vec![0; 20];
    for share in [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
        expected[share * 20 / 16] += 1;
    }
    assert_eq!(counts, json!(expected));
    let heights =
        browser.evaluate("[...document.querySelectorAll('#spread-chart .bar')].map(bar => bar.height.baseVal.value)");
    let heights: Vec<f64> = serde_json::from_value(heights).unwrap();
    assert!(heights[0] == 0.0 && heights[1] > 20.0, "{heights:?}");
    let ticks = "[...document.querySelectorAll('#spread-chart text[text-anchor=end]')].slice(0, 5).map(text => text.textContent)";
    let round = ["0", "2.5", "5", "7.5", "10"].map(|tick| format!("{tick}\u{a0}%"));
    assert_eq!(browser.evaluate(ticks), json!(round), "ticks stand where they say");
    let read = "document.querySelector('#spread-chart .read').textContent.replaceAll('\u{a0}', ' ')";
    assert_eq!(browser.evaluate(read), "14 segments that hold data");
    browser.evaluate("document.querySelector('#spread-chart .chart').focus()");
    for _ in 0..2 {
        press(&mut browser, "ArrowRight");
    }
    assert_eq!(browser.evaluate(read), "5 % to 10 % utilisation: 1 segments, 7 %");
    press(&mut browser, "Escape");
    assert_eq!(browser.evaluate(read), "14 segments that hold data");
    assert_quiet(&mut browser, &page);
}

#[test]
fn it_fits_a_phone_and_says_why_nothing_is_written_any_more() {
    let fake = Fake { failure: Some(EVIL.into()), ..file_system() };
    let Some((_, page, mut browser)) = prepare("failure", fake) else { return };
    for width in [360, 1280] {
        browser.open(&address(&page), width, 800, "dark");
        wait_for(&mut browser, &drawn(3));
        assert_eq!(browser.evaluate("document.getElementById('failure').textContent"), EVIL);
        assert_eq!(browser.evaluate("document.getElementById('failure').hidden"), false);
        let wide = browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(wide, 0, "nothing may stick out at {width} px");
    }
    assert_quiet(&mut browser, &page);
}
