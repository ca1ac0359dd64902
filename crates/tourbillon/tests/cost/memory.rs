//! No memory for a thread: verbs that need a thread are refused with an error that says so; once there is memory again,
//! they work. In real time, because a virtual clock has no threads.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::SystemTime;

use crate::common::{MS, eventually};
use crate::meter::{alone, threads_called};
use tourbillon::{
    Batch, Engine, KeyedTimer, Purgatory, ScheduleError, StartError, Timer, WatchError,
};

/// The environment variable that marks the child process.
const CHILD: &str = "TOURBILLON_MEMORY_LIMITED";

/// In a child process, whose address space is limited to this many kilobytes.
#[test]
fn without_memory_for_a_thread() {
    if std::env::var(CHILD).is_ok() {
        return limited();
    }
    let _alone = alone();
    let child = Command::new("sh")
        .args(["-c", r#"ulimit -v 4000000 && exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(["memory::without_memory_for_a_thread", "--exact", "--nocapture"])
        .env(CHILD, "yes")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && told.contains("1 passed"), "{told}");
}

/// Allocates the whole address space, except for less than the stack of a thread.
fn take_all() -> Vec<Vec<u8>> {
    let mut taken = Vec::with_capacity(1 << 13);
    let mut size: usize = 1 << 30;
    while size >= 1 << 20 {
        let mut block = Vec::new();
        match block.try_reserve_exact(size) {
            Ok(()) => taken.push(block),
            Err(_) => size /= 2,
        }
    }
    // Frees a megabyte, for allocations other than stacks.
    taken.pop();
    taken
}

type Happening = Box<dyn FnOnce() + Send>;

/// What a row is tested on. All of it is created before, and none of it has a thread yet.
struct Bench {
    timer: Timer,
    keyed: KeyedTimer<u32>,
    purgatory: Purgatory<u32>,
    engine: Engine<Happening>,
}

impl Bench {
    fn new() -> Self {
        let timer = Timer::builder().on_driver().build().unwrap();
        let (keyed, purgatory) = (KeyedTimer::new(&timer), Purgatory::new(&timer));
        let handler = |batch: Batch<'_, Happening>| batch.for_each(|fired| (fired.value)());
        Bench { timer, keyed, purgatory, engine: Timer::builder().deliver(handler).unwrap() }
    }
}

/// Makes something happen soon, on a thread that has yet to be started. Returns whether it was refused for lack of one.
type Verb = (&'static str, fn(&Bench, Happening) -> bool);

const VERBS: &[Verb] = &[
    ("Timer::start", |bench, happen| {
        let started = bench.timer.start();
        if started.is_ok() {
            happen();
        }
        matches!(started, Err(StartError::Thread(_)))
    }),
    ("Timer::schedule", |bench, happen| no_thread(bench.timer.schedule(MS, move |_| happen()))),
    ("Timer::arm", |bench, happen| no_thread(bench.timer.arm(MS, move |_| happen()))),
    ("Timer::schedule_repeating", |bench, happen| {
        let mut once = Some(happen);
        let run = move |_: &tourbillon::Context<'_>| once.take().unwrap()();
        no_thread(bench.timer.schedule_repeating(MS, run))
    }),
    ("Timer::schedule_wall", |bench, happen| {
        no_thread(bench.timer.schedule_wall(SystemTime::now() + MS, move |_| happen()))
    }),
    ("KeyedTimer::schedule", |bench, happen| {
        no_thread(bench.keyed.schedule(1, MS, move |_| happen()))
    }),
    ("Purgatory::when", |bench, happen| {
        let added = bench.purgatory.when([1], MS, || None::<()>, move |_| happen());
        matches!(added, Err(WatchError::Thread(..)))
    }),
    ("Engine::schedule", |bench, happen| no_thread(bench.engine.schedule(MS, happen))),
    #[cfg(feature = "tasks")]
    ("Timer::sleep", sleeps),
];

fn no_thread<T, F>(done: Result<T, ScheduleError<F>>) -> bool {
    matches!(done, Err(ScheduleError::Thread(..)))
}

#[cfg(feature = "tasks")]
fn sleeps(bench: &Bench, happen: Happening) -> bool {
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Wake, Waker};
    struct Happens(Mutex<Option<Happening>>);
    impl Wake for Happens {
        fn wake(self: Arc<Self>) {
            let happen = self.0.lock().unwrap().take();
            happen.into_iter().for_each(|happen| happen());
        }
    }
    let waker = Waker::from(Arc::new(Happens(Mutex::new(Some(happen)))));
    // Long enough not to be due at its first poll, even on a loaded machine.
    let mut sleep = bench.timer.sleep(50 * MS);
    let polled = Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker));
    // Dropping it would drop the waker.
    std::mem::forget(sleep);
    polled == Poll::Ready(Err(tourbillon::tasks::SleepError::Thread))
}

fn limited() {
    let rows: Vec<(&Verb, Bench)> = VERBS.iter().map(|verb| (verb, Bench::new())).collect();
    let happened = Arc::new(AtomicU32::new(0));
    let count = || {
        let happened = happened.clone();
        Box::new(move || _ = happened.fetch_add(1, SeqCst))
    };
    let all = || rows.iter().map(|((name, verb), bench)| (*name, verb(bench, count())));
    let taken = take_all();
    // Twice: the first attempt must leave nothing behind.
    let refused: Vec<_> = all().chain(all()).collect();
    drop(taken);
    for (verb, refused) in refused {
        assert!(refused, "{verb}: there was no memory for a thread");
    }
    assert_eq!(happened.load(SeqCst), 0, "what was refused does not happen");
    for (verb, refused) in all() {
        assert!(!refused, "{verb}: there is memory again");
    }
    eventually(|| happened.load(SeqCst) as usize == VERBS.len());
    // A timer that waits for the wall clock needs the watch thread.
    eventually(|| threads_called("tourbillon-wall") == 1);
}
