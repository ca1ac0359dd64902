//! A nightly backup and a report every half hour, in the night in which Berlin's clocks skip an hour, with an operator
//! who sets the clock.
//!
//! Run it with `cargo run -p tourbillon --features calendar --example cron`. Time is virtual: a night passes at once,
//! and every run is the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tourbillon::jiff::civil::date;
use tourbillon::jiff::tz::TimeZone;
use tourbillon::jiff::{Timestamp, Zoned};
use tourbillon::{Context, Cron, Timer, VirtualClock};

const ZONE: &str = "Europe/Berlin";

/// What happened, line by line: the wall-clock time, and a message.
#[derive(Clone)]
struct Story {
    clock: VirtualClock,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Story {
    fn tell(&self, what: &str) {
        let now = Timestamp::try_from(self.clock.wall_now()).expect("a time of our days");
        let zone = TimeZone::get(ZONE).expect("it is known");
        let line = format!("{}  {what}", now.to_zoned(zone).strftime("%a %H:%M %:z"));
        println!("{line}");
        self.lines.lock().expect("nobody panics").push(line);
    }

    /// A job that logs when it ran, and for which moment.
    fn job(&self, name: &'static str) -> impl FnMut(&Context<'_>) + Send + use<> {
        let story = self.clone();
        move |context| {
            let planned = context.wall_deadline().and_then(|at| Timestamp::try_from(at).ok());
            let late = planned.is_some_and(|planned| story.clock.wall_now() > planned.into());
            story.tell(&format!("{name}{}", if late { ", overdue" } else { "" }));
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let evening: Zoned = date(2025, 3, 30).at(0, 50, 0, 0).in_tz(ZONE)?;
    let clock = VirtualClock::new();
    clock.set_wall(evening.into())?;
    let timer = Timer::builder().clock(&clock).on_driver().build()?;
    let story = Story { clock: clock.clone(), lines: Arc::default() };

    // A fixed time of day runs once a day. On this night 02:30 does not exist, so the job runs when the gap ends.
    let backup = timer.schedule_cron(&Cron::parse("30 2 * * *", ZONE)?, story.job("backup"))?;
    // An expression that repeats within the day follows real time: half an hour is always half an hour.
    let report = timer.schedule_cron(&Cron::parse("*/30 * * * *", ZONE)?, story.job("report"))?;
    // A single moment, given as a time of day in a zone and converted to wall-clock time.
    let breakfast = date(2025, 3, 30).at(7, 0, 0, 0).in_tz(ZONE)?;
    timer.schedule_wall(&breakfast, story.job("breakfast"))?;

    clock.advance(Duration::from_secs(2 * 3600))?;

    story.tell("-- somebody sets the clock to 07:10");
    clock.set_wall(date(2025, 3, 30).at(7, 10, 0, 0).in_tz(ZONE)?.into())?;
    story.tell("-- that was wrong: back to 03:50");
    clock.set_wall(date(2025, 3, 30).at(3, 50, 0, 0).in_tz(ZONE)?.into())?;
    clock.advance(Duration::from_secs(45 * 60))?;

    assert!(report.cancel(), "no further report starts");
    story.tell("-- no more reports");
    clock.advance(Duration::from_secs(24 * 3600))?;
    assert!(backup.is_pending(), "it goes on");

    let expected = [
        "Sun 01:00 +01:00  report",
        "Sun 01:30 +01:00  report",
        "Sun 03:00 +02:00  backup",
        "Sun 03:00 +02:00  report",
        "Sun 03:30 +02:00  report",
        "Sun 03:50 +02:00  -- somebody sets the clock to 07:10",
        "Sun 07:10 +02:00  report, overdue",
        "Sun 07:10 +02:00  breakfast, overdue",
        "Sun 07:10 +02:00  -- that was wrong: back to 03:50",
        "Sun 04:30 +02:00  report",
        "Sun 04:35 +02:00  -- no more reports",
        "Mon 02:30 +02:00  backup",
    ];
    assert_eq!(*story.lines.lock().expect("nobody panics"), expected);
    Ok(())
}
