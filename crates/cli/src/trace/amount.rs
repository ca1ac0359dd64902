//! Amounts of time on the command line: plain numbers (`5420`) or durations (`1h30m20s`).
//!
//! All amounts of a trace are of one kind, which the tick determines. Durations are counted in nanoseconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// An amount of time, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number without a unit.
    Plain(u64),
    /// A duration, in nanoseconds.
    Nanos(u64),
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return text
                .parse()
                .map(Amount::Plain)
                .map_err(|_| format!("too large: the most is {}", u64::MAX));
        }
        if text.starts_with('-') {
            return Err("time does not run backwards: give 0 or more".into());
        }
        let duration = humantime::parse_duration(text).map_err(|error| {
            format!("{error}: give a whole number (5420) or a duration (1h30m20s, 450ms)")
        })?;
        u64::try_from(duration.as_nanos())
            .map(Amount::Nanos)
            .map_err(|_| "too long: durations reach 584 years, plain numbers further".into())
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, units) = self.split();
        unit.show(units).fmt(f)
    }
}

impl Amount {
    /// Its kind, and its number.
    pub(super) fn split(self) -> (Unit, u64) {
        match self {
            Amount::Plain(units) => (Unit::Plain, units),
            Amount::Nanos(nanos) => (Unit::Nanos, nanos),
        }
    }
}

/// The kind of amounts in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Plain,
    Nanos,
}

impl Unit {
    /// A moment or a duration, as text.
    pub(super) fn show(self, units: u64) -> String {
        match self {
            Unit::Plain => units.to_string(),
            Unit::Nanos => humantime::format_duration(Duration::from_nanos(units)).to_string(),
        }
    }

    /// The coarsest common tick that divides the amount.
    pub(super) fn usual_tick(self, units: u64) -> u64 {
        let usual = [1_000_000_000, 1_000_000, 1_000];
        match self {
            Unit::Plain => 1,
            Unit::Nanos => usual.into_iter().find(|tick| units.is_multiple_of(*tick)).unwrap_or(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_durations() {
        assert_eq!("5420".parse(), Ok(Amount::Plain(5420)));
        assert_eq!("1h30m20s".parse(), Ok(Amount::Nanos(5_420_000_000_000)));
        assert_eq!("450ms".parse(), Ok(Amount::Nanos(450_000_000)));
        assert_eq!("18446744073709551615".parse(), Ok(Amount::Plain(u64::MAX)));
        for wrong in
            ["", " ", "-5", "-1s", "1.5", "soon", "5 parsecs", "18446744073709551616", "600y"]
        {
            let answer = wrong.parse::<Amount>();
            assert!(answer.is_err(), "{wrong:?} gave {answer:?}");
        }
    }
}
