//! Walks everything and names the first rule that is broken.

use alloc::format;
use alloc::string::{String, ToString};

use crate::chunks::{FEW, Position};
use crate::nodes::NONE;
use crate::rules::Rules;
use crate::shared::Core;
use crate::tick::Tick;

impl<T> Core<T> {
    pub(crate) fn check<K: Rules>(&self, rules: &K) -> Result<(), String> {
        self.nodes.check().map_err(|broken| broken.to_string())?;
        let (mut filed, mut chunks, mut rings) = (0, 0, 0);
        for number in 0..self.slots.len() as u32 {
            let (slot, occupied) = (&self.slots[number as usize], self.is_occupied(number));
            if rules.is_occupied(slot.level, number) != occupied {
                return Err(format!("{} is marked wrongly", self.name(rules, number)));
            }
            if occupied {
                let (timers, all) = self.check_slot(rules, number)?;
                (filed, chunks) = (filed + timers, chunks + all);
                rings += self.rings(number).into_iter().filter(|&head| head != NONE).count();
            } else if (slot.min, slot.witness) != (Tick::MAX, NONE) {
                return Err(format!("{} is empty and has a bound", self.name(rules, number)));
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
        let alone = (0..self.slots.len() as u32).filter(|&number| self.lone(number).is_some());
        if self.chunks.bits() + alone.count() != filed {
            return Err("a bit is set for a reference that nobody has".to_string());
        }
        if (chunks - rings) * FEW != self.chunks.least {
            return Err(
                "the chunks that must be worth their memory are not counted right".to_string()
            );
        }
        let next = self.least_needed(rules);
        if next < self.stop {
            return Err(format!(
                "nothing is said to be needed before {}, and {next} is",
                self.stop
            ));
        }
        Ok(())
    }

    /// Walks an occupied slot, and counts its timers and its chunks.
    fn check_slot<K: Rules>(&self, rules: &K, number: u32) -> Result<(usize, usize), String> {
        let (slot, name) = (&self.slots[number as usize], || self.name(rules, number));
        let (mut timers, mut chunks) = (0, 0);
        for head in self.rings(number) {
            let broken = |broken| format!("{}: {broken}", name());
            chunks += self.chunks.check(head, number).map_err(broken)?;
        }
        for (position, node) in self.filed(number) {
            timers += 1;
            if let Some(broken) = self.misfiled(rules, number, node, position) {
                return Err(broken);
            }
        }
        if slot.min.max(self.hand) < self.earliest {
            let (name, min, earliest) = (name(), slot.min, self.earliest);
            return Err(format!("the bound of {name}, {min}, is before the earliest, {earliest}"));
        }
        if self.witnessed(number).is_some_and(|min| self.least(number) != min) {
            return Err(format!("the witness of {} is not its earliest", name()));
        }
        Ok((timers, chunks))
    }

    /// The first tick at which a slot needs the hand.
    fn least_needed(&self, rules: &impl Rules) -> Tick {
        let occupied = (0..self.slots.len() as u32).filter(|&number| self.is_occupied(number));
        occupied.map(|number| rules.need(self, number)).min().unwrap_or(Tick::MAX)
    }

    /// The least due tick of an occupied slot, counted.
    fn least(&self, number: u32) -> Tick {
        let due = self.filed(number).map(|(_, node)| self.nodes.node(node).due());
        due.min().unwrap_or(Tick::MAX)
    }

    fn name(&self, rules: &impl Rules, number: u32) -> String {
        rules.slot_place(self.slots[number as usize].level, number).to_string()
    }

    /// What is wrong with a reference to a node being there.
    fn misfiled(
        &self,
        rules: &impl Rules,
        number: u32,
        node: u32,
        position: Position,
    ) -> Option<String> {
        let (name, slot) = (|| self.name(rules, number), &self.slots[number as usize]);
        if node >= self.nodes.len() || !self.nodes.node(node).is_pending() {
            return Some(format!("{} refers to node {node}, where no timer is", name()));
        }
        let due = self.nodes.node(node).due();
        if self.nodes.node(node).position != position || self.slot_of(node) != number {
            return Some(format!("{} refers to node {node}, which does not know it", name()));
        }
        if due < self.earliest && due > self.hand {
            return Some(format!(
                "due {due} in {} is before the earliest, {}",
                name(),
                self.earliest
            ));
        }
        let begin = rules.begin(self, number);
        if begin > due.max(self.hand) {
            return Some(format!(
                "due {due} in {} is before the hand meets it, at {begin}",
                name()
            ));
        }
        if due < slot.min && number != self.scan.slot {
            return Some(format!("due {due} in {} is below its bound {}", name(), slot.min));
        }
        None
    }
}
