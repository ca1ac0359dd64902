//! Retrying with backoff: three services that fail in three ways, and one retry that is cancelled.
//!
//! Run it with `cargo run --release -p tourbillon --example retry`. It takes about a second. Jitter has a fixed seed,
//! so that the output is nearly the same each time; a real program would not set a seed.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tourbillon::{Attempt, Backoff, Jitter, Retried, Timer};

/// How a service answers.
#[derive(Debug)]
enum Failure {
    /// The service may be available again soon.
    Unavailable,
    /// A retry will not help.
    NoSuchUser,
}

fn tell(began: Instant, service: &str, what: &str) {
    println!("{:>5} ms  {service:<8} {what}", began.elapsed().as_millis());
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (timer, began) = (Timer::new(), Instant::now());
    let backoff = Backoff::new(Duration::from_millis(40))
        .most(Duration::from_millis(400))
        .jitter(Jitter::Equal);

    // Available at the fourth try.
    let mail = timer.retry(backoff.clone().seed(1), move |attempt: &Attempt| {
        tell(began, "mail", &format!("try {}", attempt.number()));
        if attempt.number() < 4 { Err(Failure::Unavailable) } else { Ok("250 accepted") }
    })?;

    // Never available: the retry ends after half a second.
    let stock = timer.retry(
        backoff.clone().within(Duration::from_millis(500)).seed(2),
        move |attempt| {
            tell(began, "stock", &format!("try {}", attempt.number()));
            Err::<(), _>(Failure::Unavailable)
        },
    )?;

    // An error that no retry can fix. Here a closure receives the outcome, so no thread has to wait for it.
    let (sender, outcome) = mpsc::channel();
    let job = move |attempt: &Attempt| {
        tell(began, "login", &format!("try {}", attempt.number()));
        attempt.give_up();
        Err::<(), _>(Failure::NoSuchUser)
    };
    timer.retry_then(backoff.clone(), job, move |outcome| sender.send(outcome).unwrap())?;

    // Cancelled: the user has closed the window.
    let news = timer.retry(backoff.seed(3), move |attempt| {
        tell(began, "news", &format!("try {}", attempt.number()));
        Err::<(), _>(Failure::Unavailable)
    })?;
    let cancel = news.timeout();
    timer.schedule(Duration::from_millis(150), move |_| {
        assert!(cancel.cancel(), "no further try starts");
    })?;

    let login = outcome.recv()?;
    tell(began, "login", &format!("{login:?}"));
    assert!(matches!(login, Retried::GaveUp { error: Failure::NoSuchUser, tries: 1 }));
    let news = news.wait();
    tell(began, "news", &format!("{news:?}"));
    assert!(matches!(news, Retried::Cancelled));
    let mail = mail.wait();
    tell(began, "mail", &format!("{mail:?}"));
    assert!(matches!(mail, Retried::Success("250 accepted")));
    let stock = stock.wait();
    tell(began, "stock", &format!("{stock:?}"));
    assert!(matches!(stock, Retried::GaveUp { error: Failure::Unavailable, .. }));
    Ok(())
}
