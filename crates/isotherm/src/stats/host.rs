//! What the host asked for.

crate::counters! {
    /// What the host asked for, as the device counted it.
    #[derive(Copy, Eq)]
    pub struct HostCounters {
        /// Bytes of write requests.
        bytes_written: u64,
        /// Bytes of read requests.
        bytes_read: u64,
        /// Bytes of trim requests.
        bytes_trimmed: u64,
        /// Pages touched by write requests, partly or whole.
        pages_written: u64,
        /// Pages touched by read requests.
        pages_read: u64,
        /// Whole pages that trim requests covered (partly covered pages keep their data).
        pages_trimmed: u64,
        /// Pages read that held no data: no flash was touched for them.
        pages_read_unmapped: u64,
        /// Page writes that covered only a part of a page (read-modify-write where the page held data).
        pages_partly_written: u64,
        /// Flush requests.
        flushes: u64,
    }
}
