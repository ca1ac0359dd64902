//! Deliveries: each one must be in the right lane, in time, and not leased to another taker.

use std::collections::BTreeSet;

use tourbillon_durable::shard::{Delivery, Request};
use tourbillon_durable::values::{QueueName, Span};

use super::answers::{Outcomes, lie};
use super::entry::{Entry, Phase};
use super::{Asked, Broken, Ledger, promise};

impl Ledger {
    /// Checks deliveries that a taker received. `foreign` is one not meant for it. Webhook time-outs extend the lease.
    pub(super) fn all_delivered(
        &mut self,
        foreign: Option<&Delivery>,
        all: &[Delivery],
        lease: Span,
    ) -> Outcomes {
        if let Some(one) = foreign {
            return Err(Broken::new(promise::LANE, format!("{one:?} is given to another lane")));
        }
        for one in all {
            let timeout = one.webhook.as_ref().map_or(0, |webhook| webhook.timeout.millis());
            if one.lease_until != one.handed + Span::from_millis(timeout + lease.millis()) {
                return lie(format!("{one:?} has another lease than {timeout} and {lease}"));
            }
            self.delivered(&one.queue, one.clone())?;
        }
        let queues: BTreeSet<&QueueName> = all.iter().map(|one| &one.queue).collect();
        for queue in queues {
            // For a loose entry the intended hand-out time is not known.
            let entries = all.iter().filter(|one| one.queue == *queue).map(|one| {
                let entry = &self.entries[&(queue.clone(), one.token.key.clone())];
                (!entry.loose && !entry.expired).then_some((entry.next, entry.spec.generation))
            });
            if !entries.flatten().is_sorted() {
                return lie(format!("not longest due first: {all:?}"));
            }
        }
        Ok(())
    }

    fn delivered(&mut self, queue: &QueueName, delivery: Delivery) -> Outcomes {
        let token = &delivery.token;
        let name = (queue.clone(), token.key.clone());
        if let Some(how) = self.ended.get(&token.generation.0) {
            return Err(Broken::new(
                promise::CANCEL,
                format!("{name:?} was {how}, and is delivered: {token:?}"),
            ));
        }
        if self.has_lapsed(&name) {
            self.apply_lapse(&name);
        }
        let broken = |promise, why: &str, entry: &Entry| {
            Err(Broken::new(promise, format!("{why}: {delivery:?} of {entry:?}")))
        };
        let moments = self.entries.get(&name).map(|entry| self.moments(queue, entry));
        let Some(entry) =
            self.entries.get_mut(&name).filter(|entry| entry.spec.generation == token.generation)
        else {
            return lie(format!("{token:?} is delivered and not known"));
        };
        let due = delivery.due.millis();
        let may = moments.is_some_and(|moments| moments.contains(&Some(due)));
        if entry.loose {
            (entry.due, entry.next) = (due, due);
        } else if may && entry.due != due {
            // After a `run` its next attempt remains the moment of that run.
            (entry.due, entry.next) = (due, due.max(entry.next));
        }
        if entry.expired && entry.phase != Phase::Out {
            (entry.due, entry.occurrence, entry.phase) = (due, token.occurrence, Phase::Pending);
            entry.next = entry.next.min(delivery.handed.millis());
            entry.attempt = entry.attempt.min(token.attempt - 1);
        }
        let redrives = |asked: &Asked| matches!(&asked.request, Request::Redrive { queue: of, .. } if of == queue);
        match entry.phase {
            Phase::Pending => {}
            Phase::Dead(_) if self.asked.values().any(redrives) => {
                entry.revive(delivery.due.millis());
                self.revived += 1;
            }
            Phase::Out => return broken(promise::LEASE, "its lease runs", entry),
            _ => return broken(promise::CANCEL, "it has ended", entry),
        }
        if token.occurrence != entry.occurrence || delivery.due.millis() != entry.due {
            return broken(promise::RHYTHM, "another occurrence", entry);
        }
        if token.attempt <= entry.attempt {
            return broken(promise::ATTEMPT, "its attempt did not rise", entry);
        }
        let Some(lease) =
            self.leases.get_mut(&(token.generation.0, token.occurrence, token.attempt))
        else {
            return broken(promise::DURABLE, "no commit has its attempt", entry);
        };
        if lease.wall < entry.next || delivery.handed.millis() < entry.next {
            return broken(promise::EARLY, &format!("handed out at {}", lease.wall), entry);
        }
        if (&delivery.payload, &delivery.webhook) != (&entry.spec.payload, &entry.spec.webhook) {
            return broken(promise::TRUE, "another payload or webhook", entry);
        }
        (lease.received, lease.unreceived) = (true, false);
        entry.closed = false;
        entry.unsure = None;
        entry.attempt = token.attempt;
        entry.phase = Phase::Out;
        entry.token = Some(delivery.token);
        Ok(())
    }
}
