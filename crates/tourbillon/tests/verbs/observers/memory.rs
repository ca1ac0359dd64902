//! What an engine tells of itself, whatever it delivers: how late it was, where its hands are, and the memory that it
//! holds on each of its shards.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use tourbillon::{Builder, Engine, Lateness, Snapshot, Timer, VirtualClock};

use super::since;
use crate::common::{HOUR, MS, SECOND, case};

const NS: Duration = Duration::from_nanos(1);

/// An engine, to arm something on and to ask.
struct Asked {
    arm: Box<dyn Fn(Duration) + Sync>,
    lateness: Box<dyn Fn() -> Lateness + Sync>,
    snapshot: Box<dyn Fn() -> Snapshot + Sync>,
    shrink: Box<dyn Fn() + Sync>,
    /// Turns its driver, if that is the caller's.
    turn: Box<dyn FnMut() + Send>,
    /// Arms so many on the calling thread, and takes them back.
    crowd: Box<dyn Fn(usize) + Sync>,
}

type Face = (&'static str, fn(Builder) -> Asked);

const FACES: [Face; 6] = [
    ("Timer, by key", |builder| of_timer(builder.build().unwrap(), arm, crowd)),
    ("Timer, by handle", |builder| {
        let arm = |timer: &Timer, after| drop(timer.schedule(after, |_| ()).unwrap());
        let crowd = |timer: &Timer, many| {
            let arm = |_| timer.schedule(HOUR, |_| ()).unwrap();
            let handles: Vec<_> = (0..many).map(arm).collect();
            assert!(handles.iter().all(|handle| handle.cancel()));
        };
        of_timer(builder.build().unwrap(), arm, crowd)
    }),
    ("Timer, of tasks", |builder| {
        // Their drops would cancel them.
        let arm = |timer: &Timer, after| std::mem::forget(asleep(timer, after));
        let crowd = |timer: &Timer, many| {
            let sleeps: Vec<_> = (0..many).map(|_| asleep(timer, HOUR)).collect();
            drop(sleeps);
        };
        of_timer(builder.build().unwrap(), arm, crowd)
    }),
    ("Engine", |builder| of_engine(builder.deliver(|_| ()).unwrap(), || ())),
    ("Timer, driven", |builder| {
        let (timer, mut driver) = builder.build_driven().unwrap();
        Asked { turn: Box::new(move || _ = driver.turn()), ..of_timer(timer, arm, crowd) }
    }),
    ("Engine, driven", |builder| {
        let (engine, mut driver) = builder.deliver_driven(|_| ()).unwrap();
        of_engine(engine, move || _ = driver.turn())
    }),
];

fn arm(timer: &Timer, after: Duration) {
    timer.arm(after, |_| ()).unwrap();
}

fn crowd(timer: &Timer, many: usize) {
    let keys: Vec<_> = (0..many).map(|_| timer.arm(HOUR, |_| ()).unwrap()).collect();
    assert!(keys.iter().all(|&key| timer.cancel(key)));
}

/// A task that sleeps.
fn asleep(timer: &Timer, after: Duration) -> impl Send + use<> {
    let mut sleep = Box::new(timer.sleep(after));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut sleep).poll(context).is_pending());
    sleep
}

fn of_timer(timer: Timer, arm: fn(&Timer, Duration), crowd: fn(&Timer, usize)) -> Asked {
    let [one, two, three, four, five] = [(); 5].map(|()| timer.clone());
    Asked {
        arm: Box::new(move |after| arm(&one, after)),
        lateness: Box::new(move || two.lateness()),
        snapshot: Box::new(move || three.snapshot()),
        shrink: Box::new(move || four.shrink()),
        turn: Box::new(|| ()),
        crowd: Box::new(move |many| crowd(&five, many)),
    }
}

fn of_engine(engine: Engine<u32>, turn: impl FnMut() + Send + 'static) -> Asked {
    let [one, two, three, four, five] = [(); 5].map(|()| engine.clone());
    Asked {
        arm: Box::new(move |after| _ = one.schedule(after, 7).unwrap()),
        lateness: Box::new(move || two.lateness()),
        snapshot: Box::new(move || three.snapshot()),
        shrink: Box::new(move || four.shrink()),
        turn: Box::new(turn),
        crowd: Box::new(move |many| {
            let keys: Vec<_> = (0..many).map(|_| five.schedule(HOUR, 7).unwrap()).collect();
            assert!(keys.iter().all(|&key| five.cancel(key) == Some(7)));
        }),
    }
}

/// How late they are, in nanoseconds, the least first; a tick is a million.
const LATE: [&[u32]; 6] = [
    &[],
    &[0],
    &[999_999],
    &[0, 0, 500_000],
    &[400_000, 400_000, 400_001],
    &[1, 2, 3, 5, 70_000, 70_001, 300_000, 600_000, 999_000],
];

/// No quantile is less than the truth, or more than a quarter above it, whichever is asked for.
#[track_caller]
fn is_told(lateness: &Lateness, late: &[u32]) {
    let nanos = |late: u32| NS * late;
    let most = nanos(late.last().copied().unwrap_or(0));
    assert_eq!((lateness.count(), lateness.max()), (late.len() as u64, most));
    let buckets: Vec<_> = lateness.buckets().collect();
    assert_eq!(buckets.iter().map(|&(_, times)| times).sum::<u64>(), late.len() as u64);
    assert!(
        buckets.is_sorted_by(|one, next| one.0 < next.0) && buckets.iter().all(|one| one.1 > 0)
    );
    // Below nothing and above everything there is no other rank.
    let all = (0..=20).map(|n| f64::from(n) / 20.0);
    let mut before = Duration::ZERO;
    for part in [-1.0, f64::MIN_POSITIVE, 1e-9].into_iter().chain(all).chain([1.0 + 1e-9, 7.0]) {
        let told = lateness.quantile(part);
        let rank = (part.clamp(0.0, 1.0) * late.len() as f64).ceil() as usize;
        let truth = late.get(rank.max(1) - 1).map_or(Duration::ZERO, |&late| nanos(late));
        assert!(
            (truth..=most.min(truth * 5 / 4)).contains(&told),
            "{part}: {told:?}, not {truth:?}"
        );
        assert!(told >= before || part == f64::MIN_POSITIVE || part == 0.0, "{part}: {told:?}");
        before = told;
    }
}

#[test]
fn of_how_late_it_was() {
    for (face, open) in FACES {
        for shards in [1, 4] {
            case(format!("{face}, {shards} shards"), move || {
                for late in LATE {
                    let clock = VirtualClock::new();
                    let mut asked = open(Timer::builder().shards(shards).clock(&clock));
                    is_told(&(asked.lateness)(), &[]);
                    // Each by a thread of its own, which has its own shard.
                    for &late in late {
                        let arm = || (asked.arm)(9 * MS - NS * late);
                        thread::scope(|scope| scope.spawn(arm).join().unwrap());
                    }
                    is_told(&(asked.lateness)(), &[]);
                    clock.advance(9 * MS).unwrap();
                    (asked.turn)();
                    is_told(&(asked.lateness)(), late);
                    clock.advance(HOUR).unwrap();
                    (asked.shrink)();
                    is_told(&(asked.lateness)(), late);
                }
            });
        }
    }
}

/// Where the hands are, each once.
fn hands(asked: &Asked, clock: &VirtualClock) -> Vec<Duration> {
    let shards = (asked.snapshot)().shards;
    let mut hands: Vec<_> = shards.iter().map(|shard| since(clock, shard.hand)).collect();
    hands.sort_unstable();
    hands.dedup();
    hands
}

/// A hand moves when something is due, and stays where it is as time passes.
#[test]
fn of_where_the_hand_is() {
    for (face, open) in FACES {
        case(face, move || {
            let clock = VirtualClock::new();
            let mut asked = open(Timer::builder().shards(1).clock(&clock));
            assert_eq!(hands(&asked, &clock), [Duration::ZERO]);
            // The first one is due between two ticks.
            for (after, due) in [(99 * MS + MS / 3, 100 * MS), (SECOND, 1200 * MS), (MS, 1301 * MS)]
            {
                (asked.arm)(after);
                let before = hands(&asked, &clock);
                assert!(before.iter().all(|&hand| hand < due));
                clock.advance(after / 2).unwrap();
                (asked.turn)();
                // A hand passes the slots of higher levels on its way, but not each tick.
                let halfway = hands(&asked, &clock);
                assert!(
                    halfway.iter().all(|&hand| hand < clock.elapsed() || before.contains(&hand)),
                    "{halfway:?}"
                );
                clock.advance(due - clock.elapsed()).unwrap();
                (asked.turn)();
                assert_eq!(hands(&asked, &clock).last(), Some(&due));
                let there = hands(&asked, &clock);
                clock.advance(100 * MS).unwrap();
                (asked.turn)();
                assert_eq!(hands(&asked, &clock), there, "nothing is due");
            }
        });
    }
}

#[test]
fn of_the_memory_that_a_shrink_leaves_on_each_shard() {
    const MANY: usize = 2000;
    for (face, open) in FACES {
        case(face, move || {
            let clock = VirtualClock::new();
            let asked = open(Timer::builder().shards(4).clock(&clock));
            let memory = || -> Vec<usize> {
                let snapshot = (asked.snapshot)();
                let each: Vec<_> = snapshot.shards.iter().map(|shard| shard.memory).collect();
                assert_eq!(snapshot.memory(), each.iter().sum());
                each
            };
            // Threads keep to a shard, and the next one has the next shard.
            let one_at_a_time = Mutex::new(());
            for _ in 0..8 {
                let crowd = || {
                    let _alone = one_at_a_time.lock().unwrap();
                    (asked.crowd)(MANY);
                };
                thread::scope(|scope| scope.spawn(crowd).join().unwrap());
            }
            let before = memory();
            (asked.shrink)();
            let after = memory();
            let was_crowded = |&&(before, _): &&(usize, usize)| before > MANY * size_of::<u32>();
            let both: Vec<_> = before.iter().copied().zip(after.iter().copied()).collect();
            let crowded: Vec<_> = both.iter().filter(was_crowded).collect();
            assert!(crowded.len() > 1, "{both:?}");
            assert!(crowded.iter().all(|(before, after)| *after < before / 4), "{both:?}");
        });
    }
}
