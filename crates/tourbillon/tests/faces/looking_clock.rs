//! A clock is user code: it is read and waited for with no lock held, and may query everything that uses it.
//!
//! In real time, milliseconds of it: a virtual clock is not user code.

use std::cell::Cell;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Instant, SystemTime};

use crate::common::{HOUR, MS, PLACES, SECOND, case, eventually, running_on};
use tourbillon::{
    Attempt, Backoff, Builder, Clock, Cron, DelayQueue, Engine, KeyedTimer, Purgatory, Repeat,
    Sleeper, TakeError, Timer,
};

type Look = Arc<dyn Fn() + Send + Sync>;

/// The system's clock, which makes a query first.
#[derive(Clone, Default)]
struct Looking(Arc<Mutex<Option<Look>>>);

impl Looking {
    /// Sets the query.
    fn at(&self, look: impl Fn() + Send + Sync + 'static) {
        *self.0.lock().unwrap() = Some(Arc::new(look));
    }

    /// Drops the query, which holds the clock.
    fn forget(&self) {
        let look = self.0.lock().unwrap().take();
        drop(look);
    }

    fn look(&self) {
        thread_local!(static LOOKS: Cell<bool> = const { Cell::new(false) });
        let look = self.0.lock().unwrap().clone();
        // The query itself may read the clock.
        if let Some(look) = look.filter(|_| !LOOKS.replace(true)) {
            look();
            drop(look);
            LOOKS.set(false);
        }
    }
}

impl Clock for Looking {
    fn now(&self) -> Instant {
        self.look();
        Instant::now()
    }

    fn wait(&self, until: Option<Instant>, sleeper: &Sleeper) {
        self.look();
        sleeper.sleep(until.map(|until| until.saturating_duration_since(Instant::now())));
    }
}

/// Creates a face on the clock, sets a query of that face, and uses each of its verbs.
type Uses = fn(Builder, &Looking);

const CALLBACKS: &[(&str, Uses)] = &[
    ("Timer", |builder, clock| {
        let timer = builder.build().unwrap();
        let far = timer.schedule(HOUR, |_| ()).unwrap();
        let (own, kept) = (timer.clone(), far.clone());
        clock.at(move || {
            let _ = (own.counts(), own.pending(), own.snapshot(), own.lateness());
            let _ = (own.is_stopped(), kept.state(), kept.deadline(), own.deadline(kept.key()));
            assert_eq!(own.check(), Ok(()));
        });
        far.reschedule(2 * HOUR).unwrap();
        far.reschedule_at(timer.now() + HOUR).unwrap();
        assert!(far.remaining().is_some());
        let again = |context: &tourbillon::Context<'_>| _ = context.again(MS);
        let all = [
            timer.schedule(MS, |_| ()).unwrap(),
            timer.schedule_at(timer.now(), |_| ()).unwrap(),
            timer.schedule_repeating(MS, again).unwrap(),
            timer.repeat(Repeat::every(MS), |_| ()).unwrap(),
            timer.schedule_wall(SystemTime::now() + MS, |_| ()).unwrap(),
        ];
        let key = timer.arm(HOUR, |_| ()).unwrap();
        timer.reschedule(key, MS).unwrap();
        let fails = |_: &Attempt| Err::<(), ()>(());
        let retry = timer.retry(Backoff::new(MS).tries(3), fails).unwrap();
        let cron = Cron::parse("* * * * *", "UTC").unwrap();
        let cron = timer.schedule_cron(&cron, |_| ()).unwrap();
        retry.wait();
        eventually(|| timer.counts().fired > 20);
        assert!(far.cancel() && cron.cancel() && all[2].cancel() && all[3].cancel());
        timer.schedule(HOUR, |_| ()).unwrap();
        assert_eq!(timer.stop().len(), 1);
    }),
    ("KeyedTimer", |builder, clock| {
        let keyed = KeyedTimer::new(&builder.build().unwrap());
        let own = keyed.clone();
        clock.at(move || _ = (own.len(), own.is_pending(&1), own.deadline(&2)));
        let (told, ran) = mpsc::channel();
        keyed.schedule(1, HOUR, |_| ()).unwrap();
        keyed.reschedule(&1, 2 * HOUR).unwrap();
        assert!(keyed.schedule(1, MS, move |_| told.send(()).unwrap()).unwrap());
        assert!(keyed.schedule_if_absent(2, HOUR, |_| ()).unwrap().is_none());
        keyed.retry(3, Backoff::new(MS), |_| Err::<(), ()>(()), |_| ()).unwrap();
        ran.recv().unwrap();
        assert!(keyed.cancel(&3));
        assert_eq!(keyed.clear(), 1);
    }),
    ("Purgatory", |builder, clock| {
        let purgatory: Purgatory<u64> = Purgatory::new(&builder.build().unwrap());
        let own = purgatory.clone();
        clock.at(move || assert_eq!((own.check(&1), own.delayed() > 9), (0, false)));
        let (told, outcomes) = mpsc::channel();
        for (key, after) in [(1, MS), (2, HOUR), (3, HOUR)] {
            let told = told.clone();
            let then = move |outcome: Result<(), _>| told.send(outcome.is_err()).unwrap();
            assert!(purgatory.when([key], after, || None, then).is_ok());
        }
        drop(purgatory.wait([4], HOUR, || None::<()>));
        assert_eq!(outcomes.recv(), Ok(true));
        purgatory.cancel_key(&2);
        purgatory.stop();
        assert_eq!(outcomes.try_iter().count(), 2);
    }),
];

const OTHERS: &[(&str, Uses)] = &[
    ("Engine", |builder, clock| {
        let (told, delivered) = mpsc::channel();
        let handler = move |batch: tourbillon::Batch<'_, u32>| {
            batch.for_each(|fired| told.send(fired.value).unwrap());
        };
        let engine: Engine<u32> = builder.deliver(handler).unwrap();
        let own = engine.clone();
        clock.at(move || {
            let _ = (own.counts(), own.pending(), own.snapshot(), own.lateness());
            assert_eq!(own.check(), Ok(()));
        });
        let far = engine.schedule(HOUR, 1).unwrap();
        engine.reschedule(far, 2 * HOUR).unwrap();
        engine.schedule_at(engine.now(), 2).unwrap();
        engine.schedule(MS, 3).unwrap();
        assert_eq!([delivered.recv(), delivered.recv()].map(Result::unwrap).iter().sum::<u32>(), 5);
        assert_eq!(engine.cancel(far), Some(1));
        engine.schedule(HOUR, 4).unwrap();
        assert_eq!(engine.stop().len(), 1);
    }),
    ("Driver", |builder, clock| {
        let (timer, mut driver) = builder.build_driven().unwrap();
        let own = timer.clone();
        clock.at(move || _ = (own.counts(), own.pending(), own.check()));
        driver.on_wake(|| ());
        timer.schedule(MS, |_| ()).unwrap();
        timer.schedule(HOUR, |_| ()).unwrap();
        assert!(driver.timeout().is_some() && driver.turn().next.is_some());
        assert_eq!(driver.turn_within(SECOND).ran, 1);
        assert_eq!(driver.turn_within(MS).ran, 0);
        drop(driver);
        assert!(timer.is_stopped());
    }),
    ("DelayQueue", |builder, clock| {
        let queue: DelayQueue<u32> = builder.queue().unwrap();
        let far = queue.put(HOUR, 1).unwrap();
        let own = queue.clone();
        clock.at(move || {
            let _ = (own.counts(), own.is_closed(), own.deadline(far));
            assert_eq!(own.check(), Ok(()));
        });
        queue.reschedule(far, 2 * HOUR).unwrap();
        queue.reschedule_at(far, queue.now() + HOUR).unwrap();
        assert_eq!(queue.try_take(), Err(TakeError::NothingDue));
        assert_eq!(queue.take_within(MS), Err(TakeError::NothingDue));
        queue.put_at(queue.now(), 2).unwrap();
        assert_eq!(queue.take(), Ok(2));
        // A leader and a follower for each kind of take.
        let taken = || queue.clone();
        let takers = [
            thread::spawn({
                let own = taken();
                move || own.take()
            }),
            thread::spawn({
                let own = taken();
                move || own.take_within(HOUR)
            }),
            thread::spawn({
                let own = taken();
                move || own.take_within(5 * MS)
            }),
        ];
        queue.put(2 * MS, 3).unwrap();
        queue.put(20 * MS, 4).unwrap();
        eventually(|| queue.counts().fired == 3);
        assert_eq!(queue.remove(far), Some(1));
        queue.put(HOUR, 5).unwrap();
        assert_eq!(queue.close().len(), 1);
        let taken: Vec<_> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
        assert_eq!(taken.iter().filter(|taken| taken.is_ok()).count(), 2, "{taken:?}");
    }),
    ("tasks", |builder, clock| {
        let timer = builder.build().unwrap();
        let own = timer.clone();
        clock.at(move || _ = (own.counts(), own.snapshot(), own.check()));
        futures_lite::future::block_on(async {
            timer.sleep(MS).await.unwrap();
            timer.sleep_until(timer.now() + MS).await.unwrap();
            let never = timer.timeout(MS, std::future::pending::<()>()).await;
            assert!(never.unwrap().is_err());
            let mut interval = timer.interval(MS);
            for _ in 0..3 {
                interval.tick().await.unwrap();
            }
            interval.reset();
            let mut queue = timer.delay_queue();
            queue.insert(1, 1, HOUR).unwrap();
            assert!(queue.reset(&1, MS));
            assert_eq!(queue.next().await.unwrap().unwrap().value, 1);
        });
        let mut sleep = timer.sleep(HOUR);
        sleep.reset_after(2 * HOUR);
        drop((timer.stop(), sleep));
    }),
];

#[test]
fn a_clock_may_look_at_what_is_on_it() {
    let use_all = |name: String, builder: Builder, uses: Uses| {
        let clock = Looking::default();
        let (own, builder) = (clock.clone(), builder.clock(clock.clone()));
        case(name, move || uses(builder, &own));
        clock.forget();
    };
    for &(face, uses) in CALLBACKS {
        for place in PLACES {
            use_all(format!("{face}, {place}"), running_on(place), uses);
        }
    }
    for &(face, uses) in OTHERS {
        use_all(face.into(), Timer::builder(), uses);
    }
}
