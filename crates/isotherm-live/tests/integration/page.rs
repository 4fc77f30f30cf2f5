//! The page in a real headless Chromium, over a source whose numbers are known.

use crate::browser::Browser;
use crate::fake::{EVIL, Fake};
use isotherm_live::{LivePage, Sample};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A page over `fake` and a browser; none where there is no browser.
pub fn prepare(name: &str, fake: Fake) -> Option<(Arc<Fake>, LivePage, Browser)> {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("live-{name}"));
    std::fs::create_dir_all(&scratch).unwrap();
    let browser = Browser::start(&scratch)?;
    let (fake, page) = fake.serve();
    Some((fake, page, browser))
}

pub fn address(page: &LivePage) -> String {
    format!("http://{}/", page.address())
}

/// Waits until an expression is true in the page.
pub fn wait_for(browser: &mut Browser, expression: &str) {
    let end = Instant::now() + Duration::from_secs(30);
    while browser.evaluate(expression) != true {
        assert!(Instant::now() < end, "never true: {expression}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Nothing was said on the console, and nothing fetched from elsewhere.
pub fn assert_quiet(browser: &mut Browser, page: &LivePage) {
    // An answer from the page comes after every event that it raised before.
    browser.evaluate("0");
    assert_eq!(browser.console, Vec::<String>::new(), "the console must stay empty");
    let elsewhere: Vec<&String> = browser.requests.iter().filter(|to| !to.starts_with(&address(page))).collect();
    assert_eq!(elsewhere, Vec::<&String>::new(), "the page must fetch nothing from elsewhere");
    assert!(browser.requests.len() >= 8, "style, scripts and events: {:?}", browser.requests);
}

/// Whether the page has drawn so many samples, told by the count of requests in its table.
fn drawn(samples: u64) -> String {
    let count = 1000 + samples - 1;
    format!("Number(document.querySelector('#latencies td')?.dataset.value ?? 0) >= {count}")
}

#[test]
fn numbers_are_those_of_the_source() {
    let Some((_, page, mut browser)) = prepare("numbers", Fake::default()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(&mut browser, &drawn(6));
    // All at once, so that they are of one sample, which the count of requests tells.
    let shown = browser.evaluate(
        "(() => { const value = key => Number(document.querySelector(`[data-tile='${key}'] dd`).dataset.value); \
         const table = id => [...document.querySelectorAll(`#${id} tbody tr`)].map(row => [...row.cells].map(c => c.textContent)); \
         const legend = id => [...document.querySelectorAll(`#${id} .legend b`)].map(b => Number(b.dataset.value)); \
         return { recent: value('wa-recent'), total: value('wa-total'), host: value('rate/host writes'), media: value('rate/flash writes'), \
         read: value('rate/host reads'), free: value('free'), latencies: table('latencies'), slowest: table('slowest'), victims: table('victims'), \
         count: Number(document.querySelector('#latencies td').dataset.value), wa: legend('wa-chart'), rate: legend('rate-chart'), \
         freeNow: legend('free-chart'), p99: legend('p99-chart'), words: document.querySelector('[data-tile=wa-recent] dd').textContent }; })()",
    );
    let sample = Fake::sample_of(shown["count"].as_u64().unwrap() - 1000);
    let near = |shown: &Value, expected: f64| {
        let shown = shown.as_f64().unwrap();
        assert!((shown - expected).abs() < 1e-9 * expected.max(1.0), "{shown} is shown for {expected}");
    };
    near(&shown["recent"], 1.75);
    assert_eq!(shown["words"], "1.75");
    near(&shown["total"], amplification(&sample));
    near(&shown["host"], 200.0 * 4096.0 * 2.0);
    near(&shown["media"], 350.0 * 4096.0 * 2.0);
    near(&shown["read"], 2e6);
    near(&shown["free"], 23.0);
    // The legends: host, gc, translation_gc and their sum; a cause that never programmed is left out.
    for (at, part) in [1.0, 0.7, 0.05, 1.75].into_iter().enumerate() {
        near(&shown["wa"][at], part);
    }
    for (at, megabytes) in [1.6384, 2.8672, 2.0].into_iter().enumerate() {
        near(&shown["rate"][at], megabytes);
    }
    assert_eq!((&shown["freeNow"], &shown["p99"]), (&serde_json::json!([23, 5]), &serde_json::json!([1_300_000])));
    let count = shown["count"].as_u64().unwrap();
    let count = format!("{}\u{202f}{:03}", count / 1000, count % 1000);
    let row = ["write", &count, "210\u{a0}\u{b5}s", "340\u{a0}\u{b5}s", "1.25\u{a0}ms", "8.00\u{a0}ms", "2.50\u{a0}s"];
    assert_eq!(shown["latencies"], serde_json::json!([row]));
    let thin = "1\u{202f}234\u{202f}567\u{202f}168";
    let slow = ["write", "18.4\u{a0}ms", "0\u{a0}s ago", thin, "16.0\u{a0}KiB", EVIL];
    assert_eq!(shown["slowest"], serde_json::json!([slow]));
    let block = format!("block {}", sample.victims[0].unit);
    assert_eq!(shown["victims"], serde_json::json!([[block, "25\u{a0}%", "0\u{a0}s ago", "1"]]));
    assert_quiet(&mut browser, &page);
}

fn amplification(sample: &Sample) -> f64 {
    let pages: u64 = sample.pages_written.iter().map(|cause| cause.count).sum();
    pages as f64 / sample.pages_wanted as f64
}

#[test]
fn every_chart_is_drawn_and_can_be_read_with_the_keyboard() {
    let Some((_, page, mut browser)) = prepare("charts", Fake::default()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(&mut browser, &drawn(8));
    let series = browser.evaluate(
        "Object.fromEntries(['wa', 'rate', 'free', 'p99'].map(id => [id, [...document.querySelectorAll(`#${id}-chart g`)] \
         .filter(g => g.getBBox().width > 20).map(g => g.dataset.series)]))",
    );
    assert_eq!(series["wa"], serde_json::json!(["host", "gc", "translation gc"]));
    assert_eq!(series["rate"], serde_json::json!(["host writes", "flash writes", "host reads"]));
    assert_eq!(series["free"], serde_json::json!(["free blocks", "floor"]));
    let hidden = browser.evaluate("[...document.querySelectorAll('main section[hidden]')].map(section => section.id)");
    assert_eq!(hidden, serde_json::json!(["ratio", "event"]), "what a source does not have is not shown");
    assert_eq!(series["p99"], serde_json::json!(["write"]));
    let clocks =
        "['rate', 'p99', 'latency'].map(id => document.getElementById(`${id}-title`).nextElementSibling.textContent)";
    let clocks = browser.evaluate(clocks);
    let says = |at: usize, words: &str| assert!(clocks[at].as_str().unwrap().contains(words), "{clocks}");
    says(0, "of wall time");
    says(1, "of the drive's simulated time");
    says(2, "of the drive's simulated time");
    // The band of garbage collection is 0.7 as high as the host's.
    let ratio = browser.evaluate(
        "(() => { const [host, gc] = [...document.querySelectorAll('#wa-chart g')].map(g => g.getBBox().height); return gc / host; })()",
    );
    assert!((ratio.as_f64().unwrap() - 0.7).abs() < 0.01, "{ratio}");
    let colours = "new Set([...document.querySelectorAll('#rate-chart path.curve')].map(p => getComputedStyle(p).stroke + p.getAttribute('stroke-dasharray'))).size";
    // Six paths: three curves, and three of the legend.
    assert_eq!(browser.evaluate(colours), 3, "curves differ, and the legend shows how");
    let when = "document.querySelector('#rate-chart .when').textContent";
    assert_eq!(browser.evaluate(when), "now");
    browser.evaluate("document.querySelector('#rate-chart .chart').focus()");
    press(&mut browser, "ArrowLeft");
    assert_ne!(browser.evaluate(when), "now");
    assert_eq!(browser.evaluate("document.querySelectorAll('#rate-chart .cursor').length"), 1);
    let said = browser.evaluate("document.querySelector('#rate-chart [aria-live]').textContent");
    assert!(said.as_str().unwrap().contains("ago, host writes 1.64"), "who hears the page hears the values: {said}");
    press(&mut browser, "Escape");
    assert_eq!(browser.evaluate(when), "now");
    assert_quiet(&mut browser, &page);
}

pub fn press(browser: &mut Browser, key: &str) {
    for kind in ["keyDown", "keyUp"] {
        browser.call("Input.dispatchKeyEvent", serde_json::json!({ "type": kind, "key": key, "code": key }));
    }
}

/// The dots of one of the map's canvases, read from a copy: reading a canvas again and again makes the browser warn.
fn dots_of(canvas: usize) -> String {
    format!(
        "(() => {{ const map = document.querySelectorAll('#map canvas')[{canvas}]; \
         const copy = Object.assign(document.createElement('canvas'), {{ width: map.width, height: map.height }}); \
         const context = copy.getContext('2d', {{ willReadFrequently: true }}); context.drawImage(map, 0, 0); return context; }})()"
    )
}

/// The colours of the first four cells of the map: free, open, bad, closed.
fn cell_colours() -> String {
    format!(
        "(context => [0, 1, 2, 3].map(i => [...context.getImageData((i + 0.5) * 20, 6, 1, 1).data].join()))({})",
        dots_of(0)
    )
}

#[test]
fn the_map_shows_every_block_and_says_its_numbers() {
    let Some((_, page, mut browser)) = prepare("map", Fake::default()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(&mut browser, "document.querySelectorAll('#map-legend > *').length > 0");
    let text = |browser: &mut Browser, id: &str| {
        let text = browser.evaluate(&format!("document.getElementById('{id}').textContent"));
        text.as_str().unwrap().replace('\u{a0}', " ")
    };
    assert_eq!(text(&mut browser, "map-scale"), "16 blocks, a cell each");
    for words in ["0 % valid", "free: 1", "open: 1", "closed: 13", "bad: 1", "chosen to be collected"] {
        assert!(text(&mut browser, "map-legend").contains(words), "{words}");
    }
    let mut seen = Vec::new();
    for mode in ["valid_share", "age", "erases", "stream", "state"] {
        browser.evaluate(&format!("document.querySelector('input[value={mode}]').click()"));
        let cells = browser.evaluate(&cell_colours());
        assert_ne!(cells[2], cells[3], "a bad block looks unlike a closed one by {mode}");
        assert_ne!(cells[0], cells[3], "a free block looks unlike a closed one by {mode}");
        assert!(!seen.contains(&cells), "{mode} is a view of its own");
        seen.push(cells);
    }
    assert!(text(&mut browser, "map-legend").contains("open: 1"));
    browser.evaluate("document.getElementById('map').focus()");
    for expected in [
        "Block 0: free, 0 erases",
        "Block 1: open, 6 % valid, age 0.94, 1.00 erases, stream 1",
        "Block 2: bad, 2.00 erases",
        "Block 3: closed, 19 % valid, age 0.81, 3.00 erases, stream 1",
        "Block 4: closed, 25 % valid, age 0.75, 4.00 erases, stream 0 (host)",
    ] {
        press(&mut browser, "ArrowRight");
        assert_eq!(text(&mut browser, "map-read"), expected);
    }
    // A new victim comes with every sample, and is ringed on the upper canvas; the cell that the keys chose is let go first.
    press(&mut browser, "Escape");
    let ringed =
        "context => context.getImageData(0, 0, context.canvas.width, context.canvas.height).data.some(x => x > 0)";
    wait_for(&mut browser, &format!("({ringed})({})", dots_of(1)));
    assert_quiet(&mut browser, &page);
}

#[test]
fn a_million_blocks_are_drawn() {
    let Some((_, page, mut browser)) = prepare("million", Fake { units: 1_000_000, ..Fake::default() }) else {
        return;
    };
    for width in [1280, 360] {
        browser.open(&address(&page), width, 900, "light");
        wait_for(&mut browser, "document.getElementById('map-scale').textContent.includes('50 in a cell')");
        let size = browser.evaluate(
            "(() => { const c = document.querySelector('#map canvas'); return [c.clientWidth, c.clientHeight]; })()",
        );
        let (w, h) = (size[0].as_u64().unwrap(), size[1].as_u64().unwrap());
        assert!(w <= u64::from(width) && (150..=450).contains(&h), "{w} x {h} at {width}");
        assert!(w * h >= 20_000 * 4, "every cell has a few dots: {w} x {h}");
    }
    assert_quiet(&mut browser, &page);
}

#[test]
fn it_fits_a_phone_and_follows_the_dark() {
    let Some((_, page, mut browser)) = prepare("phone", Fake::default()) else { return };
    for (width, scheme) in [(360, "light"), (1280, "light"), (800, "dark")] {
        browser.open(&address(&page), width, 800, scheme);
        wait_for(&mut browser, &drawn(3));
        wait_for(&mut browser, "document.querySelectorAll('#map-legend > *').length > 0");
        let wide = browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(wide, 0, "nothing may stick out at {width} px");
        let out = browser.evaluate(
            "[...document.querySelectorAll('main *')].filter(e => !e.closest('thead') && e.getBoundingClientRect().right > innerWidth + 0.5) \
             .map(e => e.outerHTML.slice(0, 80))",
        );
        assert_eq!(out, serde_json::json!([]), "at {width} px");
    }
    let brightness = "(() => { const rgb = getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number); return Math.max(...rgb); })()";
    let cells = "document.querySelector('#map canvas').toDataURL()";
    assert_quiet(&mut browser, &page);
    // Without a server no new map comes, with which the old one would be drawn anew anyway.
    page.stop();
    wait_for(&mut browser, "document.getElementById('status').dataset.state === 'lost'");
    assert!(browser.evaluate(brightness).as_u64().unwrap() < 48, "a dark page");
    let dark = browser.evaluate(cells);
    browser.scheme("light");
    assert_eq!(browser.evaluate(brightness), 255);
    let end = Instant::now() + Duration::from_secs(10);
    while browser.evaluate(cells) == dark {
        assert!(Instant::now() < end, "the map keeps the colours of the dark");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_drive_at_rest_has_dashes_for_ratios_and_noughts_for_rates() {
    let Some((_, page, mut browser)) = prepare("rest", Fake { at_rest: true, ..Fake::default() }) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(
        &mut browser,
        "document.querySelector('[data-tile=\"rate/host writes\"] dd')?.textContent === '0\u{a0}MB/s'",
    );
    let texts = browser.evaluate("['[data-tile=wa-recent] dd', '[data-tile=wa-total] dd', '#latencies', '#slowest', '#victims'].map(at => document.querySelector(at).textContent)");
    let none = "No request has ended yet.";
    let expected =
        ["\u{2013}", "\u{2013}", none, "No request has been slow so far.", "Nothing has been collected yet."];
    assert_eq!(texts, serde_json::json!(expected));
    assert_quiet(&mut browser, &page);
}

#[test]
fn texts_of_the_source_stay_text() {
    let Some((_, page, mut browser)) = prepare("hostile", Fake::default()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(&mut browser, &drawn(2));
    assert_eq!(browser.evaluate("document.querySelector('h1').textContent"), format!("Drive {EVIL}"));
    assert_eq!(browser.evaluate("document.querySelector('#facts div:last-child dd').textContent"), EVIL);
    assert_eq!(browser.evaluate("typeof window.broken"), "undefined", "a text ran as a script");
    assert_eq!(browser.evaluate("document.images.length"), 0);
    assert_quiet(&mut browser, &page);
}

#[test]
fn a_reload_keeps_the_curves() {
    let Some((_, page, mut browser)) = prepare("reload", Fake::default()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(&mut browser, &drawn(9));
    let points = "(document.querySelector('#free-chart path.curve')?.getAttribute('d').match(/[ML]/g) ?? []).length";
    let before = browser.evaluate(points).as_u64().unwrap();
    assert!(before >= 9, "{before} samples are drawn");
    browser.open(&address(&page), 1280, 900, "light");
    wait_for(&mut browser, "document.querySelectorAll('#free-chart path.curve').length > 0");
    let after = browser.evaluate(points).as_u64().unwrap();
    assert!(after >= before, "{after} samples are drawn after the reload, {before} were before");
}

#[test]
fn it_says_that_the_server_is_gone_and_comes_back_with_it() {
    let Some((_, page, mut browser)) = prepare("lost", Fake::default()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    let state = "document.getElementById('status').textContent";
    wait_for(&mut browser, &format!("{state} === 'live'"));
    assert_eq!(browser.evaluate("document.getElementById('lost').hidden"), true);
    assert_quiet(&mut browser, &page);
    let address = page.address();
    page.stop();
    wait_for(&mut browser, &format!("/^disconnected since \\d\\d:\\d\\d:\\d\\d$/.test({state})"));
    let notice = browser.evaluate("document.getElementById('lost').textContent");
    assert!(notice.as_str().unwrap().ends_with("What you see is what came last. Trying again."), "{notice}");
    // Nothing of it is of now any more.
    let dated = "[document.querySelector('#rate-chart .when').textContent, \
        document.querySelector('#slowest td:nth-of-type(2)').textContent, document.getElementById('serving').textContent.slice(2, 8), \
        document.getElementById('rate-chart').textContent.includes('now')]";
    assert_eq!(browser.evaluate(dated), serde_json::json!(["last", "0\u{a0}s before", "served", false]));
    let _page = LivePage::start(address, Arc::new(Fake::default()), false).expect("the port is still free");
    wait_for(&mut browser, &format!("{state} === 'live'"));
    assert_eq!(browser.evaluate("document.getElementById('lost').hidden"), true);
    wait_for(&mut browser, "document.querySelector('#rate-chart .when').textContent === 'now'");
}

#[test]
fn it_says_that_nothing_comes() {
    let Some((fake, page, mut browser)) = prepare("silent", Fake::default()) else { return };
    browser.open(&address(&page), 1280, 900, "light");
    let state = "document.getElementById('status').textContent";
    wait_for(&mut browser, &format!("{state} === 'live'"));
    let gate = fake.gate.lock().unwrap();
    // The source hangs in here, and so no sample comes.
    let waiting = std::thread::scope(|scope| {
        let asked = scope.spawn(|| crate::client::get(&page, "/stats").status);
        wait_for(&mut browser, &format!("/^no news since \\d\\d:\\d\\d:\\d\\d$/.test({state})"));
        asked.join().unwrap()
    });
    assert_eq!(waiting, 503);
    drop(gate);
    wait_for(&mut browser, &format!("{state} === 'live'"));
    assert_quiet(&mut browser, &page);
}
