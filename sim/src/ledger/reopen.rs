//! After a crash or a failure: rows must match the acknowledged changes; unanswered requests may have taken effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tourbillon_durable::record::{Fate, Place, Record};
use tourbillon_durable::shard::{Opened, Request, Verdict};
use tourbillon_durable::store::QueueRow;
use tourbillon_durable::values::{Moment, QueueName};

use super::discard::clears;
use super::entry::{Entry, Gone, Kept, Phase};
use super::{Asked, Broken, Lease, Ledger, Name, names, promise};

impl Ledger {
    /// Checks these rows after the store was reopened, perhaps by the same process.
    pub fn reopened(
        &mut self,
        queues: &[(QueueName, QueueRow)],
        rows: &[(Place, Record)],
        (opened, continues): (Opened, bool),
        (wall, steady): (u64, u64),
    ) -> Result<(), Broken> {
        self.turn(wall, 0, false);
        if !continues {
            self.ends.clear();
            self.leases.values_mut().for_each(|lease| lease.unreceived = false);
        }
        self.check_settings(queues)?;
        let floors: BTreeMap<_, _> = queues.iter().map(|(name, row)| (name, row.floor)).collect();
        let lives = |row: &&(Place, Record)| {
            floors.get(&row.1.spec.queue).is_none_or(|floor| row.1.generation() >= *floor)
        };
        let rows: BTreeMap<Name, &(Place, Record)> = rows
            .iter()
            .filter(lives)
            .map(|row| ((row.1.spec.queue.clone(), row.1.spec.key.clone()), row))
            .collect();
        let all: BTreeSet<Name> = rows.keys().chain(self.entries.keys()).cloned().collect();
        self.out.clear();
        let mut stored = BTreeSet::new();
        for name in all {
            self.check_row(&name, rows.get(&name).copied())?;
            match rows.get(&name) {
                Some((place, record)) => {
                    self.adopt(name.clone(), *place, record, (wall, steady));
                    if let Place::Out(_) = place {
                        stored.insert((record.generation().0, record.occurrence, record.attempt));
                        self.forget_taker(&name, opened, wall);
                    }
                }
                None => drop(self.entries.remove(&name)),
            }
        }
        // A hand-out without a row that no taker received never happened, so its identity may be reused.
        self.leases.retain(|handed, lease| lease.received || stored.contains(handed));
        self.asked.clear();
        self.steady = steady;
        self.events.restart(wall);
        self.paced.clear();
        self.since_set.clear();
        self.revived = 0;
        self.listed.clear();
        self.opened += 1;
        Ok(())
    }

    fn check_settings(&mut self, queues: &[(QueueName, QueueRow)]) -> Result<(), Broken> {
        let living = || queues.iter().filter(|(_, row)| !row.deleted);
        let stored: BTreeMap<_, _> = living().map(|(name, row)| (name, &row.settings)).collect();
        for (queue, settings) in &self.settings {
            let set = |request: &Request| matches!(request, Request::Set { queue: of, .. } if of == queue);
            let open = self.asked.values().any(|asked| set(&asked.request) || clears(asked, queue));
            if stored.get(queue) != Some(&settings) && !open {
                return Err(Broken::new(
                    promise::DURABLE,
                    format!("the settings of {queue} are lost"),
                ));
            }
        }
        self.settings = living().map(|(name, row)| (name.clone(), row.settings.clone())).collect();
        Ok(())
    }

    /// Checks that a row is possible.
    fn check_row(&self, name: &Name, row: Option<&(Place, Record)>) -> Result<(), Broken> {
        let open: Vec<&Request> = self.asked.values().map(|asked| &asked.request).collect();
        let named = open.iter().any(|request| names(request, &name.0, &name.1));
        let makes = |request: &&Request| match request {
            Request::Schedule { queue, timers, .. } => {
                let key = |key: &Option<_>| {
                    key.as_ref().map_or(name.1.is_assigned(), |key| *key == name.1)
                };
                *queue == name.0 && timers.iter().any(|timer| key(&timer.key))
            }
            _ => false,
        };
        // A timer ended by an unanswered request may have been forgotten, if enough time has passed since.
        let remember = self.entries.get(name).map_or(0, |entry| entry.spec.remember.millis());
        let forgets = |asked: &Asked| match &asked.request {
            Request::Set { queue, .. } => *queue == name.0 && self.is_dead(name),
            Request::Settle { verdict: Verdict::Extend(_) | Verdict::Release(_), .. }
            | Request::Move { .. } => false,
            request => names(request, &name.0, &name.1) && asked.low + remember <= asked.high,
        };
        let (makes, forgets) = (open.iter().any(makes), self.asked.values().any(forgets));
        // One request may have replaced it, and another one may have ended the replacement.
        let naming = open.iter().filter(|request| names(request, &name.0, &name.1)).count();
        let forgets = forgets || makes && naming >= 2;
        let lost = |why: &str| {
            Err(Broken::new(
                promise::DURABLE,
                format!("{name:?} {why}: {row:?}, {:?}", self.entries.get(name)),
            ))
        };
        let Some(entry) = self.entries.get(name) else {
            return if row.is_none() || makes {
                Ok(())
            } else {
                lost("was never acknowledged, nor asked for")
            };
        };
        if entry.expired {
            return Ok(());
        }
        let lapsed = self.has_lapsed(name);
        // A hand-out that no taker received may have lapsed, too.
        let unreceived = (entry.handed().0, entry.occurrence, entry.attempt + 1);
        let unreceived = self
            .leases
            .range(unreceived..)
            .next()
            .is_some_and(|(handed, _)| handed.0 == unreceived.0);
        let Some((place, record)) = row else {
            let kept =
                matches!(entry.phase, Phase::Dead(kept) | Phase::Gone(_, kept) if kept.passed);
            let failed = (lapsed || unreceived) && entry.failed + 1 >= entry.spec.retry.attempts;
            let ended = self.moments(&name.0, entry).contains(&None);
            let cleared = self.asked.values().any(|asked| clears(asked, &name.0));
            let gone = kept || forgets || failed || ended || cleared;
            return if gone { Ok(()) } else { lost("is lost") };
        };
        if record.generation() != entry.spec.generation {
            return if makes && record.generation() > entry.spec.generation {
                Ok(())
            } else {
                lost("is another one")
            };
        }
        if (&record.spec.payload, &record.spec.webhook)
            != (&entry.spec.payload, &entry.spec.webhook)
        {
            return lost("has another payload or webhook");
        }
        let handed = (record.generation().0, record.occurrence, record.attempt);
        if matches!(place, Place::Out(_)) && entry.unsure == Some(handed) {
            return Ok(());
        }
        let living = !matches!(place, Place::Remembered(_));
        let moments = self.moments(&name.0, entry);
        if entry.loose || record.attempt == 0 && moments.len() > 1 {
            let ended = matches!(place, Place::Remembered(_)) && moments.contains(&None);
            if entry.loose || ended || moments.contains(&Some(record.due.millis())) {
                return Ok(());
            }
        }
        if matches!(entry.phase, Phase::Gone(..)) && living {
            return Err(Broken::new(
                promise::CANCEL,
                format!("{name:?} has ended, and lives: {record:?}"),
            ));
        }
        if (record.occurrence, record.attempt) < (entry.occurrence, entry.attempt) {
            return Err(Broken::new(
                promise::ATTEMPT,
                format!("{record:?} is older than {entry:?}"),
            ));
        }
        if named || lapsed || unreceived {
            return Ok(());
        }
        // A missed recurring timer may have taken another moment before it was cancelled.
        let ended = matches!(entry.phase, Phase::Gone(..)) && entry.spec.recurrence.is_some();
        let due = record.due.millis() == entry.due || ended;
        let same = due && record.occurrence == entry.occurrence;
        let waits = entry.phase != Phase::Pending
            || record.next_attempt.millis() == entry.next
            || record.attempt > entry.attempt;
        let dead = matches!(entry.phase, Phase::Dead(_)) == matches!(place, Place::Dead(_))
            || record.attempt > entry.attempt;
        let ended =
            matches!(entry.phase, Phase::Gone(..)) || living || record.attempt > entry.attempt;
        if same && waits && dead && ended { Ok(()) } else { lost("is not what was acknowledged") }
    }

    /// The process that was posting a timer has ended, or no taker has received it. It is due at once, and the attempt
    /// does not count as failed.
    fn forget_taker(&mut self, name: &Name, opened: Opened, wall: u64) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let handed = entry.handed();
        let lost = entry.spec.webhook.is_some() && opened == Opened::Started;
        if !lost && !self.leases.get(&handed).is_some_and(|lease| lease.unreceived) {
            return;
        }
        (entry.phase, entry.next, entry.closed) = (Phase::Pending, wall, true);
        // Until this change is durable, another crash undoes it.
        entry.unsure = Some(handed);
        self.out.remove(&handed.0);
    }

    fn is_dead(&self, name: &Name) -> bool {
        self.entries.get(name).is_some_and(|entry| matches!(entry.phase, Phase::Dead(_)))
    }

    /// Makes the row the known state.
    pub(super) fn adopt(
        &mut self,
        name: Name,
        place: Place,
        record: &Record,
        (wall, steady): (u64, u64),
    ) {
        let kept = |at: u64, passed: bool| Kept { low: at, high: at, seen: wall, passed };
        let old =
            self.entries.remove(&name).filter(|old| old.spec.generation == record.generation());
        let passed = old.as_ref().is_some_and(
            |old| matches!(old.phase, Phase::Dead(kept) | Phase::Gone(_, kept) if kept.passed),
        );
        let phase = match place {
            Place::Bucket(_) | Place::Waiting(..) => Phase::Pending,
            Place::Out(_) => Phase::Out,
            Place::Dead(at) => Phase::Dead(kept(at.millis(), passed)),
            Place::Remembered(until) => {
                let how = match record.fate {
                    Fate::Cancelled => Gone::Cancelled,
                    Fate::CancelledOut => Gone::CancelledOut,
                    _ => Gone::Done,
                };
                if how != Gone::Done {
                    self.ended.insert(record.generation().0, "cancelled");
                }
                Phase::Gone(how, kept(until.millis(), passed || until.millis() <= wall))
            }
        };
        let entry = Entry {
            spec: Arc::clone(&record.spec),
            due: record.due.millis(),
            next: record.next_attempt.millis(),
            behind: record.behind.map(Moment::millis),
            loose: false,
            expired: false,
            occurrence: record.occurrence,
            attempt: record.attempt,
            failed: record.failed,
            phase,
            closed: record.fate != Fate::Lapsed,
            unsure: None,
            given: old.as_ref().map_or(0, |old| old.given),
            token: old.and_then(|old| old.token),
        };
        if let (Phase::Out, Some(lease)) = (phase, record.lease) {
            // After a restart a lease runs for the rest of its time by the wall clock, but never for more than its full
            // length. The process that knows its end by the steady clock goes by that.
            let left = lease.until.millis().saturating_sub(wall).min(lease.length.millis());
            let handed = entry.handed();
            let old = self.leases.get(&handed);
            let before = old.map_or(wall, |lease| lease.wall);
            let (received, unreceived) =
                old.map_or((false, false), |lease| (lease.received, lease.unreceived));
            let end = steady + left + u64::from(left > 0);
            let end = *self.ends.entry((handed, lease.until.millis())).or_insert(end);
            self.leases
                .insert(handed, Lease { wall: before, end, lapsed: None, received, unreceived });
            self.out.insert(handed.0, handed);
            self.queue_of.insert(handed.0, record.spec.queue.clone());
        }
        self.entries.insert(name, entry);
    }
}
