//! Photographs of the page: `pictures` makes those of the README, `looks FOLDER` every size, colour and language of
//! some lessons, for whoever works on the page.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use browser::{Chromium, Demo, Look, Page, scenarios};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let demo = Demo::start();
    let chromium = Chromium::start();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["pictures"] => pictures(&chromium, &demo),
        ["looks", folder] => looks(&chromium, &demo, folder),
        _ => println!("browser pictures | browser looks FOLDER"),
    }
}

fn pictures(chromium: &Chromium, demo: &Demo) {
    let folder = scenarios().join("../pictures");
    // A slot with two ranges, a moment before a timer is handed down; and the same page in a pocket.
    let mut page = chromium.page(Look { height: 860, ..Look::LAPTOP });
    page.goto(&demo.url());
    lesson(&mut page, 5);
    save(&mut page, &format!("{}/page.png", folder.display()));
    let mut page = chromium.page(Look { dark: true, scale: 1.5, ..Look::PHONE });
    page.goto(&demo.url());
    lesson(&mut page, 13);
    page.click("#step");
    page.eval("scrollTo(0, 0)");
    sleep(Duration::from_millis(900));
    save(&mut page, &format!("{}/phone.png", folder.display()));
}

fn looks(chromium: &Chromium, demo: &Demo, folder: &str) {
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
    println!("{file}: {} kB", picture.len() / 1024);
    fs::write(file, picture).expect("the picture is written");
}
