//! Named policies: how a user's `name:key=value,...` becomes a policy, and what `--help` and `list` say of it.
//!
//! Every kind of policy (victims, placements, hotness schemes, FTLs ...) has one table of [`Entry`]s, and every entry one of
//! [`Parameter`]s. The tables feed parsing, checks, help, documentation and the tests that run every entry; there is no
//! second list anywhere, and a range is written once.

mod error;
mod kind;
mod name;
mod parameter;
mod suggest;
mod values;

pub use error::SpecError;
pub use kind::{BELOW_ONE, Grain, Kind, parse_integer};
pub use name::{PolicyName, WRAPPED};
pub use parameter::Parameter;
pub use suggest::closest;
pub use values::Parameters;

/// One policy of a registry table.
pub struct Entry<B> {
    /// Published name, as users type it.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where it was published.
    pub paper: &'static str,
    /// Memory that it needs in the simulator beyond the device's own tables, in words.
    pub memory: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Builds it; a plain function so that tables can be constants.
    pub build: B,
}

/// Goes over every parameter of a table, with values at the bounds of its kind and beyond: what each test of a table asks.
/// Returns what is wrong: a default that is refused, a value at a bound that is refused, one beyond it that is accepted or
/// whose error does not name the key, and a parameter without help.
pub fn audit<B>(table: &'static [Entry<B>]) -> Vec<String> {
    table.iter().flat_map(|entry| audit_parameters(entry.name, entry.parameters)).collect()
}

/// As [`audit`], of a table of parameters that belongs to no entry; `name` stands for it in what is returned.
pub fn audit_parameters(name: &str, table: &'static [Parameter]) -> Vec<String> {
    let mut faults = Vec::new();
    for parameter in table {
        let given = |value: &str| {
            let pair = (parameter.key.to_owned(), value.to_owned());
            let policy = PolicyName { name: name.to_owned(), parameters: vec![pair] };
            Parameters::new(&policy, table).map(|_| ())
        };
        let place = format!("{name}:{}", parameter.key);
        let (mut allowed, refused) = parameter.kind.edges();
        allowed.push(parameter.default.to_owned());
        let accepted = allowed.iter().filter_map(|value| given(value).err());
        faults.extend(accepted.map(|error| format!("refused, but allowed: {error}")));
        for value in &refused {
            match given(value) {
                Err(error) if error.place == place => {}
                other => faults.push(format!("{place}={value} is not allowed, but gives {other:?}")),
            }
        }
        if parameter.help.is_empty() {
            faults.push(format!("{place} has no help"));
        }
    }
    faults
}

/// Finds a policy in its table.
///
/// # Errors
/// No such name; the error lists the names there are.
pub fn find<B>(table: &'static [Entry<B>], kind: &str, policy: &PolicyName) -> Result<&'static Entry<B>, SpecError> {
    table.iter().find(|e| e.name == policy.name).ok_or_else(|| {
        let names: Vec<_> = table.iter().map(|e| e.name).collect();
        SpecError::new(kind, format!("unknown name \"{}\"", policy.name), format!("choose from {}", names.join(", ")))
    })
}
