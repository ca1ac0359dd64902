//! An event during a trial is not lost, whichever code makes it and whichever trial it is: an operation whose condition
//! became true during its own trial is completed without another check.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use self::Event::{Expires, Other, OtherTrial, Own, Watches};
use crate::common::{HOUR, Log, SECOND, within};
use crate::{End, Flag, Op, is_empty, purgatory};
use tourbillon::{Outcome, Purgatory, VirtualClock};

/// What happens during a trial.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The condition checks its own key.
    Own,
    /// Another thread checks the key.
    Other,
    /// The condition of another operation, on another thread, checks the key.
    OtherTrial,
    /// The condition watches another operation under the key.
    Watches,
    /// The timeout.
    Expires,
}

/// What happens during each trial, from the first on. In the last of them, just before the last event, the condition
/// becomes true, unseen by that trial. The first trial is made before the operation is watched, the second after that.
const SCRIPTS: &[&[&[Event]]] = &[
    // The trial before it is watched: no check can notice, and the second trial sees it.
    &[&[Own]],
    &[&[Other]],
    &[&[Watches]],
    // The trial by the thread that adds it.
    &[&[], &[Own]],
    &[&[], &[Other]],
    &[&[], &[OtherTrial]],
    &[&[], &[Watches, Own]],
    &[&[], &[Watches, Other]],
    &[&[], &[Expires]],
    &[&[], &[Expires, Other]],
    // The trial by a check.
    &[&[], &[], &[Own]],
    &[&[], &[], &[Other]],
    &[&[], &[], &[OtherTrial]],
    &[&[], &[], &[Watches, Own]],
    &[&[], &[], &[Watches, Other]],
    &[&[], &[], &[Own, Other]],
    &[&[], &[], &[Other, Own]],
    &[&[], &[], &[Other, Other]],
    &[&[], &[], &[Expires]],
    &[&[], &[], &[Expires, Own]],
    &[&[], &[], &[Expires, Other]],
    &[&[], &[], &[Other, Expires]],
    // A trial that is made because of a check during the one before.
    &[&[], &[], &[Other], &[Own]],
    &[&[], &[], &[Other], &[Other]],
    &[&[], &[], &[Own], &[Other]],
    &[&[], &[], &[Own], &[Own, Other]],
    &[&[], &[], &[Own], &[Other, Own]],
    &[&[], &[], &[OtherTrial], &[Other, OtherTrial]],
    &[&[], &[], &[Own], &[Watches, Other]],
    &[&[], &[], &[Own], &[Expires]],
    &[&[], &[], &[OtherTrial], &[Other]],
    &[&[], &[], &[Own], &[Other], &[Own]],
    &[&[], &[], &[Own], &[Other], &[Own, Other]],
    // The last trial, after the timeout.
    &[&[], &[], &[Expires], &[Own]],
    &[&[], &[], &[Expires], &[Other]],
    &[&[], &[], &[Expires], &[OtherTrial]],
    &[&[], &[], &[Expires], &[Other], &[Own]],
    &[&[], &[], &[Expires], &[Own], &[Other, Own]],
    &[&[], &[], &[Expires], &[Own], &[Other]],
    &[&[], &[], &[Expires], &[Other], &[Other]],
];

fn make(event: Event, purgatory: &Purgatory<u64, Op>, clock: &VirtualClock) {
    let (own, clock) = (purgatory.clone(), clock.clone());
    match event {
        Own => _ = purgatory.check(&1),
        Other => _ = thread::spawn(move || own.check(&1)).join().unwrap(),
        OtherTrial => {
            let check = own.clone();
            let condition = move || {
                check.check(&1);
                true
            };
            let op = Op::new(condition, |_| ());
            let add = move || own.try_complete_else_watch(op, [2], HOUR).unwrap();
            assert_eq!(thread::spawn(add).join().unwrap(), Outcome::Completed);
        }
        Watches => {
            let op = Op::new(|| false, |_| ());
            assert_eq!(own.try_complete_else_watch(op, [1], HOUR).unwrap(), Outcome::Watched);
        }
        Expires => thread::spawn(move || clock.advance(SECOND)).join().unwrap().unwrap(),
    }
}

/// The operation is completed without another check, whatever else happens.
#[test]
fn an_event_during_a_trial_is_not_lost() {
    for script in SCRIPTS {
        within(move || {
            let (purgatory, timer, clock) = purgatory();
            let (log, flag, tried) = (Log::new(), Flag::new(), Arc::new(AtomicUsize::new(0)));
            let (own, met, count, time) =
                (purgatory.clone(), flag.clone(), tried.clone(), clock.clone());
            let condition = move || {
                let seen = met.is_set();
                let trial = count.fetch_add(1, SeqCst);
                let events = script.get(trial).copied().unwrap_or_default();
                for (n, event) in events.iter().enumerate() {
                    if trial + 1 == script.len() && n + 1 == events.len() {
                        met.set();
                    }
                    make(*event, &own, &time);
                }
                seen
            };
            let told = log.clone();
            let op = Op::new(condition, move |end| told.add(end));
            purgatory.try_complete_else_watch(op, [1], SECOND).unwrap();
            if script.len() > 2 {
                purgatory.check(&1);
            }
            assert!(flag.is_set(), "{script:?}: it comes to its last trial");
            assert_eq!(log.take(), [End::Completed], "{script:?}");
            assert_eq!(tried.load(SeqCst), script.len() + 1, "{script:?}: one trial more");
            purgatory.stop();
            is_empty(&purgatory, &timer);
        });
    }
}
