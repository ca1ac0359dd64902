//! Timers that wait for the wall clock, while the clock is set.

use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;

use super::{MS, Watched, explore};
use crate::{Context, Timer, VirtualClock};

/// The wall clock is set while timers that wait for it are armed, cancelled and rescheduled. Each timer ends once, and
/// no timer whose time has passed stays pending.
#[test]
fn a_setting_of_the_wall_clock_is_never_missed() {
    explore(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(2).pool(1).build().unwrap();
        let begin = clock.wall_now();
        let all = Arc::new(Mutex::new(Vec::new()));
        let arm = {
            let (timer, all) = (timer.clone(), all.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let ran = Arc::new(AtomicUsize::new(0));
                    let count = ran.clone();
                    let handle = timer.schedule_wall(begin + MS * 1000, move |_| {
                        count.fetch_add(1, SeqCst);
                    });
                    let watched = Watched { handle: handle.unwrap(), ran };
                    match thread_rng().gen_range(0..4) {
                        0 => drop(watched.handle.cancel()),
                        1 => drop(watched.handle.reschedule(MS)),
                        _ => {}
                    }
                    all.lock().unwrap().push(watched);
                }
            })
        };
        clock.set_wall(begin + MS * 2000).unwrap();
        arm.join().unwrap();
        clock.advance(MS).unwrap();
        assert_eq!(timer.len(), 0, "left behind");
        all.lock().unwrap().iter().for_each(Watched::has_ended_once);
        assert!(timer.stop().is_empty());
    });
}

/// The wall clock is set twice while a timer is armed, back and then ahead, and the watch re-examines the timers after
/// each setting. The thread that arms the timer may see the first setting and reschedule after the second. The timer
/// runs when the clock, as last set, shows its moment, and no earlier.
#[test]
fn two_settings_of_the_wall_clock_leave_nobody_behind() {
    explore(|| {
        let clock = VirtualClock::new();
        let timer = Timer::builder().clock(&clock).shards(1).pool(1).build().unwrap();
        let (begin, ran) = (clock.wall_now(), Arc::new(AtomicUsize::new(0)));
        let arm = {
            let (timer, ran) = (timer.clone(), ran.clone());
            let count = move |_: &Context<'_>| {
                ran.fetch_add(1, SeqCst);
            };
            thread::spawn(move || drop(timer.schedule_wall(begin + MS * 1000, count).unwrap()))
        };
        for to in [begin - MS * 1000, begin + MS * 900] {
            clock.poke_wall(to);
            timer.core().delivery.wall.look_again(timer.core());
            while timer.is_empty() {
                thread::yield_now();
            }
        }
        arm.join().unwrap();
        clock.advance(MS * 99).unwrap();
        assert_eq!(ran.load(SeqCst), 0, "early");
        clock.advance(MS).unwrap();
        assert_eq!(ran.load(SeqCst), 1, "left behind");
    });
}
