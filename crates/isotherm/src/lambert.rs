//! Lambert's W, in which the closed forms of cleaning are written (Desnoyers, SYSTOR'12; Xiang & Kurkoski 2012).

/// The principal branch of Lambert's W for `-1/e <= x < 0`: the solution of `w e^w = x` with `-1 <= w < 0`.
///
/// # Panics
/// If `x` lies outside that range (a caller's bug).
pub fn lambert_w(x: f64) -> f64 {
    let branch = -libm::exp(-1.0);
    assert!((branch..0.0).contains(&x), "W is computed on [-1/e, 0) alone, not at {x}");
    // Near the branch point the series in p is accurate and Halley's step would divide by nearly zero.
    let p = (2.0 * (1.0 + std::f64::consts::E * x)).max(0.0).sqrt();
    let mut w = -1.0 + p - p * p / 3.0 + 11.0 / 72.0 * p * p * p;
    if p < 1e-4 {
        return w;
    }
    for _ in 0..50 {
        let e = libm::exp(w);
        let f = w * e - x;
        let step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
        w -= step;
        if step.abs() < 1e-15 {
            break;
        }
    }
    w
}

/// Of the pages of a log that holds `alpha` times what is valid, is updated at random and is cleaned in FIFO order: the share that
/// is dead when its block is cleaned. 1 over the log's write amplification; 0 at `alpha = 1`.
pub(crate) fn dead_share(alpha: f64) -> f64 {
    if alpha <= 1.0 {
        return 0.0;
    }
    // Where the product underflows nothing survives anyway, and at the branch point it may be off by a rounding.
    let alpha = alpha.min(500.0);
    1.0 + lambert_w((-alpha * libm::exp(-alpha)).max(-libm::exp(-1.0))) / alpha
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
    }

    #[test]
    fn lambert_w_solves_its_equation() {
        for x in [-0.367_879, -0.36, -0.3, -0.1, -0.01, -1e-6] {
            let w = lambert_w(x);
            near(w * w.exp(), x, 1e-13);
            assert!((-1.0..0.0).contains(&w));
        }
        near(lambert_w(-(-1.0f64).exp()), -1.0, 1e-7);
    }

    #[test]
    fn what_lives_on_has_survived_one_turn_of_the_log() {
        for alpha in [1.0001, 1.01, 1.1, 1.5, 3.0, 10.0] {
            let dead = dead_share(alpha);
            near((-alpha * dead).exp(), 1.0 - dead, 1e-9);
        }
        near(1.0 / dead_share(1.3), 2.364, 0.001);
    }
}
