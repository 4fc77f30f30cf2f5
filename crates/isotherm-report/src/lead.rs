//! What stands above everything else: what was run on what, and the answer.

use crate::arrangement::seeds;
use crate::table::{estimate, percent};
use isotherm_eval::comparison::{Device, OnTrace, TRACE_FROM_DEVICE};
use isotherm_eval::results::Estimate;

/// What was run on what. A synthetic workload that is drawn anew with each seed is one trace.
pub(crate) fn title(parts: &[OnTrace<'_>]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for device in parts.iter().flat_map(|part| &part.devices) {
        if !names.contains(&device.name) {
            names.push(device.name);
        }
    }
    let traces: Vec<&str> = match parts {
        [only] => only.devices.first().map(|device| device.runs[0].trace.as_str()).into_iter().collect(),
        several => several.iter().map(|part| part.trace).collect(),
    };
    let traces = traces.join(", ");
    let seeds = match seeds(parts) {
        1 => String::new(),
        seeds => format!(", {seeds} seeds"),
    };
    match names.as_slice() {
        [only] => format!("{only} on {traces}{seeds}"),
        names => format!("{} devices under {traces}{seeds}", names.len()),
    }
}

/// The answer: a sentence for each trace, on a line of its own. What runs under different traces is not to be compared.
pub(crate) fn lead(parts: &[OnTrace<'_>]) -> String {
    let sentence = |part: &OnTrace<'_>| {
        let trace = if part.trace.is_empty() { String::new() } else { format!("{}{TRACE_FROM_DEVICE}", part.trace) };
        let contenders: Vec<Contender> = part.devices.iter().map(Contender::of).collect();
        let seeds = match seeds(std::slice::from_ref(part)) {
            1 => String::new(),
            seeds => format!(" (means of {seeds} seeds, with 95 % confidence intervals)"),
        };
        format!("{trace}{}{seeds}.", answer(&contenders))
    };
    parts.iter().map(sentence).collect::<Vec<_>>().join("\n")
}

/// A device that competes with the others on its trace.
struct Contender<'a> {
    name: &'a str,
    amplification: Option<Estimate>,
    victims: Option<Estimate>,
    /// Whether all of its runs are valid.
    valid: bool,
}

impl<'a> Contender<'a> {
    fn of(device: &'a Device<'a>) -> Self {
        Self {
            name: device.name,
            amplification: device.estimate(|run| run.write_amplification),
            victims: device.estimate(|run| Some(run.gc_count as f64)),
            valid: device.is_valid(),
        }
    }
}

/// Who writes least under one trace, and against whom, without a full stop. Devices that are not valid do not compete.
fn answer(devices: &[Contender]) -> String {
    let none_valid = devices.iter().all(|r| !r.valid);
    let competing = devices.iter().filter(|device| device.valid || none_valid);
    let amplified: Vec<(&str, Estimate)> =
        competing.filter_map(|device| Some((device.name, device.amplification?))).collect();
    let best = amplified.iter().min_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let worst = amplified.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let answer = match (best, worst) {
        (Some((name, wa)), _) if devices.len() == 1 => format!(
            "{name}: {} pages programmed for each page that the host wrote, {} victims collected",
            estimate(wa, 1.0),
            devices[0].victims.map_or_else(String::new, |victims| estimate(&victims, 1.0))
        ),
        (Some((best, least)), Some((worst, most))) if most.mean > least.mean => format!(
            "{best} writes least: {} pages programmed for each page that the host wrote, {} less than {worst} with {}",
            estimate(least, 1.0),
            percent(1.0 - least.mean / most.mean),
            estimate(most, 1.0)
        ),
        (Some((_, wa)), _) => {
            format!("Write amplification is {} on every device that can be judged", estimate(wa, 1.0))
        }
        (None, _) => "The host wrote nothing, so write amplification has no value".to_owned(),
    };
    if none_valid { format!("Not to be trusted, see below: {answer}") } else { answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contender(name: &'static str, amplification: &[f64], valid: bool) -> Contender<'static> {
        let of = |values: &[f64]| isotherm_eval::estimate(values);
        Contender { name, amplification: of(amplification), victims: of(&[7.0]), valid }
    }

    #[test]
    fn what_is_not_valid_does_not_compete() {
        let devices = [contender("a", &[1.5], true), contender("b", &[2.0], true), contender("c", &[1.0], false)];
        let told = "a writes least: 1.500 pages programmed for each page that the host wrote, 25 % less than b with 2";
        assert_eq!(answer(&devices), told);
        let none = answer(&[contender("a", &[1.5], false), contender("b", &[2.0], false)]);
        assert_eq!(none, format!("Not to be trusted, see below: {told}"));
    }

    #[test]
    fn seeds_of_a_device_compete_by_their_mean() {
        let devices = [contender("a", &[1.0, 2.5], true), contender("b", &[1.5, 1.5], true)];
        // Half the difference of two times Student's t of one degree of freedom, 12.71.
        let told = "b writes least: 1.500 \u{b1} 0 pages programmed for each page that the host wrote, 14.29 % less than a with \
                    1.750 \u{b1} 9.530";
        assert_eq!(answer(&devices), told);
    }
}
