//! Numbers from a seed, biased towards values at which timers may fail.
//!
//! Moments are often at the edge of a bucket, at the window's end, at powers of two, in the past, or in the far future.

use tourbillon_durable::bucket::Level;
use tourbillon_durable::values::Moment;

/// SplitMix64: the same seed gives the same run everywhere.
pub struct Random(u64);

impl Random {
    /// A generator for that seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// True with a probability of 1 in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Selects one of these.
    pub fn pick<X: Copy>(&mut self, from: &[X]) -> X {
        from[self.below(from.len() as u64) as usize]
    }

    /// A number within two milliseconds of another.
    fn near(&mut self, millis: u64) -> u64 {
        (millis + self.below(5)).saturating_sub(2)
    }

    /// A length of time in milliseconds, often near the width of a bucket.
    pub fn length(&mut self) -> u64 {
        let widths =
            [Level::Second, Level::Minute, Level::Hour, Level::Day, Level::Month, Level::Era];
        match self.below(10) {
            0 => 0,
            1..=3 => self.below(5_000),
            4 => self.below(120_000),
            5 | 6 => {
                let width = self.pick(&widths[..3]).width();
                self.near(width)
            }
            7 => {
                let width = self.pick(&widths).width();
                let times = 1 + self.below(3);
                self.near(width * times)
            }
            8 => {
                let power = 1 << self.below(38);
                self.near(power)
            }
            _ => self.below(4_000_000),
        }
    }

    /// A moment, often near an edge.
    pub fn moment(&mut self, now: u64) -> Moment {
        let hour = Level::Hour.width();
        let millis = match self.below(12) {
            0 => self.below(now),
            1 => now.saturating_sub(self.length()),
            2..=4 => {
                let levels = [Level::Second, Level::Minute, Level::Hour, Level::Day];
                let width = self.pick(&levels).width();
                let times = 1 + self.below(2);
                self.near((now / width + times) * width)
            }
            // The window ends there if there is room.
            5 | 6 => self.near((now + 600_000).div_ceil(hour) * hour),
            7 if self.one_in(4) => Moment::MAX.millis() - self.below(3),
            _ => now + self.length(),
        };
        Moment::from_millis(millis)
    }
}
