//! The names of an engine's threads, whole, however long they are. In real time, milliseconds: a virtual clock has no
//! threads of its own.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};
use std::thread;
use std::time::Duration;

use tourbillon::{Builder, Timer};

use crate::common::{MS, case};

const NAME: &str = "an engine with a name of fifty letters or a few more";

/// Tells the name of its thread.
struct Tells(Mutex<Sender<Option<String>>>);

impl Tells {
    fn tell(&self) {
        let name = thread::current().name().map(str::to_owned);
        let _ = self.0.lock().unwrap().send(name);
    }
}

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        self.tell();
    }
}

/// Has a thread of an engine tell, and how its name ends. What is returned keeps the engine.
type Row = (&'static str, &'static str, fn(Builder, Arc<Tells>) -> Box<dyn Send>);

const ROWS: [Row; 5] = [
    ("a driver that runs callbacks", "-driver", |builder, tells| {
        let timer = builder.on_driver().build().unwrap();
        timer.arm(MS, move |_| tells.tell()).unwrap();
        Box::new(timer)
    }),
    ("a worker", "-worker", |builder, tells| {
        let timer = builder.pool(2).build().unwrap();
        timer.repeat(tourbillon::Repeat::every(MS), move |_| tells.tell()).unwrap();
        Box::new(timer)
    }),
    ("the driver of an executor", "-driver", |builder, tells| {
        let here = |job: tourbillon::Job| {
            job.run();
            Ok(())
        };
        let timer = builder.executor(here).build().unwrap();
        timer.arm(MS, move |_| tells.tell()).unwrap();
        Box::new(timer)
    }),
    ("the driver of an engine", "-driver", |builder, tells| {
        let engine = builder.deliver(move |_| tells.tell()).unwrap();
        engine.schedule(MS, 7).unwrap();
        Box::new(engine)
    }),
    ("the driver of tasks", "-tasks-driver", |builder, tells| {
        let timer = builder.build().unwrap();
        let mut sleep = Box::pin(timer.sleep(10 * MS));
        let waker = tells.into();
        // On a slow machine it may be over by now: then it is asked anew.
        while sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            sleep.as_mut().reset_after(10 * MS);
        }
        Box::new((timer, sleep))
    }),
];

#[test]
fn of_the_names_of_threads() {
    for (what, suffix, tell) in ROWS {
        case(what, move || {
            let (told, names) = mpsc::channel();
            let builder = Timer::builder().name(NAME);
            let _engine = tell(builder, Arc::new(Tells(Mutex::new(told))));
            let name = names.recv_timeout(Duration::from_secs(9)).unwrap();
            assert_eq!(name, Some(format!("{NAME}{suffix}")));
        });
    }
}
