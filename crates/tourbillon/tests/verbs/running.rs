//! What handles say of a callback that runs: one that runs once cannot be taken back, and one that repeats ends with
//! this run.

use std::sync::{Arc, OnceLock};

use tourbillon::{Context, Cron, Repeat, State, Timeout, Timer};

use crate::common::{HOUR, Log, PLACES, SECOND, accounted, case, virtual_on};

type Run = Box<dyn FnMut(&Context<'_>) + Send>;

/// A verb that gives a handle, whether its callback repeats, and how to call it: to run within an hour.
type Verb = (&'static str, bool, fn(&Timer, Run) -> Timeout);

const VERBS: [Verb; 6] = [
    ("schedule", false, |timer, mut run| {
        timer.schedule(SECOND, move |context| run(context)).unwrap()
    }),
    ("schedule_at", false, |timer, mut run| {
        timer.schedule_at(timer.now() + SECOND, move |context| run(context)).unwrap()
    }),
    ("schedule_wall", false, |timer, mut run| {
        timer.schedule_wall(timer.wall_now() + SECOND, move |context| run(context)).unwrap()
    }),
    ("schedule_repeating", true, |timer, mut run| {
        let again = move |context: &Context<'_>| {
            run(context);
            context.again(SECOND);
        };
        timer.schedule_repeating(SECOND, again).unwrap()
    }),
    ("repeat", true, |timer, mut run| {
        timer.repeat(Repeat::every(SECOND), move |context| run(context)).unwrap()
    }),
    ("schedule_cron", true, |timer, mut run| {
        let cron = Cron::parse("* * * * *", "UTC").unwrap();
        timer.schedule_cron(&cron, move |context| run(context)).unwrap()
    }),
];

/// How the callback takes itself back: by the handle that was given, or by one that it has of itself.
const HANDLES: [&str; 3] = ["its handle", "a clone of it", "a handle of the run"];

#[test]
fn a_cancel_by_the_callback_itself() {
    for (verb, repeats, schedule) in VERBS {
        for (place, which) in PLACES.iter().flat_map(|place| HANDLES.map(|which| (place, which))) {
            case(format!("{verb}, {place}, {which}"), move || {
                let (timer, clock) = virtual_on(place);
                let (own, log): (Arc<OnceLock<Timeout>>, _) = (Arc::default(), Log::new());
                let (inner, told) = (own.clone(), log.clone());
                let run = move |context: &Context<'_>| {
                    let given = inner.get().unwrap();
                    let handle = match which {
                        "its handle" => given,
                        "a clone of it" => &given.clone(),
                        _ => &context.timeout().unwrap(),
                    };
                    let moved = handle.reschedule(HOUR).is_ok();
                    let before = (handle.state(), handle.is_pending(), moved);
                    let answers = (handle.cancel(), handle.cancel());
                    told.add((before, answers, handle.state(), given.state()));
                };
                let handle = schedule(&timer, Box::new(run));
                let _ = own.set(handle.clone());
                clock.advance(HOUR).unwrap();
                let (runs, ends) = match repeats {
                    true => ((true, false), State::Cancelled),
                    false => ((false, false), State::Fired),
                };
                let during = if repeats { State::Cancelled } else { State::Running };
                let ran = ((State::Running, false, false), runs, during, during);
                assert_eq!(log.take(), [ran]);
                assert_eq!((handle.state(), handle.cancel(), timer.len()), (ends, false, 0));
                assert_eq!((timer.counts().panicked, timer.counts().fired), (0, 1));
                accounted(&timer);
            });
        }
    }
}
