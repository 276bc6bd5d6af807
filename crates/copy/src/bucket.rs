//! A token bucket: the rate limit where the transport has none.

/// Bytes per second with a burst; time is an argument.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    bytes_per_s: u64,
    burst: u64,
    /// Bytes that may be sent at `at_ns`; negative: sent ahead.
    tokens: i128,
    at_ns: u64,
}

impl Bucket {
    /// Full at `now_ns`. `bytes_per_s` 0: no limit.
    pub fn new(bytes_per_s: u64, burst: u64, now_ns: u64) -> Bucket {
        Bucket { bytes_per_s, burst, tokens: i128::from(burst), at_ns: now_ns }
    }

    /// Another rate from now on.
    pub fn set_rate(&mut self, bytes_per_s: u64, now_ns: u64) {
        self.advance(now_ns);
        self.bytes_per_s = bytes_per_s;
        self.tokens = self.tokens.min(i128::from(self.burst));
    }

    fn advance(&mut self, now_ns: u64) {
        let passed = u128::from(now_ns.saturating_sub(self.at_ns));
        // 2^64 ns x 2^64 B/s is below 2^128; divided by 10^9 it is below 2^98.
        self.tokens += (passed * u128::from(self.bytes_per_s) / 1_000_000_000) as i128;
        self.tokens = self.tokens.min(i128::from(self.burst));
        self.at_ns = now_ns;
    }

    /// Takes `bytes` and returns how long to wait before they are sent, ns.
    pub fn take(&mut self, bytes: u64, now_ns: u64) -> u64 {
        if self.bytes_per_s == 0 {
            self.at_ns = now_ns;
            return 0;
        }
        self.advance(now_ns);
        self.tokens -= i128::from(bytes);
        if self.tokens >= 0 {
            return 0;
        }
        u64::try_from(-self.tokens * 1_000_000_000 / i128::from(self.bytes_per_s)).unwrap_or(u64::MAX)
    }
}
