//! The live page in a real Chromium: what a visitor does and sees.

use browser::{Look, Visit};

/// Counts the shapes painted on the canvas of the animations: falling timers and flashes.
const COUNT: &str =
    "(() => { const { fill } = CanvasRenderingContext2D.prototype; window.drawn = 0;
    CanvasRenderingContext2D.prototype.fill = function (...path) {
      if (this.canvas.id === 'sparks') window.drawn += 1;
      return fill.apply(this, path); }; })()";
/// The number of shapes painted since the last call.
const DRAWN: &str = "(() => { const drawn = window.drawn; window.drawn = 0; return drawn; })()";

#[test]
fn a_timer_is_added_handed_down_and_fires() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("20,20,20", "tick");
    visit.add("A", "22");
    assert_eq!(visit.page.text("#timers tr:nth-child(2)"), "A2222L2[1]");
    for _ in 0..19 {
        visit.click("#step");
    }
    visit.page.eval(COUNT);
    visit.click("#step");
    assert_ne!(visit.page.eval(DRAWN), 0, "it was seen to fall");
    assert_eq!(visit.page.text("#clock"), "20");
    assert_eq!(visit.page.text("#timers tr:nth-child(2)"), "A222L1[2]", "handed down");
    visit.page.eval("new Promise((done) => setTimeout(done, 1000))");
    visit.click("#step");
    visit.page.eval(DRAWN);
    visit.click("#step");
    assert_ne!(visit.page.eval(DRAWN), 0, "it was seen to flash");
    assert_eq!(visit.page.text("#pending"), "0");
    assert_eq!(
        visit.log(),
        [
            r#"{"at":0,"event":"scheduled","id":"A","due":22,"place":"L2[1]"}"#,
            r#"{"at":20,"event":"cascaded","id":"A","from":"L2[1]","to":"L1[2]"}"#,
            r#"{"at":22,"event":"fired","id":"A","due":22}"#,
            r#"{"at":22,"event":"done","pending":0,"fired":1,"cancelled":0,"wakes":22,"cascades":1}"#,
        ]
    );
    visit.agrees_with_replay();
    visit.is_fine();
}

#[test]
fn who_asked_for_little_motion_gets_little() {
    let mut visit = Visit::new(Look { calm: true, ..Look::LAPTOP });
    visit.wheel("20,20,20", "tick");
    visit.add("A", "22");
    for _ in 0..19 {
        visit.click("#step");
    }
    visit.page.eval(COUNT);
    visit.click("#step");
    assert_eq!(visit.page.text("#timers tr:nth-child(2)"), "A222L1[2]", "handed down");
    assert_eq!(visit.page.eval(DRAWN), 0, "nothing falls");
    let hand = "getComputedStyle(document.querySelector('.hand')).transitionProperty";
    assert_eq!(visit.page.eval(hand), "none", "the hands are at once where they go");
    visit.click("#step");
    visit.click("#step");
    assert_ne!(visit.page.eval(DRAWN), 0, "what fires is still seen, in its place");
    visit.is_fine();
}

#[test]
fn slots_and_timers_are_clicked() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("20,20,20", "due");
    // Slot 5 of the outermost ring, near the rim, where no timer is drawn.
    let at = |slot: f64, part: f64| {
        format!(
            "(() => {{ const b = document.querySelector('#rings').getBoundingClientRect();
              const turn = ({slot} + 0.5) / 20 * 2 * Math.PI, r = b.width / 2 * {part};
              return [b.x + b.width / 2 + Math.sin(turn) * r, b.y + b.height / 2 - Math.cos(turn) * r]; }})()"
        )
    };
    let click = |visit: &mut Visit, slot: f64, part: f64| {
        visit.page.eval("scrollTo(0, 0)");
        let point = visit.page.eval(&at(slot, part));
        visit.page.click_at(point[0].as_f64().unwrap(), point[1].as_f64().unwrap());
        visit.settle();
    };
    click(&mut visit, 5.0, 0.96);
    assert_eq!(visit.page.text("#timers tr:nth-child(2)"), "A55L1[5]");
    assert!(visit.page.text("#look").starts_with("L1[5] · [5] · "), "{}", visit.page.text("#look"));
    visit.add("B", "7");
    visit.click("[data-timer=B]");
    assert_eq!(visit.page.text("#chosenName"), "B");
    click(&mut visit, 9.0, 0.96);
    assert_eq!(visit.page.text("#timers tr:nth-child(3)"), "B99L1[9]", "moved to slot 9");
    visit.page.fill("#moveDelay", "30");
    visit.click("#moveForm button");
    assert_eq!(visit.page.text("#timers tr:nth-child(3)"), "B3030L2[1]", "moved by typing");
    visit.click("#cancel");
    assert_eq!(visit.page.text("#pending"), "1");
    assert_eq!(visit.page.eval("document.querySelector('#chosen').hidden"), true);
    // The slot under the hand cannot take a timer that is a full turn away: the page says so.
    click(&mut visit, 0.0, 0.96);
    assert!(visit.page.text("#notice").contains("full turn"));
    visit.agrees_with_replay();
    visit.is_fine();
}

#[test]
fn the_drive_decides_how_often_it_wakes_for_nothing() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("20,20,20", "tick");
    visit.add("A", "450");
    while visit.page.text("#pending") == "1" {
        visit.click("#next");
    }
    assert_eq!(
        (visit.page.text("#empty"), visit.page.text("#wakes")),
        ("449".into(), "450".into())
    );
    visit.agrees_with_replay();
    visit.drive("bucket");
    assert_eq!((visit.page.text("#empty"), visit.page.text("#wakes")), ("2".into(), "3".into()));
    visit.agrees_with_replay();
    visit.drive("due");
    assert_eq!((visit.page.text("#empty"), visit.page.text("#wakes")), ("0".into(), "1".into()));
    assert_eq!(visit.page.text("#clock"), "450", "the same run, counted again");
    visit.agrees_with_replay();
    visit.is_fine();
}

#[test]
fn a_step_that_said_something_is_kept() {
    // With the drive `due`, the step to 20 cascades at its end and prints that. A single advance to 22 would not.
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("20,20,20", "due");
    visit.add("A", "22");
    for _ in 0..22 {
        visit.click("#step");
    }
    assert!(visit.log()[1].contains(r#""at":20,"event":"cascaded""#), "{:?}", visit.log());
    visit.agrees_with_replay();
    visit.is_fine();
}

#[test]
fn time_runs_and_can_be_interfered_with() {
    for drive in ["tick", "bucket", "due"] {
        let mut visit = Visit::new(Look::LAPTOP);
        visit.wheel("20,20,20", drive);
        visit.add("A", "450");
        visit.speed(8);
        visit.page.click("#play");
        visit.page.wait("Number(document.querySelector('#clock').textContent) > 130");
        visit.page.fill("#addName", "B");
        visit.page.fill("#addDelay", "25");
        visit.page.click("#add button");
        visit.page.wait("document.querySelector('#fired').textContent === '1'");
        visit.page.click("#play");
        visit.settle();
        let clock = visit.page.text("#clock");
        visit.page.eval("new Promise((done) => setTimeout(done, 150))");
        assert_eq!(visit.page.text("#clock"), clock, "paused");
        visit.agrees_with_replay();
        visit.speed(10);
        visit.page.click("#play");
        visit.page.wait("document.querySelector('#fired').textContent === '2'");
        // Time stops by itself once no timer is pending.
        visit.page.wait("document.querySelector('#play').textContent.includes('Play')");
        visit.agrees_with_replay();
        visit.is_fine();
    }
}

#[test]
fn a_hashed_ring_counts_its_rounds_down() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.set("#preset", "onchange", "hashed 8");
    visit.page.wait("document.querySelector('#wheelIs').textContent === 'hashed 8'");
    visit.drive("tick");
    visit.add("A", "20");
    let rounds = "#timers tr:nth-child(2) td:last-child";
    assert_eq!(visit.page.text(rounds), "2");
    for expected in ["2", "2", "2", "2", "1", "1", "1", "1", "1", "1", "1", "1", "0"] {
        visit.click("#step");
        assert_eq!(visit.page.text(rounds), expected, "at {}", visit.page.text("#clock"));
    }
    visit.agrees_with_replay();
    visit.is_fine();
}

#[test]
fn a_reused_slot_shows_both_of_its_ranges() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("20,20,20", "bucket");
    visit.click("#step");
    visit.click("#step");
    let drawn =
        visit.page.eval("[...document.querySelectorAll('.ring.level2 .range')][0].textContent");
    assert_eq!(drawn, "[2,19][400,401]");
    visit.page.click("#rangesBox summary");
    visit.set("#rangesLevel", "onchange", 2);
    visit.settle();
    assert_eq!(
        visit.page.text("#ranges tr:nth-child(2)"),
        "L2[0][2,19] now, used again for [400,401]"
    );
    // The other ranges equal those of the wheel itself.
    let wheel = tourbillon_wheel::HierarchicalWheel::<()>::with_levels(0.into(), 1, &[20, 20, 20]);
    let mut wheel = wheel.unwrap();
    assert_eq!(wheel.advance(2.into(), 1), tourbillon_wheel::Progress::Done);
    for slot in 1..20_u32 {
        let (first, last) = wheel.range(tourbillon_wheel::Place::Level { level: 2, slot }).unwrap();
        let told = visit.page.text(&format!("#ranges tr:nth-child({})", slot + 2));
        assert_eq!(told, format!("L2[{slot}][{},{}]", first.units(), last.units()));
    }
    visit.is_fine();
}

#[test]
fn the_keyboard_is_enough() {
    let mut visit = Visit::new(Look::LAPTOP);
    visit.wheel("20,20,20", "due");
    visit.page.eval("document.querySelector('#rings').focus()");
    for key in ["ArrowRight", "ArrowRight", "ArrowRight", "Enter"] {
        visit.page.key(key);
        visit.settle();
    }
    assert_eq!(visit.page.text("#timers tr:nth-child(2)"), "A33L1[3]");
    for key in ["ArrowUp", "ArrowRight", "Enter"] {
        visit.page.key(key);
        visit.settle();
    }
    assert_eq!(visit.page.text("#pending"), "2");
    assert!(visit.page.text("#timers tr:nth-child(3)").ends_with("L2[4]"));
    for key in ["Enter", "Delete"] {
        visit.page.key(key);
        visit.settle();
    }
    assert_eq!(visit.page.text("#pending"), "1", "chosen, then cancelled");
    visit.agrees_with_replay();
    visit.is_fine();
}
