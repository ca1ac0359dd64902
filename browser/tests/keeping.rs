//! The page's state survives: the tour, links, lost connections. And both languages fit any width.

use browser::{Look, Visit, replay, same_lines, scenarios};
use tourbillon_cli::replay::Outcome;

#[test]
fn the_whole_tour_tells_what_replay_tells() {
    let mut visit = Visit::new(Look::LAPTOP);
    let lessons =
        visit.page.eval("document.querySelector('#lesson').options.length - 1").as_u64().unwrap();
    assert!(lessons >= 26, "{lessons} lessons");
    for lesson in 1..=lessons {
        assert_eq!(visit.page.text("#progress"), format!("{lesson} / {lessons}"));
        let text = visit.page.text("#lessonText");
        assert!(text.len() > 60 && text.len() < 300, "{text}");
        let crowded = visit.page.text("#pending").parse::<u64>().unwrap() > 1_000;
        while visit.page.eval("document.querySelector('#tour').dataset.left > 0") == true {
            visit.click("#next");
        }
        if !crowded {
            visit.agrees_with_replay();
        }
        let source = visit.page.eval("document.querySelector('#tour').dataset.file");
        let source = source.as_str().unwrap();
        if !source.is_empty() {
            let file = scenarios().join(format!("{source}.json"));
            let (lines, outcome) = replay(&std::fs::read_to_string(file).unwrap());
            assert_eq!(outcome, Outcome::Passed);
            same_lines(&visit.log(), &lines, source);
        }
        if lesson < lessons {
            visit.page.click("#following");
            visit.page.wait(&format!(
                "document.querySelector('#progress').textContent.startsWith('{} ')",
                lesson + 1
            ));
            visit.settle();
        }
    }
    visit.is_fine();
}

#[test]
fn a_lost_connection_is_regained_with_everything() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("20,20,20", "bucket");
    visit.add("A", "450");
    visit.click("#next");
    let before = visit.log();
    assert_eq!(visit.page.eval("document.querySelector('#lost').hidden"), true);
    visit.is_fine();
    visit.demo.stop();
    visit.page.wait(
        "!document.querySelector('#lost').hidden && document.querySelector('#step').disabled",
    );
    visit.demo.resume();
    visit.page.wait(
        "document.querySelector('#lost').hidden && !document.querySelector('#step').disabled",
    );
    visit.settle();
    assert_eq!(visit.log(), before, "the same run, on a server that knew nothing of it");
    visit.click("#next");
    // The connection is lost while time runs and the driver sleeps: the clock continues from the value shown.
    visit.speed(0);
    visit.page.click("#play");
    visit.speed(4);
    visit.page.wait("document.querySelector('#clock').textContent === '442'");
    visit.demo.stop();
    visit.page.wait("!document.querySelector('#lost').hidden");
    visit.demo.resume();
    visit.page.wait("document.querySelector('#lost').hidden");
    visit.settle();
    let clock: u64 = visit.page.text("#clock").parse().unwrap();
    assert!((442..450).contains(&clock), "{clock}");
    visit.click("#next");
    assert_eq!(visit.page.text("#fired"), "1");
    visit.agrees_with_replay();
    // The browser itself logs the failed connections in its console; the page logs no error.
    for complaint in visit.page.complaints() {
        assert!(complaint.contains("WebSocket connection to"), "{complaint}");
    }
}

#[test]
fn a_link_brings_everything_back() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("7,5,3", "due");
    visit.add("far", "18446744073709551615");
    visit.add("A", "30");
    visit.click("#step");
    visit.click("#link");
    let link = visit.page.eval("location.href");
    let (log, clock) = (visit.log(), visit.page.text("#clock"));
    let mut other = visit.chromium.page(Look { language: "zh-CN", ..Look::PHONE });
    other.goto(link.as_str().unwrap());
    std::mem::swap(&mut other, &mut visit.page);
    visit.page.wait("document.querySelectorAll('#lines li').length");
    visit.settle();
    assert_eq!((visit.log(), visit.page.text("#clock")), (log, clock));
    assert!(visit.log()[0].contains("18446744073709551615"), "no digit is lost");
    visit.click("#next");
    visit.is_fine();
    // A link to the middle of a lesson continues there; an invalid link starts the tour.
    visit.page.goto(&visit.demo.url());
    visit.click("#step");
    visit.page.wait("location.hash.length > 20");
    let link = visit.page.eval("location.href");
    visit.page.goto(link.as_str().unwrap());
    visit.click("#step");
    assert_eq!(visit.page.text("#fired"), "1");
    visit.page.goto(&format!("{}#nonsense", visit.demo.url()));
    assert_eq!(visit.page.text("#progress").split(' ').next(), Some("1"));
}

#[test]
fn what_cannot_be_done_is_said() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("20,20,20", "due");
    visit.add("A", "5");
    visit.add("A", "6");
    assert!(visit.page.text("#notice").contains("A is taken"), "{}", visit.page.text("#notice"));
    assert_eq!(visit.page.text("#pending"), "1", "and what was there is there");
    visit.page.fill("#slots", "20,1");
    visit.click("#wheel button.main");
    assert!(
        visit.page.text("#notice").contains("wheel.slots[1]"),
        "{}",
        visit.page.text("#notice")
    );
    assert_eq!(visit.page.text("#pending"), "1");
    // A repeating timer and a jump to the end of time: refused, without a hang.
    visit.page.fill("#addEvery", "1");
    visit.add("P", "1");
    visit.page.fill("#addEvery", "");
    visit.add("Z", "18446744073709551614");
    visit.click("#next");
    assert_eq!(visit.page.text("#clock"), "1");
    visit.agrees_with_replay();
    visit.is_fine();
}

#[test]
fn both_languages_fit_every_width() {
    let mut visit = Visit::new(Look::PHONE);
    for language in ["en-GB", "zh-CN"] {
        for (width, dark) in [(320, false), (390, true), (768, false), (1280, true)] {
            visit.page.look(Look { width, dark, language, ..Look::PHONE });
            visit.page.goto(&visit.demo.url());
            visit.page.eval("localStorage.clear()");
            visit.page.goto(&visit.demo.url());
            let chinese = visit.page.text("#step") == "单步";
            assert_eq!(chinese, language == "zh-CN");
            for lesson in [5, 9, 14] {
                visit.lesson(lesson);
                visit.page.eval(
                    "document.querySelectorAll('details').forEach((box) => (box.open = true))",
                );
                visit.settle();
                let wide = visit.page.eval("document.documentElement.scrollWidth - innerWidth");
                assert!(
                    wide.as_i64().unwrap() <= 0,
                    "{language}, {width} wide, lesson {lesson}: {wide} too wide"
                );
            }
            visit.click("#language");
            assert_eq!(visit.page.text("#step") == "单步", !chinese, "switched");
            visit.is_fine();
        }
    }
}
