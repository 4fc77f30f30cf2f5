//! What benches share: processor time, medians and skewed traffic.

use isotherm::random::Random;

/// Nanoseconds of processor time that this thread has used, so that other work on the machine does not count.
pub fn cpu_ns() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The median of the values, the upper one of an even number.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A page of `pages` by Zipf's law with exponent 0.99, by inversion of the continuous distribution; ranks are scattered by
/// a multiplication.
pub fn zipf(random: &mut Random, pages: u64) -> u64 {
    let exponent = 1.0 - 0.99;
    let top = (pages as f64).powf(exponent);
    let rank = (1.0 + random.unit() * (top - 1.0)).powf(1.0 / exponent) as u64 - 1;
    rank.min(pages - 1).wrapping_mul(0x9E37_79B1) % pages
}
