//! A slow callback delays no other while a thread is free. In real time, milliseconds of it: on a virtual clock nothing
//! else becomes due while a callback runs.

use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{MS, case, eventually};
use tourbillon::{Builder, Job, Timer};

/// An executor with this many threads.
fn threads(count: usize) -> impl Fn(Job) -> Result<(), Job> + Send + Sync + 'static {
    let (jobs, queue) = mpsc::channel::<Job>();
    let queue = Arc::new(Mutex::new(queue));
    for _ in 0..count {
        let queue = queue.clone();
        thread::spawn(move || {
            loop {
                let job = queue.lock().unwrap().recv();
                let Ok(job) = job else { break };
                job.run();
            }
        });
    }
    let jobs = Mutex::new(jobs);
    move |job| jobs.lock().unwrap().send(job).map_err(|back| back.0)
}

fn thread_each(job: Job) -> Result<(), Job> {
    thread::spawn(move || job.run());
    Ok(())
}

/// A place with at least four threads.
type Place = (&'static str, fn(Builder) -> Builder);

const PLACES: [Place; 3] = [
    ("pool of four", |builder| builder.pool(4)),
    ("executor of four threads", |builder| builder.executor(threads(4))),
    ("executor with a thread for each", |builder| builder.executor(thread_each)),
];

#[test]
fn who_is_due_while_others_run_finds_another_thread() {
    for (place, set) in PLACES {
        for shards in [1, 4] {
            case(format!("{place}, {shards} shards"), move || {
                let timer = set(Timer::builder().shards(shards)).build().unwrap();
                // Threads are started in the first round, and sleep before the others.
                for round in 0..4 {
                    let gate = Arc::new((Mutex::new(false), Condvar::new()));
                    let (told, begun) = mpsc::channel();
                    // Each begins while all before it are blocked at the gate, and so does the last.
                    for n in 0..4 {
                        let (told, gate) = (told.clone(), gate.clone());
                        let run = move |_: &tourbillon::Context<'_>| {
                            told.send(n).unwrap();
                            let open = gate.0.lock().unwrap();
                            drop(gate.1.wait_while(open, |open| !*open && n < 3).unwrap());
                        };
                        timer.arm(MS, run).unwrap();
                        let begins = begun.recv_timeout(Duration::from_secs(5));
                        assert_eq!(begins, Ok(n), "it begins, in round {round}");
                    }
                    *gate.0.lock().unwrap() = true;
                    gate.1.notify_all();
                    eventually(|| timer.counts().fired == 4 * (round + 1));
                    thread::sleep(5 * MS);
                }
                assert!(timer.stop().is_empty());
            });
        }
    }
}

/// Timers that are due together get their threads at once: in microseconds, whatever the tick. It would take minutes if
/// the driver returned after a fraction of the longest tick.
#[test]
fn all_who_are_due_together_find_their_threads_whatever_the_tick() {
    const THREADS: usize = 8;
    for tick in [Duration::from_micros(1), MS, 3600 * 1000 * MS] {
        for shards in [1, 4] {
            case(format!("a tick of {tick:?}, {shards} shards"), move || {
                // From before the engine began, so it is due at once. A later deadline would round up to the first
                // tick.
                let before = Instant::now();
                let builder = Timer::builder().tick(tick).shards(shards).pool(THREADS);
                let timer = builder.build().unwrap();
                let meet = Arc::new(Barrier::new(THREADS + 1));
                for _ in 0..THREADS {
                    let meet = meet.clone();
                    timer.arm_at(before, move |_| _ = meet.wait()).unwrap();
                }
                // None of them ends before all have begun.
                meet.wait();
                assert!(timer.stop().is_empty());
            });
        }
    }
}
