//! The page of `tourbillon serve`, in a browser: a first visit, a timer that is scheduled and watched, and the tour.

use browser::{Chromium, Look, Page, Served};

/// Waits until an element's text is this.
fn becomes(page: &mut Page, selector: &str, text: &str) {
    page.wait(&format!("document.querySelector({selector:?})?.textContent.trim() === {text:?}"));
}

#[test]
fn a_first_visit_schedules_a_timer_and_watches_it_become_due() {
    let served = Served::start();
    let chromium = Chromium::start();
    let mut page = chromium.page(Look::LAPTOP);
    page.visit(&served.url());
    page.wait("document.querySelector('#none')?.hidden === false");
    // What is wrong is said.
    page.fill("#payload", "{");
    page.click("#schedule button");
    page.wait("document.querySelector('#answer').textContent.includes('cannot be read')");
    page.fill("#payload", "{\"hello\":\"page\"}");
    page.fill("#key", "first");
    page.fill("#in", "2s");
    page.click("#schedule button");
    page.wait("document.querySelector('#answer').textContent.startsWith('first is due at 2')");
    // The table follows by itself: scheduled, then due.
    becomes(&mut page, "#queues td:nth-child(1)", "hello");
    becomes(&mut page, "#queues td:nth-child(2)", "1");
    becomes(&mut page, "#queues td:nth-child(3)", "1");
    becomes(&mut page, "#queues td:nth-child(2)", "0");
    // Somebody takes it.
    page.eval(
        "fetch('/v1/queues/hello/receive', { method: 'POST', headers: { 'content-type': 'application/json' },
           body: '{\"lease\":\"1h\"}' }).then((answer) => answer.text())",
    );
    becomes(&mut page, "#queues td:nth-child(4)", "1");
    becomes(&mut page, "#queues td:nth-child(3)", "0");
    assert!(page.eval("document.querySelector('#damaged').hidden") == true);
    // Not the one answer that was meant to be refused.
    let complaints: Vec<String> =
        page.complaints().into_iter().filter(|line| !line.contains("400")).collect();
    assert_eq!(complaints, Vec::<String>::new());
    for request in page.requests() {
        assert!(request.starts_with(&served.url()) || request.starts_with("about:"), "{request}");
    }
}

#[test]
fn the_tour_is_a_tab_of_the_page() {
    let served = Served::start();
    let chromium = Chromium::start();
    let mut page = chromium.page(Look::LAPTOP);
    page.visit(&served.url());
    page.wait("document.querySelector('#tour')?.hidden === false");
    page.click("#tour");
    // The wheels turn: the page has its own connection.
    page.wait("location.pathname === '/tour/' && document.querySelector('#progress')?.textContent.startsWith('1 ')");
    assert_eq!(page.complaints(), Vec::<String>::new());
}
