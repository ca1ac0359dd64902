//! Every call, against a real server.

use std::time::{Duration, SystemTime};

use serde_json::json;
use tourbillon_client::{
    Cancelled, Client, Condition, Conflict, Error, Event, List, NewTimer, Payload, QueueChange,
    Receive, Retry, Webhook, blocking,
};
use tourbillon_server::{Settings, Tokens};

use crate::served::Server;

const HOUR: Duration = Duration::from_secs(3600);

fn code<T>(answer: Result<T, Error>) -> String {
    answer.err().expect("it is refused").code().expect("by the server").to_owned()
}

#[tokio::test]
async fn a_timer_is_made_shown_moved_run_and_cancelled() {
    let server = Server::start(Settings::default());
    let client = Client::new(server.url()).unwrap();
    let queue = client.queue("mails");
    client.ready().await.unwrap();
    let timer = NewTimer::after(HOUR).key("a b/ä").payload(&json!({"n": 1})).unwrap();
    let made = queue.schedule(&timer).await.unwrap();
    assert_eq!((&*made.key, &*made.state, &*made.queue), ("a b/ä", "scheduled", "mails"));
    assert!(made.due.duration_since(client.now()).unwrap() > HOUR - Duration::from_secs(60));
    assert_eq!(made.payload(), Payload::Json(r#"{"n":1}"#));
    assert_eq!(made.remember, Duration::from_secs(600));
    assert_eq!(code(queue.schedule(&timer).await), "key_taken");
    let kept = queue.schedule_or(&timer, Conflict::Keep).await.unwrap();
    assert_eq!(kept.generation, made.generation);
    let replaced = queue.schedule_or(&timer, Conflict::Replace).await.unwrap();
    assert_eq!(replaced.replaced.unwrap().generation, made.generation);
    assert_eq!(
        code(queue.replace("a b/ä", &timer, Condition::Absent).await),
        "precondition_failed"
    );
    let of = Condition::Generation(replaced.generation);
    let put = queue.replace("a b/ä", &timer, of).await.unwrap();
    assert_eq!(code(queue.cancel("a b/ä", of).await), "precondition_failed");
    let to = client.now() + 2 * HOUR;
    let moved = queue.move_to("a b/ä", to, Condition::Any).await.unwrap();
    assert!(moved.due >= to && moved.due < to + Duration::from_millis(1), "rounded up");
    assert_eq!(moved.generation, put.generation);
    queue.move_after("a b/ä", HOUR, Condition::Any).await.unwrap();
    queue.run("a b/ä").await.unwrap();
    assert_eq!(queue.get("a b/ä").await.unwrap().state, "due");
    assert_eq!(queue.cancel("a b/ä", Condition::Any).await.unwrap(), Cancelled::Cancelled);
    assert_eq!(code(queue.get("nobody").await), "unknown_timer");
    assert_eq!(code(queue.get("..").await), "bad_value");
    let bytes = NewTimer::at(SystemTime::UNIX_EPOCH).payload_bytes(&[0, 255]);
    let made = queue.schedule(&bytes).await.unwrap();
    assert!(made.key.starts_with('~') && made.payload() == Payload::Bytes(&[0, 255]));
}

#[tokio::test]
async fn many_are_made_listed_and_cancelled() {
    let server = Server::start(Settings::default());
    let queue = Client::new(server.url()).unwrap().queue("q");
    let timers: Vec<_> =
        (0..5).map(|n| NewTimer::after(HOUR * (n + 1)).key(format!("k{n}"))).collect();
    let made = queue.schedule_many(&timers, Conflict::Refuse).await.unwrap();
    assert!(made.len() == 5 && made.iter().all(|one| one.outcome == "made"));
    let again = queue.schedule_many(&timers, Conflict::Refuse).await.unwrap_err();
    assert!(again.to_string().contains("number 0"), "{again}");
    // A page may be short.
    let (mut seen, mut list) = (Vec::new(), List { limit: Some(2), ..List::default() });
    loop {
        let page = queue.list(&list).await.unwrap();
        assert!(page.timers.len() <= 2);
        seen.extend(page.timers.into_iter().map(|timer| timer.key));
        list.cursor = page.next;
        if list.cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["k0", "k1", "k2", "k3", "k4"]);
    let forecast =
        queue.forecast(SystemTime::now(), SystemTime::now() + 6 * HOUR, 6).await.unwrap();
    assert_eq!(forecast.iter().map(|bucket| bucket.count).sum::<u64>(), 5);
    let some = queue.cancel_keys(&["k0", "none"]).await.unwrap();
    assert_eq!((some.cancelled, &*some.unknown), (1, &["none".to_owned()][..]));
    assert_eq!(queue.cancel_prefix("k").await.unwrap().cancelled, 4);
    assert_eq!(queue.stats().await.unwrap().counts.scheduled, 0);
    queue.delete(false).await.unwrap();
    assert_eq!(code(queue.stats().await), "unknown_queue");
}

#[tokio::test]
async fn deliveries_are_settled_and_the_dead_live_again() {
    let server = Server::start(Settings::default());
    let client = Client::new(server.url()).unwrap();
    let queue = client.queue("q");
    let once = Retry { attempts: Some(1), ..Retry::default() };
    for key in ["good", "bad"] {
        let timer = NewTimer::after(Duration::ZERO).key(key).payload(key).unwrap();
        queue.schedule(&timer.retry(once.clone())).await.unwrap();
    }
    let receive = Receive::default().max(2).wait(Duration::from_secs(5)).lease(HOUR);
    let mut got = queue.receive(&receive).await.unwrap();
    if got.len() == 1 {
        got.extend(queue.receive(&receive).await.unwrap());
    }
    let find = |key: &str| got.iter().find(|delivery| delivery.key == key).unwrap();
    let (good, bad) = (find("good"), find("bad"));
    assert_eq!(good.payload().read::<String>().unwrap(), "good");
    assert!(good.handed >= good.due && good.attempt == 1);
    let extended = queue.extend(&[&good.token], HOUR).await.unwrap();
    assert!(extended.lease_until.unwrap() > good.handed);
    assert_eq!(queue.ack(&[&good.token]).await.unwrap().count, 1);
    assert_eq!(queue.ack(&[&good.token]).await.unwrap().stale[0].reason, "acked");
    assert_eq!(queue.nack(&[&bad.token], None, Some("<b>no</b>")).await.unwrap().count, 1);
    let dead = queue.get("bad").await.unwrap();
    assert_eq!((&*dead.state, dead.last_error.as_deref()), ("dead", Some("<b>no</b>")));
    assert_eq!(queue.redrive(Some("b")).await.unwrap().revived, 1);
    let queues = client.queues().await.unwrap();
    assert_eq!((queues.queues[0].counts.due, queues.damaged), (1, false));
}

#[tokio::test]
async fn settings_and_recurring_timers_are_sent_as_the_server_reads_them() {
    let server = Server::start(Settings::default());
    let queue = Client::new(server.url()).unwrap().queue("q");
    let change = QueueChange { paused: Some(true), rate: Some(Some(7)), ..QueueChange::default() };
    let stats = queue.set(&change).await.unwrap();
    assert_eq!((stats.paused, stats.settings.rate), (true, Some(7)));
    let change = QueueChange { rate: Some(None), ..QueueChange::default() };
    assert_eq!(queue.set(&change).await.unwrap().settings.rate, None);
    let far = SystemTime::now() + 100 * HOUR;
    let every = NewTimer::every(HOUR).first(far).until(far + HOUR).times(3).missed("skip");
    let every = every.expires(HOUR).remember(HOUR).key("e");
    let url = "https://example.org/x".to_owned();
    let webhook = Webhook { url, headers: [("a".into(), "b".into())].into(), timeout: None };
    let made = queue.schedule(&every.webhook(Some(webhook))).await.unwrap();
    assert_eq!((made.every, made.remember, made.expires), (Some(HOUR), HOUR, Some(HOUR)));
    assert_eq!(
        (made.times, made.missed.as_deref(), made.until.is_some()),
        (Some(3), Some("skip"), true)
    );
    assert_eq!(made.webhook.unwrap().headers, ["a"]);
    let cron = NewTimer::cron("30 2 * * *").zone("Europe/Berlin").payload_json(" 1.0 ").unwrap();
    let made = queue.schedule(&cron).await.unwrap();
    assert_eq!(made.zone.as_deref(), Some("Europe/Berlin"));
    assert!(NewTimer::default().payload_json("{").is_err());
    let late = NewTimer::at(SystemTime::UNIX_EPOCH - HOUR);
    assert!(matches!(queue.schedule(&late).await, Err(Error::Argument(_))));
}

#[tokio::test]
async fn events_come_as_they_happen() {
    let server = Server::start(Settings::default());
    let client = Client::new(server.url()).unwrap();
    let mut events = client.events(Some("q")).await.unwrap();
    client.queue("other").schedule(&NewTimer::after(HOUR)).await.unwrap();
    client.queue("q").schedule(&NewTimer::after(HOUR).key("k")).await.unwrap();
    let Some(Ok(Event::Happened(one))) = events.next().await else { panic!("no event") };
    assert_eq!((&*one.what, &*one.queue, one.key.as_deref()), ("scheduled", "q", Some("k")));
    drop(server);
    assert!(!matches!(events.next().await, Some(Ok(_))));
}

#[test]
fn threads_have_the_same_calls() {
    let server = Server::start(Settings::default());
    let client = blocking::Client::new(server.url()).unwrap();
    let queue = client.queue("q");
    let mut events = client.events(None).unwrap();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let queue = &queue;
            scope.spawn(move || {
                queue.schedule(&NewTimer::after(Duration::ZERO).key(format!("{n}"))).unwrap();
            });
        }
    });
    assert!(matches!(events.next(), Some(Ok(Event::Happened(_)))));
    let receive = Receive::default().max(10).wait(Duration::from_secs(5));
    let got = queue.receive(&receive).unwrap();
    let tokens: Vec<&str> = got.iter().map(|delivery| &*delivery.token).collect();
    assert_eq!(queue.ack(&tokens).unwrap().count, got.len() as u64);
    assert!(client.queues().unwrap().queues[0].per_second >= 0.0);
}

#[tokio::test]
async fn a_token_is_sent_and_its_rights_count() {
    let tokens = Tokens::parse("ann:secret:read").unwrap();
    let server = Server::start(Settings { tokens: Some(tokens), ..Settings::default() });
    let nobody = Client::new(server.url()).unwrap();
    assert_eq!(code(nobody.queues().await), "unauthorized");
    let ann = Client::builder(server.url()).token("secret").build().unwrap();
    assert_eq!(ann.queues().await.unwrap().right, "read");
    assert_eq!(code(ann.queue("q").schedule(&NewTimer::after(HOUR)).await), "forbidden");
    assert!(!format!("{ann:?}").contains("secret"));
}

#[tokio::test]
async fn what_is_no_server_is_named() {
    for wrong in ["", "localhost:7420", "ftp://a", "http://", "http://a?b", "http://me@host"] {
        assert!(matches!(Client::new(wrong), Err(Error::Argument(_))), "{wrong}");
    }
    assert!(Client::builder("http://a").token("a\nb").build().is_err());
    let nobody = Client::builder("http://127.0.0.1:1").retries(0).build().unwrap();
    let error = nobody.queues().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)) && !error.may_have_happened(), "{error}");
}
