//! Walks everything and names the first rule that is broken.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;

use crate::shared::{Core, READY, Rules};
use crate::tick::Tick;

impl<T> Core<T> {
    pub(crate) fn check(&self, rules: &impl Rules) -> Result<(), String> {
        self.nodes.check().map_err(|broken| broken.to_string())?;
        let mut found = vec![false; self.nodes.len() as usize];
        let mut live = vec![0_u32; self.slots.len()];
        let mut chunks = 0;
        for index in 0..self.nodes.len() {
            let node = self.nodes.node(index);
            if node.is_pending() {
                let slot = live.get_mut(node.at.slot() as usize);
                *slot.ok_or_else(|| format!("node {index} names a slot that does not exist"))? += 1;
            }
        }
        for (number, slot) in self.slots.iter().enumerate() {
            let name = || self.name(rules, number as u32);
            let mut walked = 0;
            let mut wrong = None;
            self.chunks.for_each(&slot.list, |refs| {
                walked += 1;
                for (node, due) in self.read(*refs, number as u32).living() {
                    found[node as usize] = true;
                    wrong = wrong.take().or_else(|| self.misfiled(rules, number as u32, due));
                }
            });
            chunks += walked as usize;
            if let Some(broken) = wrong {
                return Err(broken);
            }
            if slot.live != live[number] {
                return Err(format!(
                    "{} counts {} timers, {} name it",
                    name(),
                    slot.live,
                    live[number]
                ));
            }
            if walked != slot.list.chunks {
                return Err(format!(
                    "{} counts {} chunks and has {walked}",
                    name(),
                    slot.list.chunks
                ));
            }
            if slot.live == 0 && walked > 0 {
                return Err(format!("{} is empty and holds memory", name()));
            }
            if number as u32 != READY
                && rules.is_occupied(slot.level, number as u32) != (slot.live > 0)
            {
                return Err(format!("{} holds {} timers and is not marked so", name(), slot.live));
            }
        }
        if let Some(lost) =
            (0..self.nodes.len()).find(|&n| self.nodes.node(n).is_pending() && !found[n as usize])
        {
            return Err(format!("node {lost} is pending and no slot refers to it"));
        }
        if chunks + self.chunks.free_len() != self.chunks.len() {
            return Err("a chunk is lost".to_string());
        }
        if self.nodes.pending() > 0 && self.ready() == 0 && rules.next_stop(self) < self.stop {
            return Err(format!("stop is {} and the next is {}", self.stop, rules.next_stop(self)));
        }
        Ok(())
    }

    fn name(&self, rules: &impl Rules, number: u32) -> String {
        let slot = number - rules.number(self.slots[number as usize].level, 0).min(number);
        match number {
            READY => "the ready slot".to_string(),
            _ => format!("L{}[{slot}]", self.slots[number as usize].level + 1),
        }
    }

    /// What is wrong with a timer that is due then being filed there.
    fn misfiled(&self, rules: &impl Rules, number: u32, due: Tick) -> Option<String> {
        let (name, slot) = (|| self.name(rules, number), &self.slots[number as usize]);
        if due < self.earliest && due > self.hand {
            return Some(format!(
                "due {due} in {} is before the earliest, {}",
                name(),
                self.earliest
            ));
        }
        if number == READY {
            return (due > self.hand).then(|| format!("due {due} is ready at {}", self.hand));
        }
        let begin = rules.begin(self, number);
        if begin > due.max(self.hand) {
            return Some(format!(
                "due {due} in {} is before the hand meets it, at {begin}",
                name()
            ));
        }
        if rules.floor(number, due, self.hand) < slot.min && number != self.scan.slot {
            return Some(format!("due {due} in {} is below its bound {}", name(), slot.min));
        }
        None
    }
}
