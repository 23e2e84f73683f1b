//! The page in a real browser: at two widths, light and dark, by keyboard, by pointer, and without its program.

mod browser;
mod run;

use std::path::PathBuf;

use browser::{Browser, PageLook};
use run::{Scratch, corpus, run};

/// A page about each kind of answer, and what its story must say.
const PAGES: [(&str, &[&str], &str); 8] = [
    (
        "strong-session-si/write-skew.jsonl",
        &[],
        "each acted on a state that the other was about to change",
    ),
    ("none/lost-update.jsonl", &["--level", "si"], "is lost"),
    ("none/aborted-read.jsonl", &[], "rolled back"),
    (
        "strong-session-ser/bank-transfer.jsonl",
        &[],
        "Why you can trust this",
    ),
    (
        "strong-session-si/write-skew.jsonl",
        &["--level", "auto"],
        "write skew",
    ),
    ("none/lost-update.jsonl", &["--all"], "is lost"),
    (
        "../certified/figure-1.jsonl",
        &["--level", "pl-3", "--certificate-from", "history"],
        "PL-3 promises",
    ),
    (
        "../certified/figure-3.jsonl",
        &["--along", "commit-ts"],
        "The expected order promises",
    ),
];

fn page(scratch: &Scratch, number: usize) -> PathBuf {
    let (history, args, _) = PAGES[number];
    let (history, path) = (corpus(history), scratch.path(&format!("{number}.html")));
    let said = run(&[&["check", &history, "--report", &path][..], args].concat());
    assert!(said.status < 2, "{}", said.stderr);
    path.into()
}

#[allow(clippy::print_stderr)] // The summary counts what is skipped.
fn browser(skipped: &str) -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        eprintln!("SKIPPED: {skipped}, because chromium is not installed");
    }
    browser
}

#[test]
fn the_program_of_a_page_is_small() {
    let scratch = Scratch::new();
    for number in 0..PAGES.len() {
        let text = std::fs::read_to_string(page(&scratch, number)).expect("it was written");
        let scripts = text.split("<script>").skip(1);
        let scripts = scripts.map(|it| it.split("</script>").next().unwrap_or(it).len());
        let n_bytes: usize = scripts.sum();
        assert!((1..40_000).contains(&n_bytes), "{number}: {n_bytes} bytes");
        assert!(
            !text.contains("http://www.") && !text.contains("src=\"http"),
            "no network"
        );
    }
}

#[test]
fn every_page_is_whole_at_two_widths_light_and_dark_with_and_without_its_program() {
    let Some(mut browser) = browser("the look of every page") else {
        return;
    };
    let scratch = Scratch::new();
    for (number, (_, _, words)) in PAGES.iter().enumerate() {
        let file = page(&scratch, number);
        for width in [1280, 390] {
            for (dark, script) in [(false, true), (true, true), (false, false)] {
                let look = PageLook {
                    width,
                    dark,
                    script,
                };
                let mut tab = browser.open(&file, look);
                let seen = format!("document.body.innerText.includes({words:?})");
                assert!(tab.holds(&seen), "page {number}, {look:?}: {words}");
                // Only pictures scroll sideways, not the page.
                let wide = "document.documentElement.scrollWidth <= window.innerWidth";
                assert!(
                    tab.holds(wide),
                    "page {number}, {look:?} is wider than the window"
                );
                let paper = tab.value("getComputedStyle(document.body).backgroundColor");
                let paper = paper.as_str().unwrap_or_default().to_owned();
                let first: u32 = paper
                    .split(['(', ','])
                    .nth(1)
                    .and_then(|it| it.trim().parse().ok())
                    .unwrap_or(255);
                assert_eq!(first < 100, dark, "page {number}, {look:?}: {paper}");
            }
        }
    }
}

#[test]
fn a_page_without_its_program_tells_the_whole_story() {
    let Some(mut browser) = browser("pages without their program") else {
        return;
    };
    let scratch = Scratch::new();
    let file = page(&scratch, 1);
    let look = PageLook {
        width: 1280,
        dark: false,
        script: false,
    };
    let mut tab = browser.open(&file, look);
    let sees = |words: &str| format!("document.body.innerText.includes({words:?})");
    for words in [
        "Lost update",
        "What was promised",
        "This is a contradiction",
        "This repeats it",
    ] {
        assert!(tab.holds(&sees(words)), "{words}");
    }
    assert!(
        tab.holds("document.querySelector('.tools').hidden"),
        "buttons that do nothing are not shown"
    );
    assert!(tab.holds("document.querySelectorAll('.bar').length > 0"));
    assert!(tab.holds("document.querySelectorAll('#picture svg').length > 0"));
}

#[test]
fn the_timeline_is_driven_by_keys_and_by_the_pointer() {
    let Some(mut browser) = browser("the keys of the timeline") else {
        return;
    };
    let scratch = Scratch::new();
    let mut lines = vec!["{\"kingsnake\":1,\"initial\":0}".to_owned()];
    for id in 1..=12 {
        let (session, begin) = (id % 3, 1_000 * id);
        let ops = match id {
            5 | 6 => format!("[\"r\",\"x\",0],[\"w\",\"x\",{id}]"),
            _ => format!("[\"w\",\"y\",{id}]"),
        };
        lines.push(format!(
            "{{\"id\":{id},\"session\":{session},\"begin\":{begin},\"commit\":{},\"ops\":[{ops}]}}",
            begin + 1_500
        ));
    }
    let history = scratch.put("timed.jsonl", lines.join("\n") + "\n");
    let file = scratch.path("timed.html");
    run(&["check", &history, "--report", &file]);
    let file = PathBuf::from(file);
    let look = PageLook {
        width: 1280,
        dark: false,
        script: true,
    };
    let mut tab = browser.open(&file, look);
    let place = "[...document.querySelectorAll('.bar')].map((it) => it.style.left + it.style.width).join(' ')";
    assert!(!tab.holds("document.querySelector('.tools').hidden"));
    // Tab reaches the bars of the timeline.
    let is_bar = "document.activeElement.classList.contains('bar')";
    for _ in 0..200 {
        tab.press("Tab");
        if tab.holds(is_bar) {
            break;
        }
    }
    assert!(tab.holds(is_bar), "Tab reaches a transaction");
    assert!(
        !tab.holds("document.querySelector('#hover').hidden"),
        "its operations are told"
    );
    let before = tab.value(place);
    tab.press("+");
    let zoomed = tab.value(place);
    assert_ne!(before, zoomed, "+ zooms");
    tab.press("ArrowRight");
    assert_ne!(tab.value(place), zoomed, "an arrow pans");
    tab.press("0");
    tab.press("c");
    assert_eq!(
        tab.value(place),
        before,
        "c leads back to the contradiction"
    );
    if !tab.holds(is_bar) {
        tab.press("Tab"); // The transaction had left the view, and the focus went to the timeline.
    }
    tab.press("Enter");
    assert!(
        !tab.holds("document.querySelector('#detail').hidden"),
        "Enter opens a transaction"
    );
    let line = "document.querySelector('#detail').innerText.includes('line')";
    assert!(tab.holds(line), "with its line of the file");
    tab.press("Escape");
    assert!(
        tab.holds("document.querySelector('#detail').hidden"),
        "Escape closes it"
    );
    // Filters hide what does not fit.
    tab.value("(() => { const it = document.querySelector('#by-session'); it.selectedIndex = 1; it.dispatchEvent(new Event('change')); })()");
    assert!(tab.holds("document.querySelectorAll('.bar.off').length > 0"));
    assert!(tab.holds("document.querySelector('#matches').textContent.includes(' of ')"));
    tab.value("(() => { const it = document.querySelector('#by-session'); it.selectedIndex = 0; it.dispatchEvent(new Event('change')); })()");
    assert!(tab.holds("document.querySelectorAll('.bar.off').length === 0"));
    // The pointer over a bar tells its operations.
    tab.value("document.activeElement.blur(), document.querySelector('.bar:not([hidden])').scrollIntoView({block: 'center'})");
    let middle = "(() => { const it = document.querySelector('.bar:not([hidden])').getBoundingClientRect(); return [it.x + it.width / 2, it.y + it.height / 2]; })()";
    let middle = tab.value(middle);
    let at = |index: usize| middle[index].as_f64().expect("a number");
    tab.point(at(0), at(1));
    assert!(tab.holds("!document.querySelector('#hover').hidden && document.querySelector('#hover').textContent.includes('session')"));
}

#[test]
fn the_terms_of_a_story_are_explained_by_keyboard_too() {
    let Some(mut browser) = browser("the explained terms of a story") else {
        return;
    };
    let scratch = Scratch::new();
    let look = PageLook {
        width: 390,
        dark: true,
        script: true,
    };
    let mut tab = browser.open(&page(&scratch, 0), look);
    assert!(tab.holds("document.querySelectorAll('.term').length > 0"));
    for _ in 0..50 {
        tab.press("Tab");
        if tab.holds("document.activeElement.classList.contains('term')") {
            let shown = "document.activeElement.querySelector('.tip').getBoundingClientRect()";
            assert!(tab.holds(&format!(
                "{shown}.width > 0 && {shown}.right <= window.innerWidth"
            )));
            return;
        }
    }
    panic!("Tab reaches no term");
}
