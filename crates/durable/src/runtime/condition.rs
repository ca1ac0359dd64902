//! The condition of a runtime: its health, notices, events and the damage found. The runtime's thread publishes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::feed::Feed;
use super::{Failure, quietly};
use crate::message::FarOff;
use crate::store::{Damage, Image};
use crate::sync::{Mutex, lock};
use crate::values::Event;

/// The number of past notices that a new reader receives.
const KEPT: usize = 100;

/// Something an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The wall clock is far off: at start more than a day behind its latest recorded reading or more than a year ahead
    /// of it, or a jump of more than a year. Timers follow it even so; check the clock.
    Clock(FarOff),
    /// Rows cannot be read. Other timers are not affected; check the store.
    Damaged(Damage),
    /// The store has failed, with this reason, and is being reopened.
    Failed(Arc<str>),
    /// The store was reopened and accepts writes again.
    Reopened,
}

/// Whether the store accepts writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// It accepts writes.
    Ready,
    /// It has failed, with this last reason, and is being reopened until that succeeds. Nothing is handed out.
    Failing(Arc<str>),
    /// It was closed.
    Closed,
}

/// Called once with an image of the store, on the runtime's thread.
pub(crate) type ImageReply = Box<dyn FnOnce(Result<Image, Failure>) + Send>;

pub(crate) struct Condition {
    /// Requests for an image of the store.
    pub(super) images: Mutex<Vec<ImageReply>>,
    /// The name of the store.
    pub(crate) name: u64,
    pub(crate) events: Feed<Event>,
    pub(crate) notices: Feed<Notice>,
    health: Mutex<Health>,
    /// Damage found so far.
    damage: Mutex<BTreeSet<Damage>>,
}

impl Condition {
    pub(crate) fn new(name: u64) -> Self {
        let (images, health) = (Mutex::new(Vec::new()), Mutex::new(Health::Ready));
        let (events, notices, damage) = (Feed::new(0), Feed::new(KEPT), Mutex::default());
        Condition { images, name, events, notices, health, damage }
    }

    /// The damage found since the start.
    pub(crate) fn damage(&self) -> Vec<Damage> {
        lock(&self.damage).iter().cloned().collect()
    }

    /// Sends a notice for each new damage.
    pub(super) fn tell_damage(&self, found: Vec<Damage>) {
        for damage in found {
            if lock(&self.damage).insert(damage.clone()) {
                self.notices.tell(&Notice::Damaged(damage));
            }
        }
    }

    /// Takes the requests for an image.
    pub(super) fn take_images(&self) -> Vec<ImageReply> {
        std::mem::take(&mut *lock(&self.images))
    }

    /// Answers every request for an image with a failure.
    pub(super) fn refuse_images(&self, failure: &Failure) {
        for reply in self.take_images() {
            quietly(|| reply(Err(failure.clone())));
        }
    }

    pub(crate) fn health(&self) -> Health {
        lock(&self.health).clone()
    }

    /// Records that the store has failed, or could not be opened. Only the first failure sends a notice.
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
