//! Missed moments: which moments a recurring timer may have after starts, resumptions and clock settings.
//!
//! The shard changes a missed timer only when it reads it. Until the shard is idle, the ledger therefore keeps a set of
//! possible moments. Then the row shows the actual one.

use std::collections::{BTreeMap, BTreeSet};

use tourbillon_durable::record::{Place, Record};
use tourbillon_durable::values::{Moment, QueueName};

use super::entry::{Entry, Gone, Phase};
use super::{Broken, Ledger, Name, names, promise};

/// Starts, resumptions and clock settings, each with its wall-clock reading.
#[derive(Default)]
pub(super) struct Events {
    /// The last resumption of a queue, if it came after the last global event.
    resumed: BTreeMap<QueueName, Event>,
    last: Event,
    count: u64,
    /// The events since the shard was last idle, and the last one before.
    log: Vec<(Option<QueueName>, u64)>,
}

#[derive(Clone, Copy, Default)]
struct Event {
    wall: u64,
    /// The number of events before this one.
    nth: u64,
}

impl Events {
    pub(super) fn set(&mut self, wall: u64) {
        self.resumed.clear();
        self.last = Event { wall, nth: self.count };
        self.count += 1;
        self.log.push((None, wall));
    }

    pub(super) fn resume(&mut self, queue: &QueueName, wall: u64) {
        self.resumed.insert(queue.clone(), Event { wall, nth: self.count });
        self.count += 1;
        self.log.push((Some(queue.clone()), wall));
    }

    /// The shard is idle, so only the last global event still matters, and later resumptions of queues.
    fn forget(&mut self) {
        let resumed = self.resumed.iter().map(|(queue, event)| (Some(queue.clone()), event.wall));
        self.log = [(None, self.last.wall)].into_iter().chain(resumed).collect();
    }

    /// The process has ended, so earlier events no longer matter.
    pub(super) fn restart(&mut self, wall: u64) {
        *self = Events { count: self.count, ..Events::default() };
        self.set(wall);
    }

    /// The number of events so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The last event that concerns a timer. None if a client has set the timer's moment since.
    fn of(&self, queue: &QueueName, entry: &Entry) -> u64 {
        let event = self.resumed.get(queue).copied().unwrap_or(self.last);
        if event.nth < entry.given { 0 } else { event.wall }
    }
}

impl Ledger {
    /// The moments that a timer may have now. If `None` is among them, it may have ended.
    pub(super) fn moments(&self, queue: &QueueName, entry: &Entry) -> BTreeSet<Option<u64>> {
        let mut moments = BTreeSet::from([Some(entry.due)]);
        let fresh = entry.attempt == 0 && entry.behind.is_none();
        if entry.spec.recurrence.is_none() || !fresh || entry.phase != Phase::Pending {
            return moments;
        }
        let log = self.events.log.iter().filter(|(of, _)| of.as_ref().is_none_or(|of| of == queue));
        for event in log.map(|(_, wall)| *wall) {
            let selected = |due: u64| entry.selected(due, event);
            let missed = moments.iter().flatten().filter(|&&due| due + 10_000 < event);
            let taken: Vec<Option<u64>> = missed.map(|&due| selected(due)).collect();
            moments.extend(taken);
        }
        moments
    }

    pub(super) fn may_have_ended(&self, name: &Name) -> bool {
        let entry = self.entries.get(name);
        entry.is_some_and(|entry| self.moments(&name.0, entry).contains(&None))
    }

    /// Checks that a timer being handed out was not missed and has not expired.
    pub(super) fn is_not_missed(&self, record: &Record) -> Result<(), Broken> {
        let expires = record.spec.expires.map(|span| record.due + span);
        if expires.is_some_and(|at| at.millis() < self.wall) {
            let detail = format!("{record:?} is handed out at {}", self.wall);
            return Err(Broken::new(promise::EXPIRES, detail));
        }
        let (queue, key) = (&record.spec.queue, &record.spec.key);
        let Some(entry) = self.entries.get(&(queue.clone(), key.clone())) else { return Ok(()) };
        let (due, event) = (record.due.millis(), self.events.of(queue, entry));
        // An unanswered request may have set the timer's moment.
        let asked = self.asked.values().any(|asked| names(&asked.request, queue, key));
        let known = entry.spec.generation == record.generation() && !asked;
        let fresh = record.attempt == 1 && record.behind.is_none() && known;
        let missed = record.spec.recurrence.is_some() && fresh && due + 10_000 < event;
        if missed && entry.selected(due, event) != Some(due) {
            let detail = format!("{record:?} was missed at {event}, and is handed out");
            return Err(Broken::new(promise::RHYTHM, detail));
        }
        Ok(())
    }

    /// When the shard is idle, an expired timer that is not out must have been given up within a second.
    fn adopt_expired(&mut self, rows: &BTreeMap<Name, (Place, &Record)>) -> Result<(), Broken> {
        let expired = self.entries.iter().filter(|(_, entry)| entry.expired);
        let names: Vec<Name> = expired.map(|(name, _)| name.clone()).collect();
        for name in names {
            let Some((place, record)) = rows.get(&name) else {
                self.entries.remove(&name);
                continue;
            };
            let expires = record.spec.expires.map_or(u64::MAX, |span| (record.due + span).millis());
            let waits = matches!(place, Place::Bucket(_) | Place::Waiting(..));
            let due = record.next_attempt.millis() <= self.punctual(self.wall);
            if waits && due && expires.saturating_add(1000) < self.wall {
                let detail = format!("{record:?} is not given up at {}", self.wall);
                return Err(Broken::new(promise::EXPIRES, detail));
            }
            let received = self.leases.clone();
            let closed = self.entries[&name].closed;
            self.adopt(name.clone(), *place, record, (self.wall, self.steady));
            // Adopting a row resets the leases, as after a restart. Here they keep running.
            self.leases = received;
            if let Some(entry) = self.entries.get_mut(&name) {
                entry.closed |= closed && entry.attempt > 0;
            }
        }
        Ok(())
    }

    /// When the shard is idle, the rows show which moments the missed timers have taken.
    pub(super) fn pin<'a>(
        &mut self,
        rows: impl Iterator<Item = (Place, &'a Record)>,
    ) -> Result<(), Broken> {
        let rows: BTreeMap<Name, (Place, &Record)> =
            rows.map(|row| ((row.1.spec.queue.clone(), row.1.spec.key.clone()), row)).collect();
        self.adopt_expired(&rows)?;
        let doubtful = |(name, entry): (&Name, &Entry)| {
            let moments = self.moments(&name.0, entry);
            (entry.loose || moments.len() > 1).then(|| (name.clone(), moments))
        };
        let doubtful: Vec<_> = self.entries.iter().filter_map(doubtful).collect();
        self.events.forget();
        let punctual = self.punctual(self.wall);
        for (name, moments) in doubtful {
            let entry = self.entries.get_mut(&name).expect("its name was just read");
            let event = self.events.of(&name.0, entry);
            let row = rows.get(&name).filter(|(_, row)| row.generation() == entry.spec.generation);
            if let Some((Place::Out(_), row)) = row {
                (entry.due, entry.loose) = (row.due.millis(), false);
                entry.behind = row.behind.map(Moment::millis);
                continue;
            }
            if entry.phase != Phase::Pending {
                entry.loose = false;
                continue;
            }
            let (due, loose) = match row {
                Some((Place::Bucket(_) | Place::Waiting(..), row)) => {
                    entry.next = row.next_attempt.millis();
                    entry.behind = row.behind.map(Moment::millis);
                    (Some(row.due.millis()), entry.loose)
                }
                _ => (None, entry.loose),
            };
            let missed = due.is_some_and(|due| {
                due + 10_000 < event
                    && entry.next <= punctual
                    && entry.behind.is_none()
                    && entry.attempt == 0
                    && entry.selected(due, event) != Some(due)
            });
            if missed || !loose && !moments.contains(&due) {
                let detail = format!("{entry:?} has {row:?}, not one of {moments:?} after {event}");
                return Err(Broken::new(promise::RHYTHM, detail));
            }
            entry.loose = false;
            match due {
                Some(due) => entry.due = due,
                // The timer has ended, and has been forgotten since.
                None if row.is_none() => drop(self.entries.remove(&name)),
                None => {
                    // The clock may have been set back since the timer ended. The row shows when it ended.
                    let ended = match row {
                        Some((Place::Remembered(until), row)) => until.back(row.spec.remember),
                        _ => Moment::ZERO,
                    };
                    let latest = self.wall.max(ended.millis());
                    entry.end(Gone::Done, (self.wall.min(event), latest));
                }
            }
        }
        Ok(())
    }
}
