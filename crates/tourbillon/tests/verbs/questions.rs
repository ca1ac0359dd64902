//! What every face and every error reports about itself. A new face is a new row.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::time::Instant;

use tourbillon::{
    AdvanceError, Backoff, BootClock, Clock, Cron, DelayQueue, Engine, Job, KeyedTimer, Purgatory,
    PutError, RescheduleError, ScheduleError, Sleeper, StartError, TakeError, Timer, VirtualClock,
    WaitError, WatchError,
    tasks::{Elapsed, SleepError},
};

use crate::common::{HOUR, Log, SECOND, eventually};

fn virtual_timer() -> (Timer, VirtualClock) {
    let clock = VirtualClock::new();
    (Timer::builder().clock(&clock).build().unwrap(), clock)
}

/// `Debug` shows the type and the facts about the value.
#[test]
fn everything_names_itself() {
    let (timer, clock) = virtual_timer();
    let keyed: KeyedTimer<u32> = KeyedTimer::new(&timer);
    keyed.schedule(1, HOUR, |_| ()).unwrap();
    let purgatory: Purgatory<u32> = Purgatory::new(&timer);
    let wait = purgatory.wait([1], HOUR, || None::<()>);
    let queue: DelayQueue<u32> = Timer::builder().clock(&clock).queue().unwrap();
    let engine: Engine<u32> = Timer::builder().clock(&clock).deliver(|_| ()).unwrap();
    let (driven, mut driver) = Timer::builder().clock(&clock).build_driven().unwrap();
    let handle = timer.schedule(HOUR, |_| ()).unwrap();
    let retry = timer.retry(Backoff::new(HOUR), |_| Err::<(), ()>(())).unwrap();
    let seen = Log::new();
    let told = seen.clone();
    timer.arm(SECOND, move |context| told.add(format!("{context:?}"))).unwrap();
    clock.advance(SECOND).unwrap();
    let context = seen.take().pop().unwrap();
    let mut tasks: tourbillon::tasks::DelayQueue<u32, u32, _> = timer.delay_queue();
    assert!(tasks.is_empty());
    tasks.insert(1, 1, HOUR).unwrap();
    assert!(!tasks.is_empty());
    let cron = Cron::parse("0 0 * * *", "UTC").unwrap();
    let rows: [(&str, &str, &dyn Debug); 16] = [
        ("Timer", "counts: ", &timer),
        ("KeyedTimer", "len: 1", &keyed),
        ("Purgatory", "delayed: 1", &purgatory),
        ("Wait", "ready: false", &wait),
        ("DelayQueue", "counts: ", &queue),
        ("Engine", "counts: ", &engine),
        ("Driver", "timeout: None", &driver),
        ("Timeout", "state: Pending", &handle),
        ("Retry", "is_over: false", &retry),
        ("VirtualClock", "elapsed: 1s", &clock),
        ("BootClock", "", &BootClock),
        ("Sleep", "deadline: ", &timer.sleep(SECOND)),
        ("Timeout", "deadline: ", &timer.timeout(SECOND, async {})),
        ("Interval", "period: 1s", &timer.interval(SECOND)),
        ("DelayQueue", "len: 1", &tasks),
        ("Cron", "0 0 * * *", &cron),
    ];
    for (name, fact, value) in rows {
        let text = format!("{value:?}");
        assert!(text.starts_with(name) && text.contains(fact), "{name}: {text}");
    }
    #[cfg(target_os = "linux")]
    assert!(format!("{:?}", driver.wake_fd()).contains("WakeFd("));
    assert!(context.starts_with("Context") && context.contains("lateness: "), "{context}");
    let unfired = timer.stop();
    assert!(unfired.iter().all(|it| format!("{it:?}").starts_with("Unfired { key: ")));
    drop(driven);
}

/// An error says what is wrong, and does not show the value that it returns.
#[test]
fn every_error_is_a_sentence_of_its_own() {
    let thread = || io::Error::other("no thread today");
    let errors: [&dyn Error; 18] = [
        &AdvanceError::InsideCallback,
        &Elapsed,
        &PutError::Closed(7),
        &PutError::Full(7),
        &RescheduleError::NotPending,
        &ScheduleError::Full(7),
        &ScheduleError::Never(7),
        &ScheduleError::Stopped(7),
        &ScheduleError::Thread(7, thread()),
        &SleepError::Full,
        &SleepError::Stopped,
        &StartError::Stopped,
        &StartError::Thread(thread()),
        &TakeError::Closed,
        &TakeError::NothingDue,
        &WaitError::Expired,
        &WaitError::Stopped,
        &WatchError::Stopped(7),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.split(' ').count() >= 3 && !text.contains('7'), "{error:?}: {text:?}");
    }
    // The errors of one verb have different messages.
    let distinct = |texts: [String; 2]| assert_ne!(texts[0], texts[1]);
    distinct([PutError::Closed(7).to_string(), PutError::Full(7).to_string()]);
    distinct([ScheduleError::Full(7).to_string(), ScheduleError::Never(7).to_string()]);
    distinct([ScheduleError::Full(7).to_string(), ScheduleError::Stopped(7).to_string()]);
    distinct([SleepError::Full.to_string(), SleepError::Stopped.to_string()]);
    distinct([TakeError::Closed.to_string(), TakeError::NothingDue.to_string()]);
    distinct([WaitError::Expired.to_string(), WaitError::Stopped.to_string()]);
}

/// `(is_empty, is_stopped)` of a new face, with something in it, and after its end.
type Row = (&'static str, fn() -> [(bool, bool); 3]);

const ROWS: [Row; 5] = [
    ("Timer", || {
        let (timer, _clock) = virtual_timer();
        let ask = || (timer.is_empty(), timer.is_stopped());
        let made = ask();
        timer.arm(HOUR, |_| ()).unwrap();
        let filled = ask();
        timer.stop();
        [made, filled, ask()]
    }),
    ("KeyedTimer", || {
        let (timer, _clock) = virtual_timer();
        let keyed = KeyedTimer::new(&timer);
        let ask = || (keyed.is_empty(), timer.is_stopped());
        let made = ask();
        keyed.schedule(1, HOUR, |_| ()).unwrap();
        let filled = ask();
        timer.stop();
        [made, filled, ask()]
    }),
    ("Engine", || {
        let clock = VirtualClock::new();
        let engine = Timer::builder().clock(&clock).deliver(|_| ()).unwrap();
        let ask = || (engine.is_empty(), engine.is_stopped());
        let made = ask();
        engine.schedule(HOUR, 7).unwrap();
        let filled = ask();
        engine.stop();
        [made, filled, ask()]
    }),
    ("DelayQueue", || {
        let clock = VirtualClock::new();
        let queue = Timer::builder().clock(&clock).queue().unwrap();
        let ask = || (queue.is_empty(), queue.is_closed());
        let made = ask();
        queue.put(HOUR, 7).unwrap();
        let filled = ask();
        queue.close();
        [made, filled, ask()]
    }),
    ("Driver", || {
        let clock = VirtualClock::new();
        let (timer, driver) = Timer::builder().clock(&clock).build_driven().unwrap();
        let ask = || (timer.is_empty(), driver.is_stopped());
        let made = ask();
        timer.arm(HOUR, |_| ()).unwrap();
        let filled = ask();
        timer.stop();
        [made, filled, ask()]
    }),
];

#[test]
fn what_is_empty_or_stopped_says_so_and_what_is_not_does_not() {
    for (name, row) in ROWS {
        assert_eq!(row(), [(true, false), (false, false), (true, true)], "{name}");
    }
}

#[test]
fn what_is_pending_says_so_until_it_has_gone() {
    let (timer, clock) = virtual_timer();
    let engine = Timer::builder().clock(&clock).deliver(|_| ()).unwrap();
    let keyed = KeyedTimer::new(&timer);
    let key = timer.arm(SECOND, |_| ()).unwrap();
    let handle = timer.schedule(SECOND, |_| ()).unwrap();
    let value = engine.schedule(SECOND, 7).unwrap();
    keyed.schedule(1, SECOND, |_| ()).unwrap();
    let ask = || {
        let keyed = keyed.is_pending(&1);
        [timer.is_pending(key), handle.is_pending(), engine.is_pending(value), keyed]
    };
    assert_eq!(ask(), [true; 4]);
    clock.advance(SECOND).unwrap();
    assert_eq!(ask(), [false; 4]);
}

/// The same for the job that an executor receives.
#[test]
fn a_job_names_itself() {
    let (clock, log) = (VirtualClock::new(), Log::new());
    let told = log.clone();
    let run = move |job: Job| {
        told.add(format!("{job:?}"));
        job.run();
        Ok(())
    };
    let timer = Timer::builder().clock(&clock).executor(run).build().unwrap();
    timer.arm(SECOND, |_| ()).unwrap();
    clock.advance(SECOND).unwrap();
    assert_eq!(log.take(), ["Job"]);
}

/// The same for the sleeper that a clock receives.
#[test]
fn a_sleeper_names_itself() {
    struct Tells(Log<String>);
    impl Clock for Tells {
        fn now(&self) -> Instant {
            Instant::now()
        }
        fn wait(&self, _until: Option<Instant>, sleeper: &Sleeper) {
            self.0.add(format!("{sleeper:?}"));
            sleeper.sleep(None);
        }
    }
    let log = Log::new();
    let timer = Timer::builder().clock(Tells(log.clone())).build().unwrap();
    timer.arm(HOUR, |_| ()).unwrap();
    eventually(|| log.len() > 0);
    timer.stop();
    assert_eq!(log.take()[0], "Sleeper");
}
