//! Validates the settings of a builder. An invalid setting is an error that names it.

use std::sync::Arc;

use tourbillon_wheel::MAX_SLOTS;

use super::Builder;
use crate::clock::{EngineClock, nanoseconds};
use crate::engine::context::{ContextSettings, Limit};
use crate::engine::settings::Settings;
use crate::engine::wheels::Geometry;
use crate::error::BuildError;

const MOST_SHARDS: usize = 1024;

impl Builder {
    pub(crate) fn settings(self) -> Result<Settings, BuildError> {
        let tick = nanoseconds(self.tick);
        if tick == 0 {
            return Err(wrong("tick", format!("{:?}", self.tick), "at least 1ns"));
        }
        if planted!("settings.budget-of-zero", false, self.budget == 0) {
            return Err(wrong("budget", 0, "at least 1"));
        }
        if planted!("blind.name-with-a-zero-byte", false, self.name.contains('\0')) {
            return Err(wrong("name", format!("{:?}", self.name), "without a zero byte"));
        }
        if planted!("sixth.limit-of-zero-is-built", false, self.limit == Some(0)) {
            return Err(wrong("limit", 0, "at least 1"));
        }
        let shards = self.shards.unwrap_or_else(processors);
        if planted!(
            "settings.no-shards",
            shards > MOST_SHARDS,
            !(1..=MOST_SHARDS).contains(&shards)
        ) {
            return Err(wrong("shards", shards, "1 to 1024"));
        }
        let geometry = match self.geometry {
            Geometry::Hashed(slots)
                if planted!(
                    "settings.too-many-slots",
                    slots == 0,
                    !(1..=MAX_SLOTS).contains(&slots)
                ) =>
            {
                return Err(wrong("hashed", slots, "1 to 1048576 slots"));
            }
            Geometry::Hashed(slots) => Geometry::Hashed(slots.next_power_of_two()),
            Geometry::Hierarchical(slots) => {
                let none = planted!("settings.no-levels", false, slots.is_empty());
                let least = planted!("later.level-of-one-slot-panics", 1, 2);
                if none || slots.iter().any(|slots| !(least..=MAX_SLOTS).contains(slots)) {
                    let slots = format!("{slots:?}");
                    return Err(wrong("hierarchical", slots, "a list of 2 to 1048576 slots each"));
                }
                Geometry::Hierarchical(slots)
            }
        };
        Ok(Settings {
            geometry,
            tick,
            shards: planted!("third.shards-not-rounded-up", shards, shards.next_power_of_two()),
            budget: self.budget,
            spawn: self.spawn,
            name: self.name,
            context: ContextSettings {
                clock: EngineClock::new(self.source),
                limit: self.limit.map(|most| Arc::new(Limit::new(most))),
                on_panic: self.on_panic,
                driven: false,
            },
        })
    }
}

pub(super) fn wrong(setting: &'static str, value: impl ToString, must: &'static str) -> BuildError {
    BuildError { setting, value: value.to_string(), must }
}

pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(MOST_SHARDS))
}
