//! Callbacks of every size: stored in the timer's node or boxed, each is run or dropped exactly once, and unchanged.
//! `cargo xtask memcheck` runs these under valgrind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::common::{HOUR, PLACES, SECOND, accounted, panic_quietly, virtual_on};
use tourbillon::{Context, ScheduleError};

/// What a callback has captured: this many bytes, with known contents.
trait Captured: Send + 'static {
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

/// An alignment larger than a word's, with and without bytes.
#[repr(align(64))]
struct Aligned<const N: usize>([u8; N]);

impl<const N: usize> Captured for Aligned<N> {
    fn new() -> Self {
        Aligned(Captured::new())
    }

    fn is_whole(&self) -> bool {
        std::ptr::from_ref(self).addr() % 64 == 0 && self.0.is_whole()
    }
}

/// Counts, in one word, the values that ran with intact contents, and the values that were dropped.
#[derive(Clone)]
struct Seen(Arc<[AtomicU64; 2]>);

impl Seen {
    fn take(&self) -> [u64; 2] {
        [0, 1].map(|which| self.0[which].swap(0, SeqCst))
    }
}

struct Counted(Seen);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0[1].fetch_add(1, SeqCst);
    }
}

/// A callback that captures a word and a `C`.
fn callback<C: Captured, const PANICS: bool>(
    seen: &Seen,
) -> impl FnOnce(&Context<'_>) + Send + 'static {
    let (counted, captured) = (Counted(seen.clone()), C::new());
    move |_| {
        counted.0.0[0].fetch_add(captured.is_whole().into(), SeqCst);
        if PANICS {
            panic_quietly();
        }
    }
}

/// Every way in which a callback with this many captured bytes can end.
fn every_end<C: Captured>(place: &str, size: usize) {
    let seen = Seen(Arc::new([const { AtomicU64::new(0) }; 2]));
    assert_eq!(size_of_val(&callback::<C, true>(&seen)), size, "or other cases are tested");
    assert_eq!(seen.take(), [0, 1]);
    let (timer, clock) = virtual_on(place);
    let arm = || timer.arm(SECOND, callback::<C, false>(&seen)).unwrap();
    let arm_panicking = || timer.arm(SECOND, callback::<C, true>(&seen)).unwrap();
    let schedule = || timer.schedule(SECOND, callback::<C, false>(&seen)).unwrap();
    let schedule_panicking = || timer.schedule(SECOND, callback::<C, true>(&seen)).unwrap();

    let _four = (arm(), arm_panicking(), schedule(), schedule_panicking());
    clock.advance(SECOND).unwrap();
    assert_eq!(seen.take(), [4, 4], "they ran");

    assert!(timer.cancel(arm()) && schedule().cancel());
    assert_eq!(seen.take(), [0, 2], "they were cancelled");

    let _six = (arm(), arm(), arm_panicking(), schedule(), schedule(), schedule_panicking());
    let back: Vec<_> = timer.stop();
    assert_eq!((back.len(), seen.take()), (6, [0, 0]), "they were handed back");
    for (n, unfired) in back.into_iter().enumerate() {
        if n % 3 > 0 {
            _ = catch_unwind(AssertUnwindSafe(|| unfired.run()));
        }
    }
    assert_eq!(seen.take(), [4, 6], "two were dropped, four have run");

    let (other, clock) = virtual_on(place);
    let refused = timer.arm(SECOND, callback::<C, false>(&seen));
    let Err(ScheduleError::Stopped(refused)) = refused else { panic!("it was stopped") };
    other.arm(SECOND, refused).unwrap();
    let refused = timer.schedule(SECOND, callback::<C, false>(&seen));
    let Err(ScheduleError::Stopped(refused)) = refused else { panic!("it was stopped") };
    other.schedule(SECOND, refused).unwrap();
    assert_eq!(seen.take(), [0, 0], "they came back whole");
    clock.advance(SECOND).unwrap();
    assert_eq!(seen.take(), [2, 2]);

    other.arm(HOUR, callback::<C, false>(&seen)).unwrap();
    drop(other);
    assert_eq!(seen.take(), [0, 1], "nobody is left to run it");
    accounted(&timer);
}

#[test]
fn callbacks_of_every_size_run_once_or_are_dropped_once() {
    for place in PLACES {
        every_end::<[u8; 0]>(place, 8);
        every_end::<[u8; 1]>(place, 16);
        every_end::<[u8; 8]>(place, 16);
        every_end::<[u8; 9]>(place, 24);
        every_end::<[u8; 5000]>(place, 5008);
        every_end::<Aligned<0>>(place, 64);
        every_end::<Aligned<1>>(place, 128);
    }
}

#[test]
fn callbacks_that_are_small_but_not_made_of_words() {
    static RAN: AtomicU64 = AtomicU64::new(0);
    for place in PLACES {
        let (timer, clock) = virtual_on(place);
        let (nothing, wide) = (Aligned::<0>::new(), u128::MAX);
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
