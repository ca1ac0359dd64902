//! `cargo xtask pictures`: photographs of the page, for the README and for whoever works on it.

use browser::{Chromium, Demo, Look};

fn main() {
    let demo = Demo::start();
    let chromium = Chromium::start();
    let folder = std::env::args().nth(1).unwrap_or_else(|| "target/pictures".into());
    std::fs::create_dir_all(&folder).expect("a folder for the pictures");
    for (name, size) in [("laptop", Look::LAPTOP), ("phone", Look::PHONE)] {
        for (colours, dark) in [("light", false), ("dark", true)] {
            for language in ["en-GB", "zh-CN"] {
                let mut page = chromium.page(Look { dark, language, ..size });
                page.goto(&demo.url());
                page.eval("document.querySelector('#lesson').value = 4; document.querySelector('#lesson').onchange()");
                page.wait("document.querySelector('#progress').textContent.startsWith('5')");
                std::thread::sleep(std::time::Duration::from_millis(700));
                let whole = name == "phone";
                let file = format!("{folder}/{name}-{colours}-{}.png", &language[..2]);
                std::fs::write(&file, page.picture(whole)).expect("the picture is written");
                println!("{file} {:?}", page.complaints());
            }
        }
    }
}
