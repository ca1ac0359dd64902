//! Walks everything and names the first rule that is broken.

use alloc::format;
use alloc::string::{String, ToString};

use crate::chunks::Position;
use crate::shared::{Core, Rules};
use crate::tick::Tick;

impl<T> Core<T> {
    pub(crate) fn check(&self, rules: &impl Rules) -> Result<(), String> {
        self.nodes.check().map_err(|broken| broken.to_string())?;
        let mut filed = 0;
        let mut chunks = 0;
        for number in 0..self.slots.len() as u32 {
            let slot = &self.slots[number as usize];
            let (mut walked, mut wrong) = (0, None);
            if slot.live > 0 {
                self.chunks.for_each(&slot.list, |refs, first| {
                    chunks += 1;
                    walked += refs.len();
                    for (&node, position) in refs.iter().zip(first..) {
                        let misfiled = || self.misfiled(rules, number, node, position);
                        wrong = wrong.take().or_else(misfiled);
                    }
                });
            }
            filed += walked;
            if let Some(broken) = wrong {
                return Err(broken);
            }
            if walked != slot.live as usize {
                return Err(format!(
                    "{} counts {} timers and has {walked}",
                    self.name(rules, number),
                    slot.live
                ));
            }
            if self.witnessed(number).is_some_and(|min| self.least(number) != min) {
                return Err(format!(
                    "the witness of {} is not its earliest",
                    self.name(rules, number)
                ));
            }
            if rules.is_occupied(slot.level, number) != (walked > 0) {
                return Err(format!(
                    "{} has {walked} timers and is not marked so",
                    self.name(rules, number)
                ));
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
        let next = self.least_needed(rules);
        if next < self.stop {
            return Err(format!(
                "nothing is said to be needed before {}, and {next} is",
                self.stop
            ));
        }
        Ok(())
    }

    /// The first tick at which a slot needs the hand.
    fn least_needed(&self, rules: &impl Rules) -> Tick {
        let occupied =
            (0..self.slots.len() as u32).filter(|&number| self.slots[number as usize].live > 0);
        occupied.map(|number| rules.need(self, number)).min().unwrap_or(Tick::MAX)
    }

    /// The least due tick of an occupied slot, counted.
    fn least(&self, number: u32) -> Tick {
        let mut least = Tick::MAX;
        self.chunks.for_each(&self.slots[number as usize].list, |refs, _| {
            refs.iter().for_each(|&node| least = least.min(self.nodes.node(node).due()));
        });
        least
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
