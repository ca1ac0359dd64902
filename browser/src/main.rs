//! Screenshots: `pictures` makes those of the README; `looks FOLDER` makes every size, colour scheme and language of
//! some lessons and of the server's page. `weigh` measures what the server's page costs the browser.

mod weigh;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use browser::{Chromium, Demo, Look, Page, Served, Visit, scenarios};
use serde_json::{Value, json};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["pictures"] => pictures(),
        ["looks", folder] => {
            looks(folder);
            server_looks(folder);
        }
        ["looks", "server", folder] => server_looks(folder),
        ["weigh"] => weigh::weigh(),
        _ => println!("browser pictures | browser looks [server] FOLDER | browser weigh"),
    }
}

fn pictures() {
    let folder = scenarios().join("../pictures");
    // Timers on three rings, at the moment when one has fired and another cascades.
    let mut visit = Visit::new(Look { height: 860, ..Look::LAPTOP });
    visit.wheel("20,20,20", "bucket");
    visit.page.click("#wheelBox summary");
    for (i, delay) in
        [26, 33, 45, 46, 47, 90, 150, 151, 230, 330, 390, 900, 1300, 2000, 2001, 3500, 5000, 7000]
            .into_iter()
            .enumerate()
    {
        visit.add(&char::from(b'A' + u8::try_from(i).unwrap_or(0)).to_string(), &delay.to_string());
    }
    while visit.page.text("#clock") != "33" {
        visit.click("#next");
    }
    sleep(Duration::from_secs(2));
    visit.page.click("#next");
    visit.page.eval("scrollTo(0, 0)");
    sleep(Duration::from_millis(250));
    save(&mut visit.page, &format!("{}/page.png", folder.display()));
    // The lesson on rounds, on a phone.
    visit.page.look(Look { dark: true, scale: 1.5, ..Look::PHONE });
    visit.page.goto(&visit.demo.url());
    lesson(&mut visit.page, 13);
    visit.page.click("#step");
    visit.page.eval("scrollTo(0, 0)");
    sleep(Duration::from_millis(900));
    save(&mut visit.page, &format!("{}/phone.png", folder.display()));
}

fn looks(folder: &str) {
    let demo = Demo::start();
    let chromium = Chromium::start();
    for (name, size) in [("laptop", Look::LAPTOP), ("phone", Look::PHONE)] {
        for (dark, language) in
            [(false, "en-GB"), (true, "en-GB"), (false, "zh-CN"), (true, "zh-CN")]
        {
            // A tall window, so that a phone's whole page is visible.
            let height = if size.width < 600 { 1_800 } else { size.height };
            let mut page = chromium.page(Look { dark, language, height, ..size });
            page.goto(&demo.url());
            for number in [1, 5, 8, 9, 13, 14, 21, 27] {
                lesson(&mut page, number);
                let colours = if dark { "dark" } else { "light" };
                let file = format!("{folder}/{name}-{colours}-{}-{number:02}.png", &language[..2]);
                save(&mut page, &file);
            }
        }
    }
}

/// The server's page: empty, busy, and in trouble.
fn server_looks(folder: &str) {
    let chromium = Chromium::start();
    let empty = Served::start();
    let busy = Served::start();
    let trouble = Served::start();
    for (queue, count) in
        [("mails", 900), ("orders.eu", 4000), ("orders.us", 2500), ("billing", 40)]
    {
        fill(&busy, queue, count);
        fill(&trouble, queue, count);
    }
    let overdue: Vec<Value> =
        (0..10_000).map(|n| json!({"key": format!("late-{n}"), "in": "0s"})).collect();
    trouble.post("orders.eu/timers", &json!({ "timers": overdue }));
    let dead: Vec<String> = (0..500).map(|n| format!("charge-{n:03}")).collect();
    trouble.bury("payments", &dead, "HTTP 502 from https://pay.example/charge: upstream timed out");
    for (name, size) in [("laptop", Look::LAPTOP), ("phone", Look::PHONE)] {
        for (dark, language) in
            [(false, "en-GB"), (true, "en-GB"), (false, "zh-CN"), (true, "zh-CN")]
        {
            let height = if size.width < 600 { 1_800 } else { 900 };
            let mut page = chromium.page(Look { dark, language, height, ..size });
            for (state, served, path) in [
                ("empty", &empty, ""),
                ("busy", &busy, "#/orders.eu/orders.eu-17"),
                ("trouble", &trouble, "#/payments/charge-007"),
                ("overdue", &trouble, ""),
            ] {
                page.visit(&format!("{}{path}", served.url()));
                page.wait("document.querySelector('#total-dead')?.textContent");
                sleep(Duration::from_millis(2500));
                let colours = if dark { "dark" } else { "light" };
                save(
                    &mut page,
                    &format!("{folder}/server-{name}-{colours}-{}-{state}.png", &language[..2]),
                );
            }
        }
    }
}

/// Schedules timers due from seconds to a year ahead.
fn fill(served: &Served, queue: &str, count: u64) {
    let seconds = |n: u64| (n * n * 2_654_435_761 % 31_000_000) >> (n % 20);
    let timer = |n| {
        let after = format!("{}s", seconds(n) + 20);
        json!({"key": format!("{queue}-{n}"), "in": after, "payload": {"order": n}})
    };
    let timers: Vec<Value> = (0..count).map(timer).collect();
    served.post(&format!("{queue}/timers"), &json!({ "timers": timers }));
}

/// Opens a lesson, counted from 1, and waits until its animation has ended.
fn lesson(page: &mut Page, number: u32) {
    let open = "(() => { const l = document.querySelector('#lesson'); l.value = NUMBER; l.onchange(); })()";
    page.eval(&open.replace("NUMBER", &(number - 1).to_string()));
    page.wait(&format!("document.querySelector('#progress').textContent.startsWith('{number} ')"));
    sleep(Duration::from_millis(900));
}

fn save(page: &mut Page, file: &str) {
    if let Some((folder, _)) = file.rsplit_once('/') {
        fs::create_dir_all(folder).expect("a folder for the pictures");
    }
    let picture = page.picture();
    println!("{}: {} kB", file.rsplit('/').next().unwrap_or(file), picture.len() / 1024);
    fs::write(file, picture).expect("the picture is written");
}
