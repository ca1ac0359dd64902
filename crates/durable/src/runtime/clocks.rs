//! Both clocks of a runtime, and the alarms that wake its thread.
//!
//! A clock reading rounds down to a millisecond and a requested moment rounds up, so nothing is early. There are two
//! alarms, both timers of the engine: one follows the wall clock, even if that clock is set; the other runs on the
//! monotonic clock. An alarm is rearmed only if its moment has changed or it has fired, so an idle runtime never wakes
//! up needlessly.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tourbillon::{CancelOnDrop, Context, Timer, VirtualClock};

use super::mailbox::Mailbox;
use crate::values::{Moment, Steady};

/// The tick of the engine: an alarm is late by less than this.
const TICK: Duration = Duration::from_micros(100);

#[derive(Clone)]
pub(crate) struct Clocks {
    timer: Timer,
    begin: Instant,
    clock: Option<VirtualClock>,
}

impl Clocks {
    pub(super) fn new(clock: Option<&VirtualClock>) -> io::Result<Self> {
        let builder = Timer::builder().on_driver().tick(TICK).shards(1).name("tourbillon-durable");
        let builder = match clock {
            Some(clock) => builder.clock(clock),
            None => builder,
        };
        let timer = builder.build().map_err(io::Error::other)?;
        timer.start().map_err(io::Error::other)?;
        Ok(Clocks { begin: timer.now(), timer, clock: clock.cloned() })
    }

    pub(super) fn timer(&self) -> &Timer {
        &self.timer
    }

    pub(super) fn clock(&self) -> Option<&VirtualClock> {
        self.clock.as_ref()
    }

    pub(super) fn is_virtual(&self) -> bool {
        self.clock.is_some()
    }

    /// The wall clock, rounded down.
    pub(super) fn wall(&self) -> Moment {
        let since = self.timer.wall_now().duration_since(SystemTime::UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        Moment::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// The monotonic clock, rounded down.
    pub(super) fn steady(&self) -> Steady {
        let since = self.timer.now().saturating_duration_since(self.begin);
        Steady::from_millis(since.as_millis() as u64)
    }
}

/// The armed alarms.
pub(super) struct Alarms {
    clocks: Clocks,
    mailbox: Arc<Mailbox>,
    wall: Option<(Moment, CancelOnDrop)>,
    steady: Option<(Steady, CancelOnDrop)>,
}

impl Alarms {
    pub(super) fn new(clocks: Clocks, mailbox: Arc<Mailbox>) -> Self {
        Alarms { clocks, mailbox, wall: None, steady: None }
    }

    /// Arms the alarms: the thread wakes when either clock reaches its moment.
    pub(super) fn set(&mut self, wall: Option<Moment>, steady: Option<Steady>) {
        let timer = &self.clocks.timer;
        // An alarm that could not be armed is retried with the next turn.
        if armed(self.wall.as_ref()) != wall {
            self.wall = wall.and_then(|at| {
                let armed = timer.schedule_wall(SystemTime::from(at), self.ring());
                Some((at, armed.ok()?.cancel_on_drop()))
            });
        }
        if armed(self.steady.as_ref()) != steady {
            self.steady = steady.and_then(|at| {
                let at_instant =
                    self.clocks.begin.checked_add(Duration::from_millis(at.millis()))?;
                let armed = timer.schedule_at(at_instant, self.ring());
                Some((at, armed.ok()?.cancel_on_drop()))
            });
        }
    }

    fn ring(&self) -> impl FnOnce(&Context<'_>) + Send + 'static {
        let (mailbox, waits) = (self.mailbox.clone(), self.clocks.is_virtual());
        move |_| {
            mailbox.wake();
            // Virtual time does not pass until all work of this moment is done.
            if waits {
                mailbox.wait_idle();
            }
        }
    }
}

/// The moment of an alarm that has not fired. One that has fired is not armed: the clock may have been set back before
/// the thread read it, and then the same moment is still to come.
fn armed<T: Copy>(alarm: Option<&(T, CancelOnDrop)>) -> Option<T> {
    let fires = |timer: &CancelOnDrop| {
        planted!("runtime.fired-alarm-stays-armed", true, timer.is_pending())
    };
    alarm.filter(|(_, timer)| fires(timer)).map(|(at, _)| *at)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The alarm fires, and the clock is set back before the thread reads it. The thread wants the same moment again.
    #[test]
    fn an_alarm_that_has_fired_is_armed_again_for_the_same_moment() {
        const HOUR: Duration = Duration::from_secs(3600);
        let clock = VirtualClock::new();
        let clocks = Clocks::new(Some(&clock)).unwrap();
        let mailbox = Arc::new(Mailbox::new());
        let mut alarms = Alarms::new(clocks.clone(), mailbox.clone());
        let (woken, wakes) = channel();
        let thread = std::thread::spawn({
            let mailbox = mailbox.clone();
            move || {
                while !mailbox.take(true).last {
                    woken.send(()).unwrap();
                }
            }
        });
        let at = clocks.wall() + crate::values::Span::from_secs(3600);
        for round in 0..3 {
            alarms.set(Some(at), None);
            clock.advance(HOUR).unwrap();
            assert_eq!(wakes.try_iter().count(), 1, "round {round}");
            clock.set_wall(clock.wall_now() - HOUR).unwrap();
        }
        mailbox.close();
        thread.join().unwrap();
    }
}
