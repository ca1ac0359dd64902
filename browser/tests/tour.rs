//! Regressions of the tour, each as a visitor found it.

use browser::{Look, Visit};

/// Changing the lesson while time runs kept the old clock: from lesson 27 to lesson 4, the clock read 19 instead of 2.
#[test]
fn another_lesson_begins_at_its_own_clock() {
    let mut visit = Visit::new(Look::LAPTOP);
    for speed in [5, 6, 7, 8, 9] {
        visit.lesson(27);
        visit.speed(speed);
        visit.page.click("#play");
        // Between two frames, while the page waits for an answer of the run.
        visit.page.eval(
            "(async () => { const picture = () => new Promise(requestAnimationFrame);
               while (Number(document.querySelector('#clock').textContent) < 15) await picture();
               const lesson = document.querySelector('#lesson'); lesson.value = 3; lesson.onchange(); })()",
        );
        visit.page.wait("document.querySelector('#progress').textContent.startsWith('4 ')");
        visit.settle();
        assert_eq!(visit.page.text("#clock"), "2");
        assert!(visit.page.text("#play").contains("Play"));
        visit.agrees_with_replay();
    }
    visit.is_fine();
}

/// Lesson 1, three steps, Add: the suggested name was already taken by the lesson.
#[test]
fn a_name_that_is_offered_is_free() {
    let mut visit = Visit::new(Look::LAPTOP);
    for _ in 0..3 {
        visit.click("#step");
    }
    visit.click("#add button");
    assert_eq!(visit.page.eval("document.querySelector('#notice').hidden"), true);
    assert_eq!(visit.page.text("#pending"), "2");
    // A taken name is reported in the page's own words, and a free one is suggested.
    visit.page.fill("#addName", "B");
    visit.page.click("#add button");
    visit
        .page
        .wait("document.querySelector('#notice').textContent.startsWith('The name B is taken')");
    assert_ne!(visit.page.eval("document.querySelector('#addName').value"), "B");
    // A visible toast switches to the newly chosen language.
    visit.page.click("#language");
    visit.page.wait("document.querySelector('#notice').textContent.startsWith('名称 B 已被')");
    // The next success hides it.
    visit.click("#add button");
    assert_eq!(visit.page.eval("document.querySelector('#notice').hidden"), true);
    visit.agrees_with_replay();
    visit.is_fine();
}

/// A step that the server refuses is not saved, and its error message disappears with the next success.
#[test]
fn a_complaint_ends_with_a_success() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("20", "bucket");
    visit.add("A", "5");
    visit.page.fill("#slots", "1");
    visit.page.click("#wheel button.main");
    visit.page.wait("document.querySelector('#notice').textContent.startsWith('Not done: ')");
    assert!(!visit.page.text("#notice").contains("steps["), "{}", visit.page.text("#notice"));
    visit.click("#step");
    assert_eq!(visit.page.eval("document.querySelector('#notice').hidden"), true);
}

/// At a thousand units per second, stars and trails covered the dial.
#[test]
fn the_dial_can_be_seen_at_any_speed() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.lesson(27);
    visit.speed(10);
    visit.page.click("#play");
    let painted = visit.page.eval(
        "(async () => { const canvas = document.querySelector('#sparks'); const context = canvas.getContext('2d');
           let most = 0; const end = performance.now() + 1500;
           while (performance.now() < end) {
             await new Promise(requestAnimationFrame);
             const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
             let painted = 0; for (let i = 3; i < data.length; i += 4) painted += data[i] > 0;
             most = Math.max(most, painted / (data.length / 4));
           } return most; })()",
    );
    let painted = painted.as_f64().unwrap();
    assert!(painted > 0.0 && painted < 0.04, "{painted} of the dial is under stars");
}
