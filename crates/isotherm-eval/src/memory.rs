//! Memory is estimated before it is allocated, so that too large a device is an error with a fix and not a kill.

use crate::error::EvalError;
use isotherm::quantity::ByteSize;

/// Memory that new allocations may take: nine tenths of what the system calls available, or of what is left of a limit that the
/// process has (`ulimit -v`, `ulimit -d`). `None` where it cannot be known.
pub fn available() -> Option<u64> {
    let read = |path| std::fs::read_to_string(path).ok();
    let of_system = read("/proc/meminfo").and_then(|meminfo| available_in(&meminfo));
    let of_limits = read("/proc/self/limits").zip(read("/proc/self/status"));
    let left = of_limits.and_then(|(limits, status)| left_of(&limits, &status));
    Some(of_system.into_iter().chain(left).min()? / 10 * 9)
}

/// What is left of the limits of a `/proc/PID/limits`, by what its `status` says is used, in bytes; `None` without a limit.
fn left_of(limits: &str, status: &str) -> Option<u64> {
    let left = |(limit, used): (&str, &str)| {
        let limit = limits.lines().find_map(|line| line.strip_prefix(limit))?;
        let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
        let used = status.lines().find_map(|line| line.strip_prefix(used))?;
        let used = used.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
        Some(limit.saturating_sub(used))
    };
    [("Max address space", "VmSize:"), ("Max data size", "VmData:")].into_iter().filter_map(left).min()
}

/// `MemAvailable` of a `/proc/meminfo`, in bytes.
fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Refuses `what` if it needs more memory than there is.
///
/// # Errors
/// It does.
pub fn admit(what: &str, needed: u64, fix: &'static str) -> Result<(), EvalError> {
    let round = |bytes: u64| ByteSize(bytes >> 20 << 20);
    match available() {
        Some(available) if needed > available => {
            Err(EvalError::Memory { what: what.to_owned(), needed: round(needed), available: round(available), fix })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_kibibytes() {
        let text = "MemTotal:       24000000 kB\nMemFree:         1000 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available_in(text), Some(2 << 20));
        assert_eq!(available_in("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn the_nearest_limit_of_the_process_counts() {
        let limits = |address: &str, data: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max data size             {data:<20} unlimited            bytes     \n\
                 Max address space         {address:<20} unlimited            bytes     \n"
            )
        };
        let status = "Name:\tisotherm\nVmSize:\t   1024 kB\nVmData:\t    512 kB\n";
        assert_eq!(left_of(&limits("unlimited", "unlimited"), status), None);
        assert_eq!(left_of(&limits("4194304", "unlimited"), status), Some(3 << 20));
        assert_eq!(left_of(&limits("4194304", "1048576"), status), Some(512 << 10));
        assert_eq!(left_of(&limits("1000", "unlimited"), status), Some(0));
    }

    #[test]
    fn more_than_there_is_is_refused() {
        if available().is_some() {
            let error = admit("a test", u64::MAX / 2, "do not").unwrap_err().to_string();
            assert!(error.contains("a test needs") && error.contains("available; do not"), "{error}");
        }
        admit("a test", 1, "").unwrap();
    }
}
