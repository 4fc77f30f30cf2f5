//! What the streams of a drive are for, in the words of its placement.

use isotherm::build::Plan;
use isotherm::registry::PolicyName;
use isotherm::spec::DeviceSpec;

/// A name for each stream by number, the ones of translation pages last; empty where its number says all there is to say.
pub fn names(spec: &DeviceSpec, plan: &Plan) -> Vec<String> {
    let count = plan.streams as usize;
    let mut names: Vec<String> = match spec.ftl.name.name.as_str() {
        // It has none.
        "fast" => return Vec::new(),
        "asa" => words(&["hot", "warm", "cold"]),
        _ => of_placement(&spec.placement.name, count),
    };
    // A stream that a parameter of the placement leaves out has no name either.
    names.truncate(count);
    if plan.translation_blocks > 0 {
        names.resize(count, String::new());
        names.push("translation pages".to_owned());
    }
    names
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn of_placement(placement: &PolicyName, count: usize) -> Vec<String> {
    let copies_apart = placement.parameters.iter().any(|(key, value)| key == "gc" && value == "apart");
    let with_copies = |mut names: Vec<String>| {
        if copies_apart {
            names.resize(count - 1, String::new());
            names.push("copies".to_owned());
        }
        names
    };
    let between = |first: &str, last: &str| {
        let mut names = vec![String::new(); count];
        (names[count - 1], names[0]) = (last.to_owned(), first.to_owned());
        names
    };
    match placement.name.as_str() {
        "single" => words(&["everything"]),
        "host_gc" => words(&["host writes", "copies"]),
        "epoch" => words(&["cold", "hot", "copies"]),
        "sepbit" => words(&[
            "rewrites of the short-lived",
            "other host writes",
            "copies of the short-lived",
            "young copies",
            "older copies",
            "oldest copies",
        ]),
        "midas" => [words(&["hot", "host writes"]), vec!["survivors".to_owned(); count.saturating_sub(2)]].concat(),
        "asa" => words(&["hot", "warm", "cold"]),
        "isotherm" => between("coldest copies", "hottest"),
        "dac" | "hotness" | "sfs" | "mdc" | "multilog" => between("coldest", "hottest"),
        "offline" => words(&["never written again"]),
        "ranges" => with_copies(words(&["other addresses"])),
        "streams" => with_copies(Vec::new()),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isotherm::build::{Environment, plan};

    /// Every placement's streams have names for streams that there are, and no others.
    #[test]
    fn names_are_those_of_streams_that_there_are() {
        for entry in isotherm::placement::PLACEMENTS {
            for gc in ["", ":gc=apart"] {
                let mut spec = DeviceSpec::default();
                spec.device.over_provisioning = Some(isotherm::quantity::Share(0.28));
                let Ok(name) = format!("{}{gc}", entry.name).parse() else { continue };
                spec.placement.name = name;
                let environment = Environment { logical_bytes: 64 << 20, ..Environment::default() };
                // Not every placement has the parameter, or is one that an online device can have.
                let Ok(plan) = plan(&spec, &environment) else { continue };
                let names = names(&spec, &plan);
                assert!(names.len() <= plan.streams as usize, "{}: {names:?}", spec.placement.name);
                let has_copies = names.last().is_some_and(|name| name == "copies");
                assert_eq!(has_copies, !gc.is_empty() || entry.name == "host_gc", "{}", spec.placement.name);
            }
        }
    }
}
