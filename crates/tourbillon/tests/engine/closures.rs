//! Callbacks of every size: they lie in the timer's node or in a box, and each is run once or dropped once, whole.
//! `cargo xtask memcheck` runs these under valgrind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::common::{Drops, HOUR, Log, PLACES, SECOND, accounted, panic_quietly, virtual_on};
use tourbillon::{Context, ScheduleError};

/// What a callback has captured: something to drop, and so many bytes, which are as they should be.
trait Captured: Clone + Send + 'static {
    fn new() -> Self;
    fn is_whole(&self) -> bool;
}

impl<const N: usize> Captured for [u8; N] {
    fn new() -> Self {
        std::array::from_fn(|n| n as u8 ^ 0x5a)
    }

    fn is_whole(&self) -> bool {
        *self == Self::new()
    }
}

/// More than a word's alignment, with bytes and without.
#[repr(align(64))]
#[derive(Clone)]
struct Aligned<const N: usize>([u8; N]);

impl<const N: usize> Captured for Aligned<N> {
    fn new() -> Self {
        Aligned(Captured::new())
    }

    fn is_whole(&self) -> bool {
        std::ptr::from_ref(self).addr() % 64 == 0 && self.0.is_whole()
    }
}

/// A callback that captures `C`, and something whose drop is counted.
fn callback<C: Captured>(
    drops: &Drops,
    ran: &Log<bool>,
    panics: bool,
) -> impl FnOnce(&Context<'_>) + Send + 'static {
    let (captured, dropped, ran) = (C::new(), drops.one(), ran.clone());
    move |_| {
        ran.add(captured.is_whole());
        if panics {
            panic_quietly();
        }
        drop(dropped);
    }
}

/// Every end that a callback can have.
fn every_end<C: Captured>(place: &str) {
    let (drops, ran) = (Drops::new(), Log::new());
    let (timer, clock) = virtual_on(place);
    let new = |panics| callback::<C>(&drops, &ran, panics);
    let arm = |panics| timer.arm(SECOND, new(panics)).unwrap();
    arm(false);
    arm(true);
    timer.schedule(SECOND, new(false)).unwrap();
    timer.schedule(SECOND, new(true)).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!((ran.take(), drops.count()), (vec![true; 4], 4), "they ran");

    assert!(timer.cancel(arm(false)));
    assert!(timer.schedule(SECOND, new(false)).unwrap().cancel());
    assert_eq!((ran.len(), drops.count()), (0, 6), "they were cancelled");

    for _ in 0..3 {
        arm(false);
    }
    arm(true);
    let back: Vec<_> = timer.stop();
    assert_eq!((back.len(), drops.count()), (4, 6), "they were handed back");
    for (n, unfired) in back.into_iter().enumerate() {
        if n > 0 {
            _ = catch_unwind(AssertUnwindSafe(|| unfired.run()));
        }
    }
    assert_eq!((ran.take(), drops.count()), (vec![true; 3], 10), "one was dropped, three have run");

    let Err(ScheduleError::Stopped(refused)) = timer.arm(SECOND, new(false)) else {
        panic!("it was stopped");
    };
    assert_eq!(drops.count(), 10, "it came back whole");
    let (other, clock) = virtual_on(place);
    other.arm(SECOND, refused).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!((ran.take(), drops.count()), (vec![true], 11));

    other.arm(HOUR, new(false)).unwrap();
    drop(other);
    assert_eq!((ran.len(), drops.count()), (0, 12), "nobody is left to run it");
    accounted(&timer);
}

#[test]
fn callbacks_of_every_size_run_once_or_are_dropped_once() {
    for place in PLACES {
        every_end::<[u8; 0]>(place);
        every_end::<[u8; 1]>(place);
        every_end::<[u8; 8]>(place);
        every_end::<[u8; 9]>(place);
        every_end::<[u8; 64]>(place);
        every_end::<[u8; 5000]>(place);
        every_end::<Aligned<0>>(place);
        every_end::<Aligned<1>>(place);
    }
}

#[test]
fn callbacks_that_are_small_but_not_made_of_words() {
    static RAN: AtomicU64 = AtomicU64::new(0);
    let nothing = Aligned([]);
    let wide = u128::MAX;
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let nothing = nothing.clone();
        let aligned = move |_: &Context<'_>| _ = RAN.fetch_add(nothing.is_whole().into(), SeqCst);
        let two_words = move |_: &Context<'_>| _ = RAN.fetch_add(wide.count_ones().into(), SeqCst);
        assert_eq!((size_of_val(&aligned), align_of_val(&aligned)), (0, 64));
        assert_eq!(size_of_val(&two_words), 16);
        timer.arm(SECOND, aligned).unwrap();
        timer.arm(SECOND, two_words).unwrap();
        clock.advance(SECOND).unwrap();
        assert_eq!(RAN.swap(0, SeqCst), 129);
    }
}
