//! The page of `tourbillon serve` in a browser: a first visit, an operator's actions, tokens, and failures.
//!
//! No test depends on the speed of the machine: what a test checks stays on the page or is recorded (`said`), and
//! timers become due because the test sets the server's clock.

use std::time::Duration;

use browser::{Chromium, Look, Page, Served};
use serde_json::{Value, json};

/// Waits until an element's text is this.
fn becomes(page: &mut Page, selector: &str, text: &str) {
    page.wait(&format!("document.querySelector({selector:?})?.textContent.trim() === {text:?}"));
}

fn shown(page: &mut Page, selector: &str) -> bool {
    page.eval(&format!("document.querySelector({selector:?}).checkVisibility()")) == true
}

fn wait_shown(page: &mut Page, selector: &str, wanted: bool) {
    page.wait(&format!("document.querySelector({selector:?})?.checkVisibility() === {wanted}"));
}

/// Opens the page of a server at a path, in a new browser.
fn visit(served: &Served, look: Look, path: &str) -> (Chromium, Page) {
    let chromium = Chromium::start();
    let mut page = chromium.page(look);
    page.visit(&format!("{}{path}", served.url()));
    page.wait("document.querySelector('#total-dead')?.textContent");
    note_toasts(&mut page);
    (chromium, page)
}

/// Records the page's toasts, for `said`.
fn note_toasts(page: &mut Page) {
    page.eval(
        "(() => { window.notices = []; const notice = document.querySelector('#notice');
           new MutationObserver(() => window.notices.push(notice.textContent))
             .observe(notice, { childList: true, characterData: true, subtree: true }); })()",
    );
}

/// Waits for a toast that begins with this text, shown at any time since the visit began. A toast disappears after some
/// seconds.
fn said(page: &mut Page, text: &str) {
    page.wait(&format!("window.notices.some((notice) => notice.startsWith({text:?}))"));
}

/// The errors reported by the page, except for refusals that the test intends.
fn complaints(page: &mut Page) -> Vec<String> {
    let meant = |line: &String| line.contains("the server responded with a status of 4");
    page.complaints().into_iter().filter(|line| !meant(line)).collect()
}

#[test]
fn a_first_visit_has_timers_to_play_with_and_one_fires() {
    let served = Served::start();
    let (_chromium, mut page) = visit(&served, Look::LAPTOP, "");
    wait_shown(&mut page, "#offer", true);
    page.click("#play");
    becomes(&mut page, "#queueName", "hello");
    page.wait("document.querySelectorAll('#events .scheduled').length === 6");
    // Ten seconds make the first timer due.
    served.set_ahead(Duration::from_secs(10));
    said(&mut page, "first was handed");
    page.wait("[...document.querySelectorAll('#events .acked a')].some((a) => a.textContent === 'hello / first')");
    wait_shown(&mut page, "#offer", false);
    assert_eq!(page.complaints(), Vec::<String>::new());
    for request in page.requests() {
        assert!(request.starts_with(&served.url()) || request.starts_with("about:"), "{request}");
    }
}

#[test]
fn a_timer_is_scheduled_watched_moved_run_and_cancelled() {
    let served = Served::start();
    let (_chromium, mut page) = visit(&served, Look::LAPTOP, "");
    wait_shown(&mut page, "#schedule", true);
    // An invalid payload is reported.
    page.fill("#newPayload", "{");
    page.click("#schedule button");
    said(&mut page, "Not done: ");
    page.fill("#newPayload", "{\"hello\":\"page\"}");
    page.fill("#key", "first");
    page.fill("#in", "1h");
    page.click("#schedule button");
    said(&mut page, "first is due in ");
    // The table updates by itself: first scheduled, then due.
    becomes(&mut page, "#queues th", "hello");
    becomes(&mut page, "#queues td:nth-child(2)", "1");
    served.set_ahead(Duration::from_secs(3600));
    becomes(&mut page, "#queues td:nth-child(3)", "1");
    // By keyboard from the queue to the timer.
    page.eval("document.querySelector('#queues a').focus()");
    page.call("Input.dispatchKeyEvent", json!({"type": "keyDown", "key": "Enter", "text": "\r"}));
    becomes(&mut page, "#list th", "first");
    page.click("#list a");
    becomes(&mut page, "#timerIs dd", "due");
    assert!(page.text("#payload").contains("\"page\""));
    page.fill("#moveIn", "1h");
    page.click("#move button");
    becomes(&mut page, "#timerIs dd", "scheduled");
    page.click("#run");
    becomes(&mut page, "#timerIs dd", "due");
    served.post("hello/receive", &json!({"lease": "1h"}));
    becomes(&mut page, "#timerIs dd", "delivering");
    assert!(!shown(&mut page, "#run"));
    // The button asks for confirmation.
    page.click("#cancel");
    becomes(&mut page, "#cancel", "Really cancel?");
    becomes(&mut page, "#timerIs dd", "delivering");
    page.click("#cancel");
    becomes(&mut page, "#timerIs dd", "cancelled");
    assert!(!shown(&mut page, "#timerButtons"));
    page.key("Escape");
    page.wait("document.querySelector('#timer').hidden && document.querySelector('#queue').hidden");
    assert_eq!(complaints(&mut page), Vec::<String>::new());
}

/// Waits until the latest list is loaded and has this many timers.
fn listed(page: &mut Page, count: u32) {
    page.wait(&format!(
        "document.querySelector('#list').ariaBusy === 'false'
         && document.querySelectorAll('#list tr').length === {count}"
    ));
}

#[test]
fn the_dead_are_found_and_retried_and_a_queue_is_paused() {
    let served = Served::start();
    let keys: Vec<String> = (0..130).map(|n| format!("charge-{n:03}")).collect();
    served.bury("payments", &keys, "HTTP 502: <b>no</b>");
    let (_chromium, mut page) = visit(&served, Look::PHONE, "#/payments/charge-007");
    becomes(&mut page, "#timerIs dd", "dead");
    assert!(page.text("#timerIs").contains("HTTP 502: <b>no</b>"));
    page.click("#run");
    becomes(&mut page, "#timerIs dd", "due");
    // A list has pages of a hundred timers.
    page.eval(
        "(() => { const s = document.querySelector('#state'); s.value = 'dead'; s.onchange(); })()",
    );
    listed(&mut page, 100);
    page.click("#more");
    listed(&mut page, 129);
    page.fill("#prefix", "charge-00");
    listed(&mut page, 9);
    assert_eq!(page.text("#list tr td.error"), "HTTP 502: <b>no</b>");
    becomes(&mut page, "#redrive", "Retry all dead (129)");
    page.click("#redrive");
    becomes(&mut page, "#total-dead", "0");
    becomes(&mut page, "#total-due", "130");
    wait_shown(&mut page, "#redrive", false);
    page.click("#pause");
    wait_shown(&mut page, "#paused", true);
    let none = served.post("payments/receive", &json!({}));
    assert_eq!(none["deliveries"], json!([]));
    becomes(&mut page, "#pause", "Resume");
    page.click("#pause");
    wait_shown(&mut page, "#paused", false);
    assert_eq!(complaints(&mut page), Vec::<String>::new());
}

/// True if the chart of upcoming timers shows exactly one.
const COMING_IS_1: &str =
    "[...strip.querySelectorAll('b')].map((b) => b.textContent).sort().join() === '0,0,0,0,1'";

#[test]
fn an_incident_is_seen_at_a_glance() {
    let served = Served::start();
    served.post("q/timers", &json!({"key": "later", "in": "40m"}));
    let (_chromium, mut page) = visit(&served, Look::LAPTOP, "");
    page.wait(COMING_IS_1);
    assert!(!has_alarm(&mut page, "due") && !has_alarm(&mut page, "failures"));
    // A timer that is due already is not upcoming.
    served.post("q/timers", &json!({"key": "now", "in": "0s"}));
    becomes(&mut page, "#total-due", "1");
    page.wait(COMING_IS_1);
    // A due timer that nobody takes for a while raises an alarm.
    served.set_ahead(Duration::from_secs(20));
    page.wait("document.querySelector('#totals .due').classList.contains('alarm')");
    page.wait("document.querySelector('#queues td.due')?.textContent === '1'");
    served.bury("payments", &["a".to_owned(), "b".to_owned()], "HTTP 502");
    page.wait("document.querySelector('#totals .failures').classList.contains('alarm')");
    becomes(&mut page, "#total-failures", "2");
    // The queue with the most failures comes first. Enter opens the timer with exactly this key.
    becomes(&mut page, "#queues tr:first-child a", "payments");
    page.click("#queues tr:first-child a");
    listed(&mut page, 2);
    page.fill("#prefix", "b");
    page.call("Input.dispatchKeyEvent", json!({"type": "keyDown", "key": "Enter", "text": "\r"}));
    becomes(&mut page, "#timerKey", "b");
    becomes(&mut page, "#timerIs dd", "dead");
    assert_eq!(complaints(&mut page), Vec::<String>::new());
}

fn has_alarm(page: &mut Page, total: &str) -> bool {
    page.eval(&format!("document.querySelector('#totals .{total}').classList.contains('alarm')"))
        == true
}

#[test]
fn both_languages_and_the_tour_is_a_tab() {
    let served = Served::start();
    served.post("q/timers", &json!({"key": "k", "in": "1h"}));
    let look = Look { language: "zh-CN", dark: true, calm: true, ..Look::LAPTOP };
    let (_chromium, mut page) = visit(&served, look, "#/q/k");
    becomes(&mut page, "#timerIs dd", "待触发");
    page.click("#run");
    becomes(&mut page, "#timerIs dd", "已到期");
    page.fill("#newPayload", "{");
    // A visible toast changes its language with the page.
    let toasts = page.eval(
        "(async () => { const [notice, language] = ['notice', 'language'].map((id) => document.getElementById(id));
           document.querySelector('#schedule button').click();
           while (notice.hidden) await new Promise((done) => setTimeout(done, 10));
           const before = notice.textContent; language.click();
           return [before.slice(0, 3), notice.textContent.slice(0, 8)]; })()",
    );
    assert_eq!(toasts, json!(["未执行", "Not done"]));
    becomes(&mut page, "#timerIs dd", "due");
    let foreign = page.eval("[...document.body.innerText.matchAll(/[\\u4e00-\\u9fff]+/g)].join()");
    assert_eq!(foreign, "中文");
    page.wait("document.querySelector('#tour')?.hidden === false");
    page.click("#tour");
    // The tour's wheel is drawn, over its own connection, in the language chosen before.
    page.wait("location.pathname === '/tour/' && document.querySelector('#progress')?.textContent.startsWith('1 ')");
    becomes(&mut page, "[data-w=addButton]", "Add");
    assert_eq!(complaints(&mut page), Vec::<String>::new());
}

#[test]
fn a_lost_connection_is_said_and_comes_back() {
    let mut served = Served::start();
    served.post("q/timers", &json!({"key": "k", "in": "1h"}));
    let (_chromium, mut page) = visit(&served, Look::LAPTOP, "");
    becomes(&mut page, "#total-scheduled", "1");
    page.wait(COMING_IS_1);
    // Likewise if the page is opened at a queue.
    page.visit("about:blank");
    page.visit(&format!("{}#/q/k", served.url()));
    page.wait("document.querySelector('#run')?.checkVisibility()");
    page.wait(COMING_IS_1);
    note_toasts(&mut page);
    served.stop();
    wait_shown(&mut page, "#lost", true);
    // The last known state stays visible, and the button reports that its request failed.
    becomes(&mut page, "#total-scheduled", "1");
    page.click("#run");
    said(&mut page, "The answer was lost");
    served.resume();
    wait_shown(&mut page, "#lost", false);
    served.post("q/timers", &json!({"key": "l", "in": "1h"}));
    becomes(&mut page, "#total-scheduled", "2");
}

#[test]
fn a_token_shows_what_it_may_do() {
    let served = Served::with_tokens(
        "root:boss:admin\nann:look:read\nbob:do:write\nshop:some:write:shop.\n",
    );
    for queue in ["shop.eu", "other"] {
        served.post(&format!("{queue}/timers"), &json!({"key": "k", "in": "1h"}));
    }
    let (_chromium, mut page) = visit(&served, Look::LAPTOP, "#/shop.eu/k");
    let enter = |page: &mut Page, token: &str| {
        wait_shown(page, "#access", true);
        page.fill("#token", token);
        page.click("#access button");
    };
    enter(&mut page, "wrong");
    said(&mut page, "The server does not know");
    // The late refusal of a request without a token does not discard the new token.
    page.eval(
        "(() => { const { fetch } = window; window.fetch = async (path, options) => {
             const answer = await fetch(path, options);
             if (path === '/v1/queues' && !options.headers.authorization)
               await new Promise((done) => (window.release = done));
             return answer; };
           document.dispatchEvent(new Event('visibilitychange')); })()",
    );
    page.wait("window.release");
    enter(&mut page, "look");
    page.eval("window.release()");
    becomes(&mut page, "#queues td:nth-child(2)", "1");
    wait_shown(&mut page, "#access", false);
    let buttons = ["#run", "#move", "#cancel", "#pause", "#redrive", "#schedule", "#play"];
    assert_eq!(buttons.map(|button| shown(&mut page, button)), [false; 7]);
    // The token is kept in the tab's session storage and nowhere else.
    assert_eq!(page.eval("sessionStorage.getItem('token')"), "look");
    assert_eq!(page.eval("JSON.stringify(localStorage).includes('look')"), false);
    page.eval("window.before = true");
    page.call("Page.reload", json!({}));
    page.wait("!window.before && document.querySelector('#total-scheduled')?.textContent === '2'");
    for (token, expected) in [
        ("do", [true, true, true, false, false, true, false]),
        ("boss", [true, true, true, true, false, true, false]),
    ] {
        wait_shown(&mut page, "#forget", true);
        page.click("#forget");
        enter(&mut page, token);
        wait_shown(&mut page, "#run", true);
        assert_eq!(buttons.map(|button| shown(&mut page, button)), expected, "{token}");
    }
    // A token for some queues sees only those.
    wait_shown(&mut page, "#forget", true);
    page.click("#forget");
    enter(&mut page, "some");
    wait_shown(&mut page, "#run", true);
    page.wait("document.querySelectorAll('#queues tr').length === 1");
    // The tour works with the token of the tab.
    page.wait("document.querySelector('#tour')?.hidden === false");
    page.click("#tour");
    page.wait("document.querySelector('#progress')?.textContent.startsWith('1 ')");
    assert_eq!(complaints(&mut page), Vec::<String>::new());
}

#[test]
fn hostile_text_is_text_and_large_things_are_bounded() {
    let served = Served::start();
    let hostile = "<img src=x onerror=\"document.title='gotcha'\">";
    let large = format!("</pre><script>document.title='gotcha'</script>{}", "x".repeat(250_000));
    served.bury("q", &[hostile.to_owned()], &format!("{hostile}<script>"));
    served.post("q/timers", &json!({"key": "large/../ä", "in": "1h", "payload": large}));
    let (_chromium, mut page) = visit(&served, Look::LAPTOP, "#/q");
    listed(&mut page, 2);
    page.eval(
        "[...document.querySelectorAll('#list a')].find((a) => a.textContent[0] === '<').click()",
    );
    becomes(&mut page, "#timerKey", hostile);
    becomes(&mut page, "#timerIs dd", "dead");
    page.click("#run");
    becomes(&mut page, "#timerIs dd", "due");
    page.wait("document.querySelector('#events li')?.textContent.includes('<img')");
    page.eval(
        "[...document.querySelectorAll('#list a')].find((a) => a.textContent[0] === 'l').click()",
    );
    page.wait("document.querySelector('#payload').textContent.includes('<script>')");
    assert!(page.text("#payload").len() < 5000);
    assert_eq!(page.eval("document.querySelectorAll('main img, main script').length"), 0);
    assert_eq!(page.eval("document.title"), "Tourbillon");
    // Ten thousand queues: the table stays readable and the page responsive.
    page.eval(&format!(
        "(() => {{ const {{ fetch }} = window; const one = {};
          const queues = Array.from({{ length: 10000 }}, (_, n) => ({{ ...one, queue: `queue-${{n}}` }}));
          const body = JSON.stringify({{ queues, damaged: false, right: 'admin' }});
          const answer = () => Promise.resolve(new Response(body));
          window.fetch = (path, ...more) => path === '/v1/queues' ? answer() : fetch(path, ...more);
          location.hash = '#'; }})()",
        queue()
    ));
    page.wait("document.querySelectorAll('#queues tr').length === 200");
    assert!(page.text("#hiddenQueues").starts_with("9,800 "));
    page.fill("#filter", "queue-9999");
    becomes(&mut page, "#queues tr:only-child th", "queue-9999");
    assert_eq!(complaints(&mut page), Vec::<String>::new());
}

/// A queue as the API shows it.
fn queue() -> Value {
    json!({
        "queue": "", "counts": {"scheduled": 1, "due": 0, "delivering": 0, "dead": 0}, "next": null, "oldest_due": null,
        "paused": false, "lateness": {"p50": "0ms", "p99": "0ms", "max": "0ms"}, "per_second": 0.0
    })
}
