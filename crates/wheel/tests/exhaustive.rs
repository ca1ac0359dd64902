//! Tiny wheels, every sequence of operations up to a depth.
//!
//! Random runs reach only the edge cases that somebody thought of; on a wheel of two slots everything is an edge case,
//! and all of them can be enumerated. Each sequence ends with an advance past everything, after which all timers must
//! have fired.
//!
//! `TOURBILLON_DEPTH` sets the length of the sequences. At 4 there are 83 521 for each wheel; one more takes 17 times
//! as long.

mod oracle;

use oracle::Shape;
use tourbillon_wheel::{HashedWheel, HierarchicalWheel, Key, Kind, Progress, Time, Wheel};

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u64),
    /// This many ticks ago.
    InsertPast(u64),
    CancelOldest,
    CancelNewest,
    MoveOldest(u64),
    MoveNewest(u64),
    MovePast(u64),
    /// By this many ticks, with a budget.
    Advance(u64, usize),
    /// To the next due tick.
    Next,
}

use Step::*;

const STEPS: [Step; 17] = [
    InsertPast(2),
    Insert(0),
    Insert(1),
    Insert(2),
    Insert(5),
    Insert(11),
    CancelOldest,
    CancelNewest,
    MoveOldest(1),
    MoveOldest(9),
    MoveNewest(3),
    MovePast(3),
    Advance(1, usize::MAX),
    Advance(2, 1),
    Advance(7, usize::MAX),
    Advance(30, 1),
    Next,
];

fn depth() -> u32 {
    std::env::var("TOURBILLON_DEPTH").ok().and_then(|depth| depth.parse().ok()).unwrap_or(4)
}

struct Tiny<K> {
    wheel: Wheel<(), K>,
    /// For each key, when it is due and at which tick it fires.
    pending: Vec<(Key, u64, u64)>,
    clock: u64,
}

impl<K: Kind> Tiny<K> {
    fn step(&mut self, step: Step) {
        match step {
            Insert(delay) => self.insert(self.clock + delay),
            InsertPast(ago) => self.insert(self.clock.saturating_sub(ago)),
            CancelOldest if !self.pending.is_empty() => {
                let (key, ..) = self.pending.remove(0);
                assert_eq!((self.wheel.cancel(key), self.wheel.cancel(key)), (Some(()), None));
            }
            CancelNewest => {
                if let Some((key, ..)) = self.pending.pop() {
                    assert_eq!((self.wheel.cancel(key), self.wheel.cancel(key)), (Some(()), None));
                }
            }
            MoveOldest(delay) => self.move_to(0, self.clock + delay),
            MoveNewest(delay) => {
                self.move_to(self.pending.len().wrapping_sub(1), self.clock + delay);
            }
            MovePast(ago) => self.move_to(0, self.clock.saturating_sub(ago)),
            Advance(ticks, budget) => self.advance(self.clock + ticks, budget),
            Next => {
                let next = self.wheel.next_due().map_or(self.clock, Time::units);
                self.advance(next, 2);
            }
            CancelOldest => {}
        }
        let next = self.pending.iter().map(|&(_, due, _)| due.max(self.clock)).min();
        assert_eq!(self.wheel.next_due(), next.map(Time::from));
        assert_eq!(self.wheel.len(), self.pending.len());
        self.wheel.check().unwrap();
    }

    fn insert(&mut self, due: u64) {
        let key = self.wheel.insert(Time::from(due), ()).unwrap();
        self.pending.push((key, due, due.max(self.clock)));
    }

    fn move_to(&mut self, nth: usize, to: u64) {
        if let Some((key, due, fires)) = self.pending.get_mut(nth) {
            (*due, *fires) = (to, to.max(self.clock));
            self.wheel.reschedule(*key, Time::from(to)).unwrap();
        }
    }

    fn advance(&mut self, to: u64, budget: usize) {
        self.clock = to;
        let mut last = 0;
        loop {
            let progress = self.wheel.advance(Time::from(to), budget);
            self.wheel.check().unwrap();
            while let Some(expired) = self.wheel.pop() {
                let nth = self
                    .pending
                    .iter()
                    .position(|&(key, ..)| key == expired.key)
                    .expect("fired once");
                let (_, due, fires) = self.pending.remove(nth);
                assert!(due <= to, "early");
                assert_eq!(expired.due, Time::from(due));
                assert!(fires >= last, "out of order");
                last = fires;
            }
            if progress == Progress::Done {
                break;
            }
        }
        assert!(self.pending.iter().all(|&(_, due, _)| due > to), "lost");
    }
}

fn walk<K: Kind>(shape: Shape, starts: &[u64], wheel: impl Fn() -> Wheel<(), K>) {
    let depth = depth();
    let count = (STEPS.len() as u64).pow(depth);
    for &start in starts {
        for number in 0..count {
            let nth = |nth| number / (STEPS.len() as u64).pow(nth) % STEPS.len() as u64;
            let sequence = || (0..depth).map(|n| STEPS[nth(n) as usize]);
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut tiny = Tiny { wheel: wheel(), pending: Vec::new(), clock: start };
                assert_eq!(tiny.wheel.advance(Time::from(start), 1), Progress::Done);
                sequence().for_each(|step| tiny.step(step));
                tiny.advance(start + 1000, 3);
                assert!(tiny.wheel.is_empty());
            }));
            if let Err(panic) = caught {
                eprintln!("{shape:?} from {start}: {:?}", sequence().collect::<Vec<_>>());
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{shape:?}: all {count} sequences of {depth} from {starts:?}");
}

macro_rules! tiny {
    ($($name:ident $hashed:literal $slots:expr;)*) => {$(
        #[test]
        fn $name() {
            let shape = Shape { hashed: $hashed, tick: 1, slots: &$slots };
            if $hashed {
                walk(shape, &[1], || HashedWheel::with_slots(Time::ZERO, 1, shape.slots[0]).unwrap());
            } else {
                walk(shape, &[3], || HierarchicalWheel::with_levels(Time::ZERO, 1, shape.slots).unwrap());
            }
        }
    )*};
}

tiny! {
    hierarchical_2 false [2];
    hierarchical_3 false [3];
    hierarchical_4 false [4];
    hierarchical_2_3 false [2, 3];
    hierarchical_4_2_3 false [4, 2, 3];
    hashed_1 true [1];
    hashed_2 true [2];
    hashed_3 true [3];
    hashed_4 true [4];
}
