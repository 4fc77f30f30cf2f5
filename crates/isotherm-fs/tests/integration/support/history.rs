//! The states that a file system went through, and whether what a crash left is one of them.
//!
//! Names, attributes, and what truncation and holes took are those of one state. Sizes, times and data that were written may
//! be older, down to the last time that the file was made durable; a size never without the data below it.

use super::model::{BLOCK, Block, File, Model, Node};
use super::snapshot::{Seen, Snapshot};
use isotherm_vfs::FileKind;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A state.
#[derive(Debug)]
struct Step {
    model: Model,
    paths: BTreeMap<String, usize>,
    /// Events of the device when the operation began that led to it.
    event: usize,
}

/// What was made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durable {
    /// All of it.
    All,
    /// Names and attributes.
    Names,
    /// Names and attributes, and all of one node.
    Node(usize),
}

/// See the module's text.
#[derive(Debug)]
pub struct History {
    steps: Vec<Step>,
    /// From which event on which state is durable, and what of it.
    durable: Vec<(usize, usize, Durable)>,
}

/// A content that a block may have: since which step, and what; `None` is a hole.
type Version = (usize, Option<Block>);

impl History {
    /// Begins with a state that is durable.
    pub fn new(model: Model) -> Self {
        let mut history = Self { steps: Vec::new(), durable: vec![(0, 0, Durable::All)] };
        history.push(model, 0);
        history
    }

    /// An operation that began at an event has led to a state.
    pub fn push(&mut self, model: Model, event: usize) {
        self.steps.push(Step { paths: model.paths(), model, event });
    }

    /// From an event on the last state is durable.
    pub fn keep(&mut self, event: usize, what: Durable) {
        self.durable.push((event, self.steps.len() - 1, what));
    }

    /// The last state.
    pub fn last(&self) -> &Model {
        &self.steps.last().expect("it began with one").model
    }

    /// Which state a crash at an event left, if it is one that it may leave.
    pub fn find(&self, snapshot: &Snapshot, event: usize) -> Result<usize, String> {
        let kept = self.durable.partition_point(|(at, _, _)| *at <= event);
        let least = self.durable[..kept].iter().map(|(_, step, _)| *step).max().expect("the first state is durable");
        let end = self.steps.partition_point(|step| step.event <= event);
        let mut wrong = String::new();
        for number in (least..end).rev() {
            match self.fits(snapshot, number, event) {
                Ok(()) => return Ok(number),
                // What differs in the names says little; the first that agrees in them says most.
                Err((is_names, text)) if wrong.is_empty() || !is_names => {
                    wrong = format!("{wrong}\n  state {number}: {text}");
                }
                Err(_) => {}
            }
        }
        Err(format!("no state from {least} to {} fits:{wrong}", end - 1))
    }

    fn fits(&self, snapshot: &Snapshot, number: usize, event: usize) -> Result<(), (bool, String)> {
        let Step { model, paths, .. } = &self.steps[number];
        if !paths.keys().eq(snapshot.keys()) {
            return Err((true, format!("names {:?}, found {:?}", paths.keys(), snapshot.keys())));
        }
        let mut numbers: BTreeMap<u64, usize> = BTreeMap::new();
        for (path, seen) in snapshot {
            let node = paths[path];
            if *numbers.entry(seen.ino).or_insert(node) != node {
                return Err((true, format!("{path} is another node")));
            }
            let links = model.links(node);
            let expected = model.node(node).expect("it has a path");
            check_attributes(expected, links, seen).map_err(|text| (true, format!("{path}: {text}")))?;
            if expected.file().is_some() {
                self.check_file(node, number, event, seen).map_err(|text| (false, format!("{path}: {text}")))?;
            }
        }
        Ok(())
    }

    /// The state at which a file was made durable last before an event, at most `number`; else the one in which it was made.
    fn base(&self, node: usize, number: usize, event: usize) -> usize {
        let is_of = |what: Durable| what == Durable::All || what == Durable::Node(node);
        let kept = self.durable.iter().filter(|(at, step, what)| *at <= event && *step <= number && is_of(*what));
        let kept = kept.map(|(_, step, _)| *step).max().unwrap_or(0);
        let exists = |step: &usize| self.steps[*step].model.node(node).is_some();
        (kept..=number).find(exists).expect("it exists in the last of them")
    }

    /// The states of a file from `base` to `number`, without those that are as the one before.
    fn states(&self, node: usize, range: Range<usize>) -> Vec<(usize, &Arc<Node>)> {
        let mut states: Vec<(usize, &Arc<Node>)> = Vec::new();
        for step in range {
            let now = self.steps[step].model.node(node).expect("it exists throughout");
            if states.last().is_none_or(|(_, before)| !Arc::ptr_eq(before, now)) {
                states.push((step, now));
            }
        }
        states
    }

    fn check_file(&self, node: usize, number: usize, event: usize, seen: &Seen) -> Result<(), String> {
        let states = self.states(node, self.base(node, number, event)..number + 1);
        let (oldest, newest) = (states[0].1.modified, states.last().expect("there is one").1.modified);
        if !(oldest..=newest).contains(&seen.modified) {
            return Err(format!("modified at {}, not within {oldest}..={newest}", seen.modified));
        }
        let files: Vec<(usize, &File)> = states.iter().filter_map(|(step, node)| Some((*step, node.file()?))).collect();
        if seen.content.len() as u64 != seen.size {
            return Err(format!("{} bytes were read of {}", seen.content.len(), seen.size));
        }
        let Some(at) = possible_sizes(&files).into_iter().find(|(_, size)| *size == seen.size).map(|(at, _)| at) else {
            return Err(format!("it has {} bytes, possible are {:?}", seen.size, possible_sizes(&files)));
        };
        // Below this all sizes that it may have had agree; what is above has its data.
        let agreed = files.iter().map(|(_, file)| file.size).min().expect("there is one");
        for (block, content) in seen.content.chunks(BLOCK as usize).enumerate() {
            let block = block as u64;
            let mut versions = possible_versions(&files, block);
            if (block + 1) * BLOCK > agreed
                && let Some(least) = versions.iter().map(|(step, _)| *step).filter(|step| *step <= at).max()
            {
                versions.retain(|(step, _)| *step >= least);
            }
            if !versions.iter().any(|(_, version)| is_content(content, version.as_ref())) {
                let differs = |version: &Option<Block>| {
                    let byte = |at| version.as_ref().map_or(0, |version| version[at]);
                    (0..content.len()).find(|at| content[*at] != byte(*at))
                };
                let steps: Vec<usize> = versions.iter().map(|(step, _)| *step).collect();
                let all = possible_versions(&files, block);
                let all: Vec<_> = all.iter().map(|(step, version)| (*step, differs(version))).collect();
                let zeros = if content.iter().all(|byte| *byte == 0) { "zeros" } else { "something else" };
                return Err(format!(
                    "block {block} is {zeros}, not of {steps:?}; differs from {all:?}; size {} is of {at}, sizes {:?}",
                    seen.size,
                    possible_sizes(&files)
                ));
            }
        }
        Ok(())
    }

    /// Whether a volume shows exactly the last state.
    pub fn is_last(&self, snapshot: &Snapshot, with_blocks: bool) -> Result<(), String> {
        let Step { model, paths, .. } = self.steps.last().expect("it began with one");
        self.fits(snapshot, self.steps.len() - 1, usize::MAX).map_err(|(_, text)| text)?;
        for (path, seen) in snapshot {
            let Some(file) = model.node(paths[path]).and_then(|node| node.file()) else { continue };
            if file.size != seen.size {
                return Err(format!("{path}: {} bytes, expected {}", seen.size, file.size));
            }
            for (block, content) in (0..).zip(seen.content.chunks(BLOCK as usize)) {
                if !is_content(content, file.blocks.get(&block)) {
                    return Err(format!("{path}: block {block} is another one"));
                }
            }
            let blocks = (file.blocks.len() + file.reserved.len()) as u64;
            if with_blocks && seen.blocks_512 != 8 * blocks {
                return Err(format!("{path}: {} sectors, expected {}", seen.blocks_512, 8 * blocks));
            }
        }
        Ok(())
    }
}

fn check_attributes(node: &Node, links: u32, seen: &Seen) -> Result<(), String> {
    use super::model::Body;
    let kind = match &node.body {
        Body::Directory(_) => FileKind::Directory,
        Body::File(_) => FileKind::Regular,
        Body::Symlink(target) if target.as_bytes() != &seen.content[..] => return Err("another target".into()),
        Body::Symlink(_) => FileKind::Symlink,
        Body::Whiteout => FileKind::CharacterDevice,
    };
    if kind != seen.kind {
        return Err(format!("{:?}, expected {kind:?}", seen.kind));
    }
    if (node.permissions, links) != (seen.permissions, seen.links) {
        let found = format!("mode {:o}, {} links", seen.permissions, seen.links);
        return Err(format!("{found}, expected {:o}, {links}", node.permissions));
    }
    if node.xattrs != seen.xattrs {
        return Err("other extended attributes".into());
    }
    Ok(())
}

/// Sizes that a file may have, with the first step at which it had them: each that it had, cut by every truncation since.
fn possible_sizes(files: &[(usize, &File)]) -> Vec<(usize, u64)> {
    let mut sizes: Vec<(usize, u64)> = Vec::new();
    let mut before = u64::MAX;
    for (step, file) in files {
        if file.size < before {
            sizes.iter_mut().for_each(|(_, size)| *size = (*size).min(file.size));
        }
        if !sizes.iter().any(|(_, size)| *size == file.size) {
            sizes.push((*step, file.size));
        }
        before = file.size;
    }
    sizes
}

/// Contents that a block of a file may have.
fn possible_versions(files: &[(usize, &File)], block: u64) -> Vec<Version> {
    let mut versions: Vec<Version> = Vec::new();
    let mut size_before = u64::MAX;
    for (step, file) in files {
        let now = file.blocks.get(&block);
        let is_cut = file.size < size_before && file.size / BLOCK == block && !file.size.is_multiple_of(BLOCK);
        size_before = file.size;
        let Some((_, before)) = versions.last() else {
            versions.push((*step, now.cloned()));
            continue;
        };
        match (before, now) {
            (_, None) if before.is_some() => versions = vec![(*step, None)],
            (None, None) => {}
            _ if is_cut => {
                for content in versions.iter_mut().filter_map(|(_, version)| version.as_mut()) {
                    Arc::make_mut(content)[(file.size % BLOCK) as usize..].fill(0);
                }
            }
            (before, now) => {
                let is_same = matches!((before, now), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
                if !is_same {
                    versions.push((*step, now.cloned()));
                }
            }
        }
    }
    versions
}

fn is_content(found: &[u8], version: Option<&Block>) -> bool {
    match version {
        None => found.iter().all(|byte| *byte == 0),
        Some(version) => version[..found.len()] == *found,
    }
}
