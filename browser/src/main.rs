//! Photographs of the page: `pictures` makes those of the README, `looks FOLDER` every size, colour and language of
//! some lessons, for whoever works on the page.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use browser::{Chromium, Demo, Look, Page, Visit, scenarios};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["pictures"] => pictures(),
        ["looks", folder] => looks(folder),
        _ => println!("browser pictures | browser looks FOLDER"),
    }
}

fn pictures() {
    let folder = scenarios().join("../pictures");
    // Timers on three rings, at the moment when one has fired and another is handed down.
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
    // Rounds, in a pocket.
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
            // A tall window shows all of a phone's page.
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

/// Opens a lesson, counted from 1, and lets it come to rest.
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
