//! Checks that README.zh.md mirrors README.md: the same headings, code blocks, links and pictures.
//!
//! Code blocks are compared in order, links and pictures as sets, because a translated sentence may change their order.
//! The link from each page to the other is ignored.

use std::fs;

use crate::shell::{Outcome, root};

const PAGES: [&str; 2] = ["README.md", "README.zh.md"];

/// Reports the first difference of each kind.
pub(crate) fn check(found: &mut Vec<String>) -> Outcome {
    let [first, second] = PAGES.map(|page| fs::read_to_string(root().join(page)));
    let first = first.map_err(|error| format!("{}: {error}", PAGES[0]))?;
    let second = second.map_err(|error| format!("{}: {error}", PAGES[1]))?;
    found.extend(differences(&first, &second));
    Ok(())
}

/// What is compared: its name, and how to list it for a page.
type Kind = (&'static str, fn(&str) -> Vec<String>);

fn differences(first: &str, second: &str) -> Vec<String> {
    let kinds: [Kind; 3] =
        [("heading", headings), ("code block", code), ("link or picture", links)];
    let pages = kinds.into_iter().filter_map(|(kind, of)| {
        let (first, second) = (of(first), of(second));
        let same = first.iter().zip(&second).take_while(|(one, other)| one == other).count();
        let show = |all: &[String]| all.get(same).map_or("none".to_owned(), |it| format!("{it:?}"));
        (first != second).then(|| {
            let [one, other] = [show(&first), show(&second)];
            format!("{}: {kind} {}: {one} in {}, {other} here", PAGES[1], same + 1, PAGES[0])
        })
    });
    pages.collect()
}

/// Alternating pieces of text and code blocks, starting with text.
fn pieces(page: &str) -> impl Iterator<Item = (usize, &str)> {
    page.split("```").enumerate()
}

fn text(page: &str) -> String {
    pieces(page).filter(|(i, _)| i % 2 == 0).map(|(_, text)| text).collect()
}

fn code(page: &str) -> Vec<String> {
    pieces(page).filter(|(i, _)| i % 2 == 1).map(|(_, code)| code.to_owned()).collect()
}

/// The level of each heading.
fn headings(page: &str) -> Vec<String> {
    let text = text(page);
    let level = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    text.lines().filter(|line| line.starts_with('#')).map(level).collect()
}

fn links(page: &str) -> Vec<String> {
    let text = text(page);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let pictures = text.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let all = targets.chain(pictures).filter(|target| !PAGES.contains(target));
    let mut all: Vec<String> = all.map(str::to_owned).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "# A\n[zh](README.zh.md)\n## B\n```sh\n# no heading\n```\n[c](c.md) [d](d.md)\n";

    #[test]
    fn words_may_differ() {
        let translated =
            "# 甲\n[en](README.md)\n## 乙\n```sh\n# no heading\n```\n[丁](d.md) [丙](c.md)\n";
        assert_eq!(differences(PAGE, translated), Vec::<String>::new());
    }

    #[test]
    fn headings_code_links_and_pictures_may_not() {
        for (from, to, kind) in [
            ("## B", "### B", "heading 2"),
            ("## B\n", "", "heading 2"),
            ("# no heading", "# other code", "code block 1"),
            ("d.md", "e.md", "link or picture 2"),
            ("[d](d.md)", "[d](d.md) <img src=\"p.png\">", "link or picture 3"),
        ] {
            let wrong = differences(PAGE, &PAGE.replace(from, to));
            assert!(wrong.len() == 1 && wrong[0].contains(kind), "{kind}: {wrong:?}");
        }
    }
}
