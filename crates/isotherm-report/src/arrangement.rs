//! Which device of a comparison is drawn in which panel, under which name and colour.

use crate::figure::{Chart, Panel};
use crate::panels::{axis_text, axis_title, position, varying_axes};
use isotherm_eval::RunResult;
use isotherm_eval::comparison::{Device, OnTrace};

/// Colours of the palette.
const COLOURS: usize = 8;

/// Where each device is drawn. Devices that differ in one axis share a panel and differ in colour; every trace and every combination
/// of the other axes has a panel of its own, so that a panel holds few lines and a colour means one policy throughout.
pub(crate) struct Arrangement<'a> {
    panels: Vec<PanelPlace<'a>>,
    places: Vec<Place<'a>>,
    /// Said of figures that show one run of each device.
    pub of_one: String,
}

/// A panel of a figure.
#[derive(PartialEq)]
struct PanelPlace<'a> {
    /// The trace, among several.
    trace: &'a str,
    /// What tells it from others of the trace; empty where one panel holds everything.
    title: String,
}

/// One device in a figure.
pub(crate) struct Place<'a> {
    pub device: &'a Device<'a>,
    /// The first of its runs, which stands for it where a mean says nothing.
    pub run: &'a RunResult,
    panel: usize,
    pub slot: usize,
    pub name: String,
}

impl<'a> Arrangement<'a> {
    /// Colours by the placement where it varies, otherwise by the first axis that does.
    pub(crate) fn new(parts: &'a [OnTrace<'a>]) -> Self {
        Self::along(parts, None)
    }

    /// As [`Self::new`]; devices that differ in the axis `along` alone have the same place.
    pub(crate) fn along(parts: &'a [OnTrace<'a>], along: Option<&str>) -> Self {
        let runs: Vec<&RunResult> = parts.iter().flat_map(|part| &part.devices).map(|device| device.runs[0]).collect();
        // A trace has panels of its own in any case.
        let told = |axis: &String| axis != "trace" && axis != "seed" && Some(axis.as_str()) != along;
        let varying: Vec<String> = varying_axes(&runs).into_iter().filter(told).collect();
        let colour = varying.iter().find(|a| *a == "placement").or(varying.first());
        let by_axis = colour.and_then(|axis| Self::by_axis(parts, axis, &varying, along));
        by_axis.unwrap_or_else(|| Self::by_device(parts, along.is_some() && varying.is_empty()))
    }

    /// Every device has a colour of its own; `is_one` gives all of a trace the same place.
    fn by_device(parts: &'a [OnTrace<'a>], is_one: bool) -> Self {
        let mut places = Vec::new();
        for (panel, part) in parts.iter().enumerate() {
            places.extend(part.devices.iter().enumerate().map(|(at, device)| {
                let (slot, name) = if is_one { (0, "write amplification") } else { (at, device.name) };
                Place { device, run: device.runs[0], panel, slot, name: name.to_owned() }
            }));
        }
        Self {
            panels: parts.iter().map(|part| PanelPlace { trace: part.trace, title: String::new() }).collect(),
            places,
            of_one: of_one(parts),
        }
    }

    /// None where two devices would have the same colour in the same panel: then axes do not tell them apart.
    fn by_axis(parts: &'a [OnTrace<'a>], colour: &str, varying: &[String], along: Option<&str>) -> Option<Self> {
        let mut names: Vec<String> = Vec::new();
        let mut panels: Vec<PanelPlace<'a>> = Vec::new();
        let mut places: Vec<Place<'a>> = Vec::new();
        for (part, device) in parts.iter().flat_map(|part| part.devices.iter().map(move |device| (part, device))) {
            let run = device.runs[0];
            let name = axis_text(run.axes.get(colour)?);
            let others: Vec<String> = varying
                .iter()
                .filter(|axis| *axis != colour)
                .map(|axis| run.axes.get(axis).map(|value| axis_title(axis, value)))
                .collect::<Option<_>>()?;
            let wanted = PanelPlace { trace: part.trace, title: others.join(", ") };
            let panel = panels.iter().position(|known| *known == wanted).unwrap_or_else(|| {
                panels.push(wanted);
                panels.len() - 1
            });
            let slot = position(&mut names, &name);
            let stands_there = |p: &Place<'_>| {
                (p.slot, p.panel) == (slot, panel)
                    && along.is_none_or(|axis| p.run.axes.get(axis) == run.axes.get(axis))
            };
            if places.iter().any(stands_there) {
                return None;
            }
            places.push(Place { device, run, panel, slot, name });
        }
        Some(Self { panels, places, of_one: of_one(parts) })
    }

    /// One chart for each panel, made from its devices; panels without a device that has something to show are left out.
    pub(crate) fn panels(&self, prefix: &str, chart: impl Fn(&[&Place<'a>]) -> Option<Chart>) -> Vec<Panel> {
        let mut drawn = Vec::new();
        // The same panels of every trace stand in the same order.
        let first = |is_alike: &dyn Fn(&PanelPlace<'_>) -> bool| self.panels.iter().position(is_alike);
        let mut order: Vec<(usize, &PanelPlace<'_>)> = self.panels.iter().enumerate().collect();
        order.sort_by_key(|(_, panel)| (first(&|p| p.trace == panel.trace), first(&|p| p.title == panel.title)));
        for (index, panel) in order {
            let mut places: Vec<&Place> = self.places.iter().filter(|p| p.panel == index).collect();
            places.sort_by_key(|p| p.slot);
            let slots: Vec<usize> = places.chunk_by(|a, b| a.slot == b.slot).map(|same| same[0].slot).collect();
            // More lines than colours are told apart by panels, each of them with the first and the last of its own names.
            for few in slots.chunks(COLOURS) {
                let within: Vec<&Place> = places.iter().copied().filter(|place| few.contains(&place.slot)).collect();
                let own = match (within.first(), within.last()) {
                    (Some(first), Some(last)) if few.len() < slots.len() => format!("{} to {}", first.name, last.name),
                    _ => String::new(),
                };
                let parts = [prefix, panel.trace, panel.title.as_str(), own.as_str()];
                let title = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
                let group = panel.trace.to_owned();
                drawn.extend(chart(&within).map(|chart| Panel { title, group, chart }));
            }
        }
        drawn
    }
}

/// What is to be known of numbers that are means over seeds; nothing where every device ran once.
pub(crate) fn of_means(parts: &[OnTrace<'_>]) -> String {
    match seeds(parts) {
        1 => String::new(),
        seeds => format!(" Means over {seeds} seeds, with 95 % confidence intervals by Student's t."),
    }
}

/// What is to be known of numbers that are those of one run of each device; nothing where every device ran once.
pub(crate) fn of_one(parts: &[OnTrace<'_>]) -> String {
    match seeds(parts) {
        1 => String::new(),
        seeds => format!(" Of the {seeds} seeds of a device, this shows the first alone."),
    }
}

/// How many seeds a device ran with, at most.
pub(crate) fn seeds(parts: &[OnTrace<'_>]) -> usize {
    parts.iter().flat_map(|part| &part.devices).map(|device| device.runs.len()).max().unwrap_or(1)
}
