//! The only event that this crate reports through `tracing`. Alone in its test program, because engines are counted per
//! process.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tourbillon::{Engine, Timer};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static WARNINGS: AtomicUsize = AtomicUsize::new(0);
static LAST: Mutex<String> = Mutex::new(String::new());

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        assert_eq!(*event.metadata().level(), Level::WARN);
        WARNINGS.fetch_add(1, SeqCst);
        event.record(&mut Text);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Text;

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        *LAST.lock().unwrap() += &format!("{field}={value:?} ");
    }
}

#[test]
fn more_than_64_engines_at_once_are_worth_one_warning() {
    tracing::subscriber::set_global_default(Listener).unwrap();
    // One after another, any number of them is fine.
    (0..100).for_each(|_| drop(Timer::new()));
    let mut engines: Vec<_> = (0..64).map(|_| Timer::new()).collect();
    assert_eq!(WARNINGS.load(SeqCst), 0);
    let one_more: Engine<()> = Timer::builder().deliver(|_| ()).unwrap();
    assert_eq!(WARNINGS.load(SeqCst), 1);
    assert!(LAST.lock().unwrap().contains("alive=65"), "{:?}", LAST.lock());
    // One warning in total: not one for each engine, and not a second one.
    engines.extend((0..10).map(|_| Timer::new()));
    drop((engines, one_more));
    let _many: Vec<_> = (0..100).map(|_| Timer::new()).collect();
    assert_eq!(WARNINGS.load(SeqCst), 1);
}
