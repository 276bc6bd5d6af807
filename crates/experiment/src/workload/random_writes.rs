//! Writes without a trace: sizes and times of issue drawn from distributions, at a mean rate.

use super::messages::Due;
use crate::active::Active;
use link::random::{stream_seed, Geometric, Random};
use spec::{ArrivalsSpec, WriteSizesSpec, WritesSpec};
use te::traffic_model::Distribution;
use units::{Span, Time, NS_PER_S};

/// Times are added up in ps, so that no rounding adds up: 4 KiB at 400 Gbit/s are 81,920.
const PS_PER_NS: u128 = 1000;
const PS_PER_S: u128 = NS_PER_S as u128 * PS_PER_NS;

/// The longest on or off period of a Pareto distribution over the shortest: without a bound the mean would need years.
const LONGEST: f64 = 1e6;

/// Bytes from which a mean size is a slip: 1 PB.
const MEAN_MAX: f64 = 1e15;

/// Writes that are drawn.
pub struct RandomWrites {
    rate_bps: u64,
    header: u64,
    sizes: Sizes,
    arrivals: Arrivals,
    /// A stream each, so that another distribution of the one leaves the other as it is.
    random: [Random; 2],
    active: Active,
    /// Active time that waits for room have cost, ns.
    waited_ns: u64,
    /// Active time since the start without these, ps. Range: u128.
    at_ps: u128,
    /// Data of the writes issued so far, bytes.
    issued_bytes: u128,
    next: Due,
}

enum Sizes {
    Fixed(u64),
    /// (bytes, weights up to it), ascending in the weights.
    Mix(Vec<(u64, u64)>),
    Distribution(Distribution),
}

enum Arrivals {
    Constant,
    Poisson(Geometric),
    OnOff { gap: Geometric, on: Period, off: Period, on_left_ps: u64 },
}

/// Distribution of on and off periods, ps.
enum Period {
    Exponential(Geometric),
    Pareto(Distribution),
}

impl RandomWrites {
    /// Returns true if writes can be drawn as `spec` says: no rate, size, weight or time is zero, and distributions
    /// have a mean.
    pub fn is_possible(spec: &WritesSpec) -> bool {
        let arrivals = match spec.arrivals {
            ArrivalsSpec::Constant | ArrivalsSpec::Poisson => true,
            ArrivalsSpec::OnOff { on_ns, off_ns, pareto_shape_e3 } => {
                on_ns > 0 && off_ns > 0 && pareto_shape_e3.is_none_or(|shape| shape > 1000)
            }
        };
        let active = spec.active.as_ref().is_none_or(Active::is_possible);
        arrivals && active && spec.rate_bps > 0 && Sizes::new(&spec.sizes).is_some_and(|sizes| sizes.mean().is_some())
    }

    /// Writes as `spec` says; `name` tells its random streams from others of the run with seed `run_seed`.
    ///
    /// # Panics
    /// When they are not possible.
    pub fn new(spec: &WritesSpec, run_seed: u64, name: &str) -> RandomWrites {
        assert!(RandomWrites::is_possible(spec), "a valid run's writes can be drawn");
        let random = |what: &str| Random::new(stream_seed(run_seed, &format!("workload/{name}/{what}")));
        let possible = "it was found possible";
        let sizes = Sizes::new(&spec.sizes).expect(possible);
        let (bytes, of) = sizes.mean().expect(possible);
        let gap_ps = bytes * 8 * PS_PER_S / (u128::from(spec.rate_bps) * of);
        let gap_ps = u64::try_from(gap_ps).unwrap_or(u64::MAX);
        let mut random = [random("sizes"), random("arrivals")];
        let arrivals = match spec.arrivals {
            ArrivalsSpec::Constant => Arrivals::Constant,
            ArrivalsSpec::Poisson => Arrivals::Poisson(Geometric::with_mean(gap_ps)),
            ArrivalsSpec::OnOff { on_ns, off_ns, pareto_shape_e3 } => {
                let period = |mean_ns| Period::new(mean_ns, pareto_shape_e3);
                let (mut on, off) = (period(on_ns), period(off_ns));
                let on_left_ps = on.draw(&mut random[1]);
                // All come in the part of the time that is on.
                let both = u128::from(on_ns) + u128::from(off_ns);
                let within_ps = (u128::from(gap_ps) * u128::from(on_ns) / both) as u64;
                Arrivals::OnOff { gap: Geometric::with_mean(within_ps), on, off, on_left_ps }
            }
        };
        RandomWrites {
            rate_bps: spec.rate_bps,
            header: u64::from(spec.header_bytes),
            sizes,
            arrivals,
            random,
            active: Active::new(spec.active, Time::ZERO),
            waited_ns: 0,
            at_ps: 0,
            issued_bytes: 0,
            next: Due { at: Time::NEVER, bytes: 0 },
        }
    }

    pub(super) fn start(&mut self, now: Time) {
        self.active = self.active.from(now);
        self.advance();
    }

    /// The next write is issued at `now`, if it has not been yet, and the later ones as long after it as they would be.
    pub(super) fn resume(&mut self, now: Time) {
        if now > self.next.at {
            self.waited_ns += self.active.until(now) - self.active.until(self.next.at);
            self.next.at = self.active.after(now, Span::ZERO);
        }
    }

    pub(super) fn peek(&self) -> Due {
        self.next
    }

    pub(super) fn advance(&mut self) {
        let [sizes, arrivals] = &mut self.random;
        match &mut self.arrivals {
            // Each write is followed by the time that it takes at the rate.
            Arrivals::Constant => self.at_ps = self.issued_bytes * 8 * PS_PER_S / u128::from(self.rate_bps),
            Arrivals::Poisson(gap) => self.at_ps += u128::from(gap.sample(arrivals)),
            Arrivals::OnOff { gap, on, off, on_left_ps } => {
                let mut left = gap.sample(arrivals);
                while left >= *on_left_ps {
                    left -= *on_left_ps;
                    self.at_ps += u128::from(*on_left_ps) + u128::from(off.draw(arrivals));
                    *on_left_ps = on.draw(arrivals);
                }
                *on_left_ps -= left;
                self.at_ps += u128::from(left);
            }
        }
        let bytes = self.sizes.draw(sizes);
        self.issued_bytes += u128::from(bytes);
        let since_ns = u64::try_from(self.at_ps / PS_PER_NS).unwrap_or(u64::MAX);
        let at = self.active.at(since_ns.saturating_add(self.waited_ns));
        self.next = Due { at, bytes: bytes + self.header };
    }
}

impl Sizes {
    fn new(spec: &WriteSizesSpec) -> Option<Sizes> {
        Some(match spec {
            WriteSizesSpec::Fixed { bytes } => Sizes::Fixed(Some(*bytes).filter(|&bytes| bytes > 0)?),
            WriteSizesSpec::Mix { sizes } => {
                let mut sum = 0u64;
                let mut all = vec![];
                for &[bytes, weight] in sizes {
                    // 2^16 sizes of 2^32 bytes and as much weight stay within the fractions of `mean`.
                    let in_range = (1..1 << 32).contains(&bytes) && (1..1 << 32).contains(&weight);
                    sum = sum.checked_add(weight).filter(|_| in_range)?;
                    all.push((bytes, sum));
                }
                Sizes::Mix(Some(all).filter(|all| (1..=1 << 16).contains(&all.len()))?)
            }
            WriteSizesSpec::Lognormal { median_bytes, sigma_e3 } => {
                if *median_bytes == 0 || *sigma_e3 == 0 {
                    return None;
                }
                let (median, sigma) = (*median_bytes as f64, f64::from(*sigma_e3) / 1e3);
                Sizes::Distribution(Distribution::Lognormal { median, sigma })
            }
            WriteSizesSpec::Pareto { shape_e3, min_bytes, max_bytes } => {
                if *shape_e3 == 0 || *min_bytes == 0 || min_bytes >= max_bytes {
                    return None;
                }
                let (least, most) = (*min_bytes as f64, *max_bytes as f64);
                Sizes::Distribution(Distribution::Pareto { shape: f64::from(*shape_e3) / 1e3, min: least, max: most })
            }
        })
    }

    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Mix(all) => {
                let at = random.below(all[all.len() - 1].1);
                all[all.partition_point(|&(_, sum)| sum <= at)].0
            }
            Sizes::Distribution(distribution) => distribution.draw(random),
        }
    }

    /// Mean bytes, as a fraction of at most 2^82 and 2^64; None: more than anybody writes at once.
    fn mean(&self) -> Option<(u128, u128)> {
        Some(match self {
            Sizes::Fixed(bytes) => (u128::from(*bytes), 1),
            Sizes::Mix(all) => {
                let before = std::iter::once(0).chain(all.iter().map(|&(_, sum)| sum));
                let bytes =
                    all.iter().zip(before).map(|(&(bytes, sum), past)| u128::from(bytes) * u128::from(sum - past));
                (bytes.sum(), u128::from(all[all.len() - 1].1))
            }
            // Half a byte less: it rounds down.
            Sizes::Distribution(distribution) => {
                let mean = Some(distribution.mean()).filter(|&mean| mean < MEAN_MAX)?;
                ((mean * 65_536.0) as u128 - 32_768, 65_536)
            }
        })
    }
}

impl Period {
    fn new(mean_ns: u64, pareto_shape_e3: Option<u32>) -> Period {
        let mean_ps = u128::from(mean_ns) * PS_PER_NS;
        let Some(shape) = pareto_shape_e3 else {
            return Period::Exponential(Geometric::with_mean(u64::try_from(mean_ps).unwrap_or(u64::MAX)));
        };
        // The mean grows with both ends alike.
        let of = |least: f64| Distribution::Pareto { shape: f64::from(shape) / 1e3, min: least, max: least * LONGEST };
        Period::Pareto(of(mean_ps as f64 / of(1.0).mean()))
    }

    fn draw(&mut self, random: &mut Random) -> u64 {
        match self {
            Period::Exponential(geometric) => geometric.sample(random),
            Period::Pareto(distribution) => distribution.draw(random),
        }
    }
}
