//! Every run of a repeating timer, compared with a list that is computed from what the documentation says.
//!
//! All times are whole milliseconds, which are the ticks of the engine, so nothing is rounded.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use tourbillon::{Missed, Repeat, Timer, VirtualClock};

use crate::common::{HOUR, Log, PLACES, accounted, case, running_on};

/// Milliseconds since the beginning of the clock.
type Moment = i64;

/// The first run, in milliseconds from the moment at which the timer is created.
#[derive(Clone, Copy, Debug)]
enum First {
    Default,
    After(i64),
    At(i64),
    Wall(i64),
}

#[derive(Clone, Copy, Debug)]
enum Pace {
    Every(i64),
    AfterEach(i64),
}

#[derive(Clone, Copy, Debug)]
struct Rhythm {
    first: First,
    pace: Pace,
    missed: Missed,
}

const FIRSTS: [First; 15] = [
    First::Default,
    First::After(0),
    First::After(7),
    // The clock is an hour old: this is before it began.
    First::At(-3_600_500),
    First::At(-2500),
    First::At(-1000),
    First::At(-999),
    First::At(-6),
    First::At(-5),
    First::At(-1),
    First::At(0),
    First::At(1),
    First::At(700),
    First::Wall(300),
    First::Wall(-2500),
];
const PACES: [Pace; 4] =
    [Pace::Every(1000), Pace::Every(7), Pace::AfterEach(1000), Pace::AfterEach(7)];
const MISSED: [Missed; 3] = [Missed::Burst, Missed::Skip, Missed::Delay];

fn rhythms() -> impl Iterator<Item = Rhythm> {
    let all = |first| PACES.into_iter().map(move |pace| (first, pace));
    // Half a million runs would be made up for.
    let is_few = |all: &(First, Pace)| !matches!(all, (First::At(-3_600_500), Pace::Every(7)));
    let all = FIRSTS.into_iter().flat_map(all).filter(is_few);
    all.flat_map(|(first, pace)| MISSED.map(|missed| Rhythm { first, pace, missed }))
}

fn ms(span: i64) -> Duration {
    Duration::from_millis(span.try_into().unwrap())
}

/// An instant so many milliseconds after another one, or before it.
fn shifted(at: Instant, by: i64) -> Instant {
    if by < 0 { at - ms(-by) } else { at + ms(by) }
}

impl Rhythm {
    fn repeat(self, timer: &Timer) -> Repeat {
        let repeat = match self.pace {
            Pace::Every(period) => Repeat::every(ms(period)),
            Pace::AfterEach(pause) => Repeat::after_each(ms(pause)),
        };
        let repeat = match self.first {
            First::Default => repeat,
            First::After(after) => repeat.first(ms(after)),
            First::At(at) => repeat.first_at(shifted(timer.now(), at)),
            First::Wall(at) if at < 0 => repeat.first_wall(timer.wall_now() - ms(-at)),
            First::Wall(at) => repeat.first_wall(timer.wall_now() + ms(at)),
        };
        repeat.missed(self.missed)
    }

    fn first_due(self, now: Moment) -> Moment {
        match (self.first, self.pace) {
            (First::Default, Pace::Every(step) | Pace::AfterEach(step)) => now + step,
            (First::After(by) | First::At(by), _) => now + by,
            // A time of the wall clock that has passed is now.
            (First::Wall(by), _) => now + by.max(0),
        }
    }

    /// When the run after this one is due.
    fn next(self, due: Moment, began: Moment, ended: Moment) -> Moment {
        let period = match self.pace {
            Pace::Every(period) => period,
            Pace::AfterEach(pause) => return ended + pause,
        };
        match self.missed {
            // The first beat that was not due while the run went on.
            Missed::Skip => (1..).map(|n| due + n * period).find(|&next| next >= ended).unwrap(),
            Missed::Delay if began - due > 5 || ended > due + period => ended + period,
            _ => due + period,
        }
    }

    /// The runs: when each was due, and when it began. The clock jumps, then everything runs that is due.
    fn expected(self, created: Moment, jumps: &[i64], lengths: &[i64]) -> Vec<(Moment, Moment)> {
        let (mut now, mut due, mut runs) = (created, self.first_due(created), Vec::new());
        for jump in jumps {
            now += jump;
            while due <= now {
                runs.push((due, now));
                let began = now;
                now += lengths[runs.len() % lengths.len()];
                due = self.next(due, began, now);
            }
        }
        runs
    }

    /// Creates a timer that logs its runs, each of which takes the next of these lengths.
    fn start(self, timer: &Timer, clock: &VirtualClock, lengths: &[i64]) -> Log<(Moment, Moment)> {
        let (log, runs, lengths) = (Log::new(), AtomicU64::new(0), lengths.to_vec());
        let (told, own, begin) = (log.clone(), clock.clone(), clock.now() - clock.elapsed());
        let run = move |context: &tourbillon::Context<'_>| {
            let (due, began) = (context.deadline(), own.elapsed());
            let due = due.checked_duration_since(begin).map_or_else(
                || -((begin - due).as_millis() as i64),
                |since| since.as_millis() as i64,
            );
            told.add((due, began.as_millis() as i64));
            let run = runs.fetch_add(1, SeqCst) as usize + 1;
            let length = lengths[run % lengths.len()];
            if length > 0 {
                // Only another thread may advance the clock.
                let own = own.clone();
                thread::spawn(move || own.advance(ms(length)).unwrap()).join().unwrap();
            }
        };
        timer.repeat(self.repeat(timer), run).unwrap();
        log
    }
}

/// On a clock that jumps, turned by hand: runs are late, and take time.
#[test]
fn runs_on_a_clock_that_jumps_are_those_of_the_list() {
    let mut random = fastrand::Rng::with_seed(1);
    for rhythm in rhythms() {
        for _ in 0..4 {
            let mut pick = |from: &[i64]| from[random.usize(..from.len())];
            let jumps = [(); 12].map(|()| pick(&[0, 1, 5, 6, 7, 300, 1000, 1001]));
            // Short of the shorter period, just that period, longer.
            let lengths = [(); 3].map(|()| pick(&[0, 0, 0, 1, 7, 8]));
            // A rhythm of 7 ms whose runs take as long never catches up.
            let quick = matches!(rhythm.pace, Pace::Every(7));
            let lengths = if quick { [0, 0, lengths[0]] } else { lengths };
            case(format!("{rhythm:?}, jumps {jumps:?}, lengths {lengths:?}"), move || {
                let clock = VirtualClock::new();
                let builder = Timer::builder().clock(&clock).shards(1);
                let (timer, mut driver) = builder.build_driven().unwrap();
                clock.advance(HOUR).unwrap();
                let created = clock.elapsed().as_millis() as i64;
                let log = rhythm.start(&timer, &clock, &lengths);
                for &jump in &jumps {
                    clock.advance(ms(jump)).unwrap();
                    while driver.turn().ran > 0 {}
                }
                assert_eq!(log.take(), rhythm.expected(created, &jumps, &lengths));
                accounted(&timer);
            });
        }
    }
}

/// Under an advance each run is at its moment: only those that are due before the timer is created are late.
#[test]
fn runs_of_an_advance_are_those_of_the_list() {
    for place in PLACES {
        for rhythm in rhythms() {
            case(format!("{rhythm:?}, {place}"), move || {
                let clock = VirtualClock::new();
                let timer = running_on(place).clock(&clock).build().unwrap();
                clock.advance(HOUR).unwrap();
                let created = clock.elapsed().as_millis() as i64;
                let log = rhythm.start(&timer, &clock, &[0]);
                clock.advance(ms(3000)).unwrap();
                let steps: Vec<i64> = std::iter::once(0).chain([1; 3000]).collect();
                assert_eq!(log.take(), rhythm.expected(created, &steps, &[0]));
                accounted(&timer);
            });
        }
    }
}
