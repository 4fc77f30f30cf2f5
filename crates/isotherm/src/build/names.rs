//! Names in a specification, looked up whether or not the device has a use for them: a slip is told in any case.

use crate::dram::buffer::BUFFERS;
use crate::dram::partition::check_split;
use crate::ftl::FTLS;
use crate::nand::timing::TIMINGS;
use crate::placement::check_placement;
use crate::registry::{Entry, Parameters, PolicyName, SpecError, find};
use crate::spec::DeviceSpec;
use crate::victim::check_victim;

/// Looks up every policy that a specification names, and the keys of its parameters.
///
/// # Errors
/// An unknown name or parameter.
pub fn check_names(spec: &DeviceSpec) -> Result<(), SpecError> {
    check_name(FTLS, "ftl.name", &spec.ftl.name)?;
    check_placement(&spec.placement.name)?;
    check_victim(&spec.gc.victim)?;
    check_name(TIMINGS, "timing.preset", &spec.timing.preset.parse()?)?;
    if let Some(policy) = spec.dram.buffer.as_ref().filter(|policy| policy.name != "none") {
        check_name(BUFFERS, "dram.buffer", policy)?;
    }
    spec.dram.split.as_ref().map_or(Ok(()), check_split)
}

/// Looks up a policy in its registry, and the keys of its parameters.
///
/// # Errors
/// An unknown name or parameter.
pub fn check_name<B>(registry: &'static [Entry<B>], key: &str, policy: &PolicyName) -> Result<(), SpecError> {
    let entry = find(registry, key, policy)?;
    Parameters::new(policy, entry.parameters).map(|_| ())
}
