//! Memory is estimated before it is allocated, so that too large a device is an error with a fix and not a kill.

use crate::error::EvalError;
use isotherm::quantity::ByteSize;

/// Memory that new allocations may take: nine tenths of what the system calls available. `None` where it cannot be known.
pub fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(available_in(&text)? / 10 * 9)
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
    fn more_than_there_is_is_refused() {
        if available().is_some() {
            let error = admit("a test", u64::MAX / 2, "do not").unwrap_err().to_string();
            assert!(error.contains("a test needs") && error.contains("available; do not"), "{error}");
        }
        admit("a test", 1, "").unwrap();
    }
}
