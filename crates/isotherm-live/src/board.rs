//! What the sampler published and clients have not read yet. Clients wait here for news, and the sampler for wishes; neither ever
//! waits for the other's socket or device.

use crate::cells::Cells;
use crate::colouring::Colouring;
use crate::events::frame;
use crate::source::{About, Sample};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two samples.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// Time between two maps, while somebody looks.
pub(crate) const CELLS_EVERY: Duration = Duration::from_secs(2);
/// Samples kept for clients that come later: five minutes.
pub(crate) const HISTORY: usize = 600;
/// What was asked for is answered with what was published no longer ago than this.
const FRESH: Duration = SAMPLE_EVERY;
/// How long a client waits for the source.
const PATIENCE: Duration = Duration::from_secs(5);

/// What clients ask for by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    Stats = 0,
    Metrics = 1,
    Cells = 2,
}

/// What the sampler has to do now.
#[derive(Default)]
pub(crate) struct Work {
    pub sample: bool,
    pub stats: bool,
    pub metrics: bool,
    pub cells: bool,
}

/// Why a client gets nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nothing {
    /// The page is being shut down.
    Stopped,
    /// The source did not answer in time.
    Late,
}

/// See the module's text.
pub(crate) struct Board {
    /// What the numbers of cells mean.
    pub colourings: Vec<Colouring>,
    state: Mutex<State>,
    /// Something was published, or the page stops.
    news: Condvar,
    /// Somebody wants something, or the page stops.
    wishes: Condvar,
}

struct State {
    stopped: bool,
    about: Arc<str>,
    /// The samples of the last minutes, oldest first.
    samples: VecDeque<Point>,
    /// Samples ever published.
    sample_count: u64,
    next_sample: Instant,
    cells: Arc<Cells>,
    cells_frame: Arc<str>,
    published: [Published; 3],
    /// Clients that follow the events.
    followers: usize,
}

/// A sample as it is sent.
struct Point {
    /// The event of those who are there.
    frame: Arc<str>,
    /// What curves need of it, for those who come later.
    history: Arc<str>,
}

/// Of an [`Item`]: its text, and how often and when it was published.
#[derive(Default)]
struct Published {
    text: Arc<str>,
    count: u64,
    at: Option<Instant>,
    wanted: bool,
}

impl Published {
    fn is_older_than(&self, age: Duration, now: Instant) -> bool {
        self.at.is_none_or(|at| now >= at + age)
    }
}

/// A client that follows the events, and how far it got.
pub(crate) struct Follower<'a> {
    board: &'a Board,
    samples: u64,
    cells: u64,
}

impl Board {
    pub(crate) fn new(about: About) -> Self {
        let state = State {
            stopped: false,
            about: frame("about", &json(&about)),
            samples: VecDeque::with_capacity(HISTORY),
            sample_count: 0,
            next_sample: Instant::now(),
            cells: Arc::default(),
            cells_frame: Arc::default(),
            published: Default::default(),
            followers: 0,
        };
        Self { colourings: about.colourings, state: Mutex::new(state), news: Condvar::new(), wishes: Condvar::new() }
    }

    /// Ends every wait, now and later.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.news.notify_all();
        self.wishes.notify_all();
    }

    /// What the sampler does next: waits until there is something. None once the page stops.
    pub(crate) fn next_work(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let now = Instant::now();
            let followed = state.followers > 0;
            let [stats, metrics, cells] = &state.published;
            let work = Work {
                sample: now >= state.next_sample,
                stats: stats.wanted,
                metrics: metrics.wanted,
                cells: cells.wanted || followed && cells.is_older_than(CELLS_EVERY, now),
            };
            if work.sample || work.stats || work.metrics || work.cells {
                if work.sample {
                    // After a long pause samples are not made up for.
                    state.next_sample = (state.next_sample + SAMPLE_EVERY).max(now);
                }
                return Some(work);
            }
            let next_cells = cells.at.filter(|_| followed).map(|at| at + CELLS_EVERY);
            let next = next_cells.map_or(state.next_sample, |cells| cells.min(state.next_sample));
            state = wait(&self.wishes, state, next - now);
        }
    }

    pub(crate) fn publish_sample(&self, mut sample: Sample) {
        let frame = frame("sample", &json(&sample));
        // Curves need none of these, and they are most of a sample.
        sample.slowest.clear();
        sample.victims.clear();
        sample.tables.clear();
        let history = json(&sample).into();
        let mut state = self.lock();
        if state.samples.len() == HISTORY {
            state.samples.pop_front();
        }
        state.samples.push_back(Point { frame, history });
        state.sample_count += 1;
        drop(state);
        self.news.notify_all();
    }

    pub(crate) fn publish_cells(&self, cells: Cells) {
        let text = json(&cells);
        let frame = frame("cells", &text);
        let mut state = self.lock();
        state.cells = Arc::new(cells);
        state.cells_frame = frame;
        drop(state);
        self.publish(Item::Cells, text);
    }

    pub(crate) fn publish(&self, item: Item, text: String) {
        let mut state = self.lock();
        let published = &mut state.published[item as usize];
        *published =
            Published { text: text.into(), count: published.count + 1, at: Some(Instant::now()), wanted: false };
        drop(state);
        self.news.notify_all();
    }

    /// The text of an item, not older than half a second where the source answers in time.
    pub(crate) fn fetch(&self, item: Item) -> Result<Arc<str>, Nothing> {
        self.fresh(item).map(|state| state.published[item as usize].text.clone())
    }

    /// The map, not older than half a second.
    pub(crate) fn fetch_cells(&self) -> Result<Arc<Cells>, Nothing> {
        self.fresh(Item::Cells).map(|state| state.cells.clone())
    }

    /// Counts a client among those who follow, and gives the events that bring it up to now.
    pub(crate) fn follow(&self) -> (Follower<'_>, Vec<Arc<str>>) {
        let mut state = self.lock();
        state.followers += 1;
        let samples = state.sample_count;
        let past: Vec<Arc<str>> = state.samples.iter().map(|point| point.history.clone()).collect();
        let about = state.about.clone();
        drop(state);
        self.wishes.notify_all();
        let history = frame("history", &format!("[{}]", past.join(",")));
        (Follower { board: self, samples, cells: 0 }, vec![about, history])
    }

    /// Waits until `item` is fresh.
    fn fresh(&self, item: Item) -> Result<MutexGuard<'_, State>, Nothing> {
        let start = Instant::now();
        let mut state = self.lock();
        let seen = state.published[item as usize].count;
        loop {
            if state.stopped {
                return Err(Nothing::Stopped);
            }
            let published = &mut state.published[item as usize];
            if published.count > seen || !published.is_older_than(FRESH, start) {
                return Ok(state);
            }
            let Some(left) = PATIENCE.checked_sub(start.elapsed()) else { return Err(Nothing::Late) };
            published.wanted = true;
            self.wishes.notify_all();
            state = wait(&self.news, state, left);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is whole, so what a thread that panicked left behind is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower<'_> {
    /// Waits for news, at most so long, and gives them oldest first; none came where the list is empty. What a slow client missed
    /// of the map it never gets, and of samples only what is still kept.
    pub(crate) fn next(&mut self, patience: Duration) -> Result<Vec<Arc<str>>, Nothing> {
        let end = Instant::now() + patience;
        let mut state = self.board.lock();
        loop {
            if state.stopped {
                return Err(Nothing::Stopped);
            }
            let cells = state.published[Item::Cells as usize].count;
            if state.sample_count > self.samples || cells > self.cells {
                let missed = (state.sample_count - self.samples).min(state.samples.len() as u64) as usize;
                let newest = state.samples.iter().skip(state.samples.len() - missed);
                let mut frames: Vec<Arc<str>> = newest.map(|point| point.frame.clone()).collect();
                if cells > self.cells {
                    frames.push(state.cells_frame.clone());
                }
                (self.samples, self.cells) = (state.sample_count, cells);
                return Ok(frames);
            }
            let Some(left) = end.checked_duration_since(Instant::now()) else { return Ok(Vec::new()) };
            state = wait(&self.board.news, state, left);
        }
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.board.lock().followers -= 1;
    }
}

fn wait<'a>(on: &Condvar, state: MutexGuard<'a, State>, at_most: Duration) -> MutexGuard<'a, State> {
    on.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner).0
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("lists, texts and numbers are JSON")
}
