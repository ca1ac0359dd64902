//! Checks every invariant and names the first that does not hold.

use alloc::format;
use alloc::string::{String, ToString};

use super::Timers;
use crate::chunks::FEW;
use crate::geometry::Geometry;
use crate::position::{NONE, Position};
use crate::tick::Tick;

/// The properties of a slot that depend on the kind of wheel, by the slot's number.
pub(crate) struct Slots<'a> {
    pub(crate) name: &'a dyn Fn(u32) -> String,
    /// When the hand next meets an occupied slot.
    pub(crate) begin: &'a dyn Fn(u32) -> Tick,
    /// The tick, not before the hand, at which an occupied slot must be settled.
    pub(crate) need: &'a dyn Fn(u32) -> Tick,
}

impl<T> Timers<T> {
    pub(crate) fn check(&self, geometry: &impl Geometry, slots: &Slots<'_>) -> Result<(), String> {
        self.nodes.check().map_err(|broken| broken.to_string())?;
        let (mut filed, mut chunks, mut rings) = (0, 0, 0);
        for number in 0..self.slots() {
            let (slot, occupied) = (&self.slots[number as usize], self.is_occupied(number));
            if geometry.is_marked(slot.level(), number) != occupied {
                return Err(format!("{} is marked wrongly", (slots.name)(number)));
            }
            if occupied {
                let (timers, all) = self.check_slot(slots, number)?;
                (filed, chunks) = (filed + timers, chunks + all);
                rings += self.rings(number).into_iter().filter(|&head| head != NONE).count();
            } else if (slot.bound(), slot.witness()) != (Tick::MAX, NONE) {
                return Err(format!("{} is empty and has a bound", (slots.name)(number)));
            }
        }
        let ready = self.ready.count(&self.nodes);
        if ready != self.ready.len() {
            return Err(format!("{} timers are said to be ready, {ready} are", self.ready.len()));
        }
        if filed + ready != self.nodes.pending() {
            return Err(format!(
                "{} timers are pending, {filed} filed, {ready} ready",
                self.nodes.pending()
            ));
        }
        if chunks + self.chunks.free_len() != self.chunks.len() {
            return Err("a chunk is lost".to_string());
        }
        let alone = (0..self.slots()).filter(|&number| self.lone(number).is_some());
        if self.chunks.bits() + alone.count() != filed {
            return Err("a bit is set for a reference that nobody has".to_string());
        }
        if (chunks - rings) * FEW != self.chunks.least() {
            return Err(
                "the chunks that must be worth their memory are not counted right".to_string()
            );
        }
        let next = self.least_needed(slots);
        if next < self.stop {
            return Err(format!(
                "nothing is said to be needed before {}, and {next} is",
                self.stop
            ));
        }
        Ok(())
    }

    /// Checks an occupied slot, and counts its timers and chunks.
    fn check_slot(&self, slots: &Slots<'_>, number: u32) -> Result<(usize, usize), String> {
        let (slot, name) = (&self.slots[number as usize], || (slots.name)(number));
        let (mut timers, mut chunks) = (0, 0);
        for head in self.rings(number) {
            let broken = |broken| format!("{}: {broken}", name());
            chunks += self.chunks.check(head, number).map_err(broken)?;
        }
        for (position, node) in self.filed(number) {
            timers += 1;
            if let Some(broken) = self.misfiled(slots, number, node, position) {
                return Err(broken);
            }
        }
        if slot.bound().max(self.hand) < self.earliest {
            let (name, min, earliest) = (name(), slot.bound(), self.earliest);
            return Err(format!("the bound of {name}, {min}, is before the earliest, {earliest}"));
        }
        if self.witnessed(number).is_some_and(|min| self.least(number) != min) {
            return Err(format!("the witness of {} is not its earliest", name()));
        }
        Ok((timers, chunks))
    }

    /// The first tick at which any slot must be settled.
    fn least_needed(&self, slots: &Slots<'_>) -> Tick {
        let occupied = (0..self.slots()).filter(|&number| self.is_occupied(number));
        occupied.map(|number| (slots.need)(number)).min().unwrap_or(Tick::MAX)
    }

    /// The least due tick of an occupied slot, found by reading all of it.
    fn least(&self, number: u32) -> Tick {
        let due = self.filed(number).map(|(_, node)| self.nodes.node(node).due());
        due.min().unwrap_or(Tick::MAX)
    }

    /// Describes what is wrong with this reference, if anything.
    fn misfiled(
        &self,
        slots: &Slots<'_>,
        number: u32,
        node: u32,
        position: Position,
    ) -> Option<String> {
        let (name, slot) = (|| (slots.name)(number), &self.slots[number as usize]);
        if node >= self.nodes.len() || !self.nodes.node(node).is_pending() {
            return Some(format!("{} refers to node {node}, where no timer is", name()));
        }
        let due = self.nodes.node(node).due();
        if self.nodes.node(node).position() != position || self.slot_of(node) != number {
            return Some(format!("{} refers to node {node}, which does not know it", name()));
        }
        if due < self.earliest && due > self.hand {
            return Some(format!(
                "due {due} in {} is before the earliest, {}",
                name(),
                self.earliest
            ));
        }
        let begin = (slots.begin)(number);
        if begin > due.max(self.hand) {
            return Some(format!(
                "due {due} in {} is before the hand meets it, at {begin}",
                name()
            ));
        }
        if due < slot.bound() && !self.scan.is_of(number) {
            return Some(format!("due {due} in {} is below its bound {}", name(), slot.bound()));
        }
        None
    }
}
