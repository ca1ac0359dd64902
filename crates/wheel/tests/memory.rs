//! The memory that a wheel holds, and what it does when an allocation fails.
//!
//! The allocator of this test refuses on request, for the calling thread. No timer may be lost: a refused value is
//! returned, and a refused cascade has moved nothing and continues later.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tourbillon_wheel::{
    Full, HashedWheel, HierarchicalWheel, Kind, Progress, RescheduleError, Time, Wheel,
};

thread_local! {
    /// How many more allocations this thread may make.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// The largest allocation of this thread, in bytes.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    /// The bytes that this thread holds. What another thread frees is subtracted there.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

struct Refusing;

fn held(more: isize) {
    let _ = HELD.try_with(|held| held.set(held.get() + more));
}

fn granted(size: usize) -> bool {
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
    LEFT.try_with(|left| {
        let granted = left.get() > 0;
        if granted && left.get() != usize::MAX {
            left.set(left.get() - 1);
        }
        granted
    })
    .unwrap_or(true)
}

// SAFETY: every call is passed to the system's allocator, or answered with null, which every caller must expect.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !granted(layout.size()) {
            return std::ptr::null_mut();
        }
        held(layout.size() as isize);
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        held(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

/// Runs `act` with at most this many allocations.
fn with<R>(allocations: usize, act: impl FnOnce() -> R) -> R {
    LEFT.set(allocations);
    let result = act();
    LEFT.set(usize::MAX);
    result
}

#[test]
fn an_empty_wheel_is_small() {
    let wheel = HierarchicalWheel::<u64>::new(Time::ZERO);
    let bytes = wheel.memory() + size_of_val(&wheel);
    println!("an empty default wheel: {bytes} bytes");
    assert!(bytes <= 16 * 1024);
    let mut wheel = HierarchicalWheel::<u64>::new(Time::ZERO);
    let key = wheel.insert(Time::from(1), 0).unwrap();
    wheel.cancel(key);
    assert!(wheel.memory() + size_of_val(&wheel) <= 16 * 1024, "and so is one that was used");
    let wheel = HashedWheel::<u64>::with_slots(Time::ZERO, 1, 1 << 20).unwrap();
    assert!(wheel.memory() <= 16 * 1024, "a large ring is made when it is needed");
}

/// Growing copies neither the timers nor the references to them: an operation would have to wait for the copy.
#[test]
fn no_allocation_is_as_large_as_the_wheel() {
    let mut wheel = HierarchicalWheel::new(Time::ZERO);
    LARGEST.set(0);
    for n in 0..200_000_u32 {
        wheel.insert(Time::from(1 << 30), n).unwrap();
    }
    let (largest, all) = (LARGEST.get(), wheel.memory());
    println!("{all} bytes in pieces of {largest} at most");
    assert!(largest < 100_000);
}

fn a_full_wheel_returns_the_value<K: Kind>(mut wheel: Wheel<String, K>) {
    // For each number of allocations after which the memory is exhausted.
    for allocations in 0..8 {
        let before = wheel.len();
        match with(allocations, || wheel.insert(Time::from(1 << 40), String::new())) {
            Ok(_) => assert_eq!(wheel.len(), before + 1),
            Err(Full(value)) => {
                assert_eq!((value.as_str(), wheel.len()), ("", before));
            }
        }
        wheel.check().unwrap();
    }
    assert!(wheel.len() < 8 && !wheel.is_empty(), "it was refused, and then it was not");
}

#[test]
fn a_full_wheel_returns_the_value_of_both_kinds() {
    a_full_wheel_returns_the_value(HierarchicalWheel::new(Time::ZERO));
    a_full_wheel_returns_the_value(HashedWheel::new(Time::ZERO));
}

#[test]
fn handing_down_without_memory_moves_nothing_and_goes_on_later() {
    let mut wheel = HierarchicalWheel::with_levels(Time::ZERO, 1, &[64]).unwrap();
    for n in 0..5_000 {
        // All in one slot of the third level, in every slot of the second.
        wheel.insert(Time::from(4096 + n % 4096), n).unwrap();
    }
    wheel.shrink().unwrap();
    let mut refused = 0;
    let mut fired = 0;
    for now in (4096..).step_by(512) {
        for allocations in 0.. {
            match with(allocations, || wheel.advance(Time::from(now), usize::MAX)) {
                Progress::OutOfMemory => refused += 1,
                Progress::More => unreachable!(),
                Progress::Done => break,
            }
            wheel.check().unwrap();
            assert_eq!(wheel.len() + fired, 5_000, "nothing is lost");
            // The failed call has used up the free chunks: the next one moves nothing at all.
            let places = |wheel: &HierarchicalWheel<u64>| -> Vec<_> {
                wheel.iter().map(|(key, ..)| (key, wheel.place(key))).collect()
            };
            let before = places(&wheel);
            let progress = with(0, || wheel.advance(Time::from(now), usize::MAX));
            assert_eq!(progress, Progress::OutOfMemory);
            assert_eq!(places(&wheel), before);
        }
        while let Some(expired) = wheel.pop() {
            assert!(expired.due.units() <= now);
            fired += 1;
        }
        if wheel.is_empty() {
            break;
        }
    }
    assert_eq!(fired, 5_000);
    assert!(refused > 1, "refused {refused} times");
}

#[test]
fn a_timer_that_cannot_be_moved_keeps_its_deadline() {
    let mut wheel = HierarchicalWheel::new(Time::ZERO);
    let key = wheel.insert(Time::from(1 << 30), ()).unwrap();
    wheel.shrink().unwrap();
    assert_eq!(with(0, || wheel.reschedule(key, Time::from(5))), Err(RescheduleError::OutOfMemory));
    wheel.check().unwrap();
    assert_eq!(wheel.due(key), Some(Time::from(1 << 30)));
    assert_eq!(with(0, || wheel.reschedule(key, Time::from(1 << 31))), Ok(()), "later needs none");
    assert_eq!(wheel.reschedule(key, Time::from(5)), Ok(()));
    assert_eq!(wheel.next_due(), Some(Time::from(5)));
}

#[test]
fn a_reservation_is_enough_or_refused() {
    let mut wheel = HierarchicalWheel::new(Time::ZERO);
    wheel.reserve(10_000).unwrap();
    assert!(wheel.capacity() >= 10_000);
    wheel.insert(Time::from(5), 0).unwrap();
    with(0, || assert!((1..10_000).all(|n| wheel.insert(Time::from(5), n).is_ok())));
    assert!(wheel.reserve(usize::MAX).is_err());
    assert!(wheel.reserve(usize::MAX / 64).is_err());
    let before = wheel.memory();
    LARGEST.set(0);
    wheel.reserve(100_000).unwrap();
    assert!(LARGEST.get() > 80_000 * 24, "all of it is asked for in one piece first");
    assert!(wheel.memory() < before + 100_000 * 32 + 100_000);
    with(0, || assert_eq!(wheel.reserve(100_000), Ok(()), "there it is already"));
    with(0, || assert!(wheel.reserve(200_000).is_err()));
    wheel.check().unwrap();
    assert_eq!(wheel.len(), 10_000);
}

#[test]
fn a_shrink_without_memory_changes_nothing() {
    let mut wheel = HierarchicalWheel::new(Time::ZERO);
    let keys: Vec<_> =
        (0..500).map(|n| wheel.insert(Time::from(1 + n % 300), n).unwrap()).collect();
    keys[..200].iter().for_each(|&key| assert!(wheel.cancel(key).is_some()));
    assert_eq!(wheel.advance(Time::from(250), 10), Progress::More);
    for allocations in 0..40 {
        let _ = with(allocations, || wheel.shrink());
        wheel.check().unwrap();
        assert_eq!((wheel.len(), wheel.ready()), (300, 10));
    }
    assert_eq!(wheel.shrink(), Ok(()));
}

/// A ready timer is moved away and back forever, while another one stays ready and is not popped.
#[test]
fn what_waits_to_be_popped_is_bounded() {
    let mut wheel = HierarchicalWheel::new(Time::ZERO);
    wheel.insert(Time::from(1), 'a').unwrap();
    let moved = wheel.insert(Time::from(1), 'b').unwrap();
    for _ in 0..100_000 {
        assert_eq!(wheel.advance(Time::from(1), 100), Progress::Done);
        wheel.reschedule(moved, Time::from(1)).unwrap();
    }
    wheel.check().unwrap();
    assert!(wheel.memory() < 32 * 1024, "{} bytes for two timers", wheel.memory());
}

/// Ready timers that are moved repeatedly to ticks in the past leave outdated entries behind.
#[test]
fn moves_among_the_ready_are_bounded() {
    let mut wheel = HierarchicalWheel::new(Time::ZERO);
    let keys: Vec<_> = (0..200).map(|n| wheel.insert(Time::from(1), n).unwrap()).collect();
    assert_eq!(wheel.advance(Time::from(1), usize::MAX), Progress::Done);
    for n in 0..100_000 {
        wheel.reschedule(keys[n * 7 % 200], Time::from(n as u64 / 9_999 % 2)).unwrap();
        assert_eq!(wheel.advance(Time::from(1), usize::MAX), Progress::Done);
    }
    assert_eq!(wheel.ready(), 200);
    assert!(wheel.memory() < 64 * 1024, "{} bytes for 200 timers", wheel.memory());
    wheel.check().unwrap();
    assert_eq!(std::iter::from_fn(|| wheel.pop()).count(), 200);
}

/// `memory` returns what was allocated.
fn it_says_what_it_holds<K: Kind>(wheel: impl FnOnce() -> Wheel<u64, K>) {
    let nothing = HELD.get();
    let mut wheel = wheel();
    let agree = |wheel: &Wheel<u64, K>, when| {
        let held = usize::try_from(HELD.get() - nothing).unwrap();
        assert_eq!(wheel.memory(), held, "{when}");
    };
    agree(&wheel, "new");
    for n in 0..10_000 {
        wheel.insert(Time::from(n * n % 777_777), n).unwrap();
    }
    agree(&wheel, "filled");
    assert_eq!(wheel.advance(Time::from(100_000), usize::MAX), Progress::Done);
    agree(&wheel, "with some that are ready");
    while wheel.pop().is_some() {}
    let first = wheel.first().unwrap();
    wheel.cancel(first);
    wheel.next_due();
    agree(&wheel, "asked for the next");
    wheel.reserve(5_000).unwrap();
    agree(&wheel, "with a reservation");
    wheel.shrink().unwrap();
    agree(&wheel, "shrunk");
    wheel.clear();
    wheel.shrink().unwrap();
    agree(&wheel, "empty");
}

#[test]
fn it_says_what_it_holds_on_both_kinds() {
    it_says_what_it_holds(|| HierarchicalWheel::new(Time::ZERO));
    it_says_what_it_holds(|| HashedWheel::with_slots(Time::ZERO, 1, 1024).unwrap());
}

/// On a hashed wheel, the search for the next stop examines slots in which nothing is due in this turn.
#[test]
fn slots_of_other_turns_count_in_a_budget() {
    const SLOTS: u64 = 1 << 12;
    let mut wheel = HashedWheel::with_slots(Time::ZERO, 1, SLOTS as u32).unwrap();
    for n in 0..SLOTS {
        wheel.insert(Time::from(n + SLOTS * (n + 1)), n).unwrap();
    }
    let mut passes = 0;
    while wheel.advance(Time::MAX, 1_000) == Progress::More {
        passes += 1;
        while wheel.pop().is_some() {}
    }
    assert!(passes > SLOTS - 1_000, "{passes} passes");
}

/// Cancels and moves forever: outdated entries never take more memory than pending timers.
fn churn_is_bounded<K: Kind>(mut wheel: Wheel<u32, K>) {
    const TIMERS: u64 = 20_000;
    let mut random = 1_u64;
    let mut next = |end: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % end
    };
    let mut now = 0;
    let mut keys: Vec<_> = (0..TIMERS)
        .map(|n| wheel.insert(Time::from(1 + next(60_000)), n as u32).unwrap())
        .collect();
    wheel.shrink().unwrap();
    let filled = wheel.memory();
    for round in 0..40 * TIMERS {
        let nth = next(TIMERS) as usize;
        let deadline = Time::from(now + 1 + next(60_000));
        if round % 3 == 0 || !wheel.contains(keys[nth]) {
            wheel.cancel(keys[nth]);
            keys[nth] = wheel.insert(deadline, nth as u32).unwrap();
        } else {
            wheel.reschedule(keys[nth], deadline).unwrap();
        }
        if round % 64 == 0 {
            now += 1;
            assert_eq!(wheel.advance(Time::from(now), usize::MAX), Progress::Done);
            while wheel.pop().is_some() {}
        }
    }
    wheel.check().unwrap();
    let churned = wheel.memory();
    println!("{filled} bytes when filled, {churned} after churn, {} timers", wheel.len());
    assert!(churned < filled * 2, "{churned} after {filled}");
    wheel.clear();
    wheel.shrink().unwrap();
    let emptied = wheel.memory();
    assert!(emptied < 64 * 1024, "an emptied wheel that was told to shrink holds {emptied}");
}

#[test]
fn churn_is_bounded_on_both_kinds() {
    churn_is_bounded(HierarchicalWheel::new(Time::ZERO));
    churn_is_bounded(HashedWheel::with_slots(Time::ZERO, 1, 1024).unwrap());
}

/// Slot after slot is filled, and all but one timer in 16 are cancelled, spread over the slot. The remaining timers are
/// merged, so that the gaps hold no more memory than they do.
fn a_few_that_stay_hold_little<K: Kind>(mut wheel: Wheel<u32, K>) {
    const TIMERS: u32 = 3_200;
    for slot in 1..=200 {
        let keys: Vec<_> =
            (0..TIMERS).map(|n| wheel.insert(Time::from(slot), n).unwrap()).collect();
        for (n, &key) in keys.iter().enumerate() {
            assert!(n % 16 == 0 || wheel.cancel(key).is_some());
        }
        wheel.check().unwrap();
    }
    let a_timer = wheel.memory() / wheel.len();
    println!("{a_timer} bytes a timer, {} timers", wheel.len());
    assert!(a_timer < 48, "{a_timer} bytes a timer");
}

#[test]
fn a_few_that_stay_hold_little_on_both_kinds() {
    a_few_that_stay_hold_little(HierarchicalWheel::new(Time::ZERO));
    a_few_that_stay_hold_little(HashedWheel::new(Time::ZERO));
}

#[test]
fn a_reservation_that_is_not_used_goes_back() {
    let mut wheel = HierarchicalWheel::new(Time::ZERO);
    wheel.reserve(1_000_000).unwrap();
    let key = wheel.insert(Time::from(5), 1_u32).unwrap();
    wheel.shrink().unwrap();
    assert!(wheel.memory() < 16 * 1024, "{} bytes", wheel.memory());
    assert_eq!(wheel.cancel(key), Some(1));
}

/// A timer alone in its slot needs no chunk; a second one needs a chunk for both.
#[test]
fn two_that_meet_without_memory_stay_where_they_are() {
    let mut wheel = HierarchicalWheel::with_levels(Time::ZERO, 1, &[64]).unwrap();
    let above = wheel.insert(Time::from(70), 'a').unwrap();
    let far = wheel.insert(Time::from(70 + 64 * 64), 'c').unwrap();
    assert_eq!(wheel.advance(Time::from(10), 9), Progress::Done);
    wheel.insert(Time::from(70), 'b').unwrap();
    let place = wheel.place(above);
    assert_eq!(with(0, || wheel.advance(Time::from(64), 9)), Progress::OutOfMemory);
    assert_eq!(wheel.place(above), place);
    let moved = with(0, || wheel.reschedule(far, Time::from(70)));
    assert_eq!(moved, Err(RescheduleError::OutOfMemory));
    wheel.check().unwrap();
    assert_eq!(wheel.advance(Time::from(70), 9), Progress::Done);
    assert_eq!((wheel.ready(), wheel.len()), (2, 3));
}

/// A timer that stays in its slot for another turn needs no further memory.
#[test]
fn one_that_stays_in_its_slot_needs_no_memory() {
    let mut wheel = HashedWheel::with_slots(Time::ZERO, 1, 8).unwrap();
    let key = wheel.insert(Time::from(5), ()).unwrap();
    wheel.reschedule(key, Time::from(13)).unwrap();
    assert_eq!(with(0, || wheel.advance(Time::from(5), 9)), Progress::Done);
    assert_eq!(wheel.next_due(), Some(Time::from(13)));
    wheel.check().unwrap();
}

/// Nearly empty chunks can serve as free memory.
#[test]
fn without_memory_chunks_are_taken_back() {
    let mut wheel = HierarchicalWheel::with_levels(Time::ZERO, 1, &[64]).unwrap();
    let key = wheel.insert(Time::from(1), 0).unwrap();
    wheel.cancel(key);
    let keys: Vec<_> = (0..512).map(|n| wheel.insert(Time::from(70), n).unwrap()).collect();
    let far = wheel.insert(Time::from(70 + 64 * 64), 512).unwrap();
    for (n, &key) in keys.iter().enumerate() {
        assert!(n % 64 == 0 || wheel.cancel(key).is_some());
    }
    assert_eq!(with(0, || wheel.advance(Time::from(64), 9)), Progress::Done);
    wheel.check().unwrap();
    assert_eq!(with(0, || wheel.reschedule(far, Time::from(70))), Ok(()));
    wheel.check().unwrap();
    assert_eq!(with(1, || wheel.advance(Time::from(70), 9)), Progress::Done);
    assert_eq!((wheel.ready(), wheel.len()), (9, 9));
}
