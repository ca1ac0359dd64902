//! The condition of a runtime: what the thread tells those who watch it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::feed::Feed;
use super::{Failure, quietly};
use crate::message::FarOff;
use crate::store::{Damage, Image};
use crate::sync::{Mutex, lock};
use crate::values::Event;

/// The notices that somebody who comes later still gets.
const KEPT: usize = 100;

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The wall clock is far off: a start more than a day before the greatest wall clock seen, or a jump of more than a
    /// year. Timers follow it all the same: look at the clock.
    Clock(FarOff),
    /// Rows cannot be read. Other timers are not affected; check the store.
    Damaged(Damage),
    /// The store has failed and is being opened anew: why.
    Failed(Arc<str>),
    /// The store was opened anew, and is written again.
    Reopened,
}

/// Whether the store is written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// It takes writes.
    Ready,
    /// It has failed and is being opened anew, without end: why it was not opened the last time. Nothing is handed out.
    Failing(Arc<str>),
    /// It was closed.
    Closed,
}

/// Called once with a state of the store, on the runtime's thread.
pub(crate) type ImageReply = Box<dyn FnOnce(Result<Image, Failure>) + Send>;

pub(crate) struct Condition {
    /// Those who want a state of the store.
    pub(super) images: Mutex<Vec<ImageReply>>,
    /// The name of the store.
    pub(crate) name: u64,
    pub(crate) events: Feed<Event>,
    pub(crate) notices: Feed<Notice>,
    health: Mutex<Health>,
    /// What was found that cannot be read.
    damage: Mutex<BTreeSet<Damage>>,
}

impl Condition {
    pub(crate) fn new(name: u64) -> Self {
        let (images, health) = (Mutex::new(Vec::new()), Mutex::new(Health::Ready));
        let (events, notices, damage) = (Feed::new(0), Feed::new(KEPT), Mutex::default());
        Condition { images, name, events, notices, health, damage }
    }

    /// What was found that cannot be read, since the start.
    pub(crate) fn damage(&self) -> Vec<Damage> {
        lock(&self.damage).iter().cloned().collect()
    }

    /// Sends a notice for each damage that is new.
    pub(super) fn tell_damage(&self, found: Vec<Damage>) {
        for damage in found {
            if lock(&self.damage).insert(damage.clone()) {
                self.notices.tell(&Notice::Damaged(damage));
            }
        }
    }

    /// Those who want a state of the store, each once.
    pub(super) fn take_images(&self) -> Vec<ImageReply> {
        std::mem::take(&mut *lock(&self.images))
    }

    /// Nobody gets a state of the store now.
    pub(super) fn refuse_images(&self, failure: &Failure) {
        for reply in self.take_images() {
            quietly(|| reply(Err(failure.clone())));
        }
    }

    pub(crate) fn health(&self) -> Health {
        lock(&self.health).clone()
    }

    /// The store has failed, or could not be opened: the first failure is told.
    pub(super) fn failed(&self, why: &Arc<str>) {
        let before = std::mem::replace(&mut *lock(&self.health), Health::Failing(why.clone()));
        if before == Health::Ready {
            self.notices.tell(&Notice::Failed(why.clone()));
        }
    }

    pub(super) fn reopened(&self) {
        *lock(&self.health) = Health::Ready;
        self.notices.tell(&Notice::Reopened);
    }

    pub(super) fn closed(&self) {
        *lock(&self.health) = Health::Closed;
        self.events.close();
        self.notices.close();
    }
}
