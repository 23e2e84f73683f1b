//! The live page: a document with the current figures, which requests itself again every second. It is served on this
//! machine only and loads nothing from elsewhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kingsnake_text::{Frame, grouped, live_page, sized};
use maud::{Markup, html};

use super::input::loopback;
use super::status::{SharedFigures, ShownFigures, WatchFigures};

const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = ".running{--mood:var(--bar)}.running .verdict{text-transform:none}.facts{grid-template-columns:repeat(auto-fill,minmax(max(8.5rem,22%),1fr))}#lately thead th{border:0}#violation:empty{display:none}#rate svg{display:block;width:100%;height:8rem;border:1px solid var(--line);border-radius:10px}#rate polyline{fill:none;stroke:var(--bar);stroke-width:2}";
const PAGE: &str = "text/html; charset=utf-8";
/// Seconds shown in the table.
const LATELY: usize = 10;
/// Minimum number of figures in the chart.
const LEAST_SHOWN: usize = 31;
/// A page that was open this recently gets the end before the watch exits.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is watched.
pub struct PageSubject {
    pub level: String,
    pub log: String,
    pub report: Option<PathBuf>,
}

/// Serves the page in its own threads; returns its address.
pub fn serve(address: &str, figures: SharedFigures, subject: PageSubject) -> Result<String> {
    let listener = TcpListener::bind(loopback(address)?)
        .with_context(|| format!("cannot show a page at {address}"))?;
    let address = listener.local_addr().context("no address")?;
    let subject = Arc::new(subject);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (figures, subject) = (figures.clone(), subject.clone());
            // Browsers open connections that they do not use at once. A closed connection is ignored.
            std::thread::spawn(move || {
                let _ = answer(&client, &figures, &subject);
            });
        }
    });
    Ok(format!("http://{address}/"))
}

/// Waits for an open page to show the end.
pub fn linger(figures: &SharedFigures) {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let shown = figures.lock().unwrap_or_else(PoisonError::into_inner);
        let is_watched = shown.asked.is_some_and(|it| it.elapsed() < PATIENCE);
        if !is_watched || shown.is_end_shown {
            return;
        }
        drop(shown);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn answer(
    client: &TcpStream,
    figures: &SharedFigures,
    subject: &PageSubject,
) -> std::io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(5)))?;
    client.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut lines = BufReader::new(client.take(8192));
    let mut request = String::new();
    lines.read_line(&mut request)?;
    let mut header = String::new();
    while lines.read_line(&mut header)? > 2 {
        header.clear();
    }
    let missing = ("404 Not Found", "text/plain", b"not found\n".to_vec());
    let mut is_end = false;
    let (status, kind, body) = match request.split(' ').nth(1) {
        Some("/") => {
            let mut shown = figures.lock().unwrap_or_else(PoisonError::into_inner);
            shown.asked = Some(Instant::now());
            is_end = shown.is_ended();
            ("200 OK", PAGE, page(&shown, subject).into_bytes())
        }
        Some("/violation") => match subject.report.as_ref().map(std::fs::read) {
            Some(Ok(body)) => ("200 OK", PAGE, body),
            _ => missing,
        },
        _ => missing,
    };
    let mut out = client;
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )?;
    out.write_all(&body)?;
    out.flush()?;
    if is_end {
        let mut shown = figures.lock().unwrap_or_else(PoisonError::into_inner);
        shown.is_end_shown = true;
    }
    Ok(())
}

fn page(shown: &ShownFigures, subject: &PageSubject) -> String {
    let start = WatchFigures::default();
    let now = shown.lately.back().unwrap_or(&start);
    let (mood, mark, words) = match now.verdict {
        "satisfied" => ("satisfied", "✓", "satisfied"),
        "violated" => ("violated", "✗", "violated"),
        "unknown" => ("unknown", "?", "unknown"),
        _ => ("running", "…", "No violation so far"),
    };
    let is_ended = shown.is_ended();
    let state = match (is_ended, now.is_partial) {
        (true, false) => "The watch has ended.",
        (true, true) => "The watch has ended. Not everything was judged.",
        (false, false) => "The watch continues.",
        (false, true) => {
            "The watch continues and finds violations only: retained data were discarded."
        }
    };
    let body = html! {
        header {
            p.verdict role="status" { span aria-hidden="true" { (mark) } " " (words) }
            h1 { "Watch of " (subject.level) }
            p.subject { (subject.log) }
            p.how #state { (state) }
        }
        (facts(now))
        section #violation {
            @if let Some(story) = &shown.story {
                h2 { "The violation" }
                pre { (story) }
                @if let Some(report) = &subject.report {
                    p { "Its report: " a href="violation" { (report.display()) } }
                }
            }
        }
        (rate(shown))
        (lately(shown))
    };
    let frame = Frame {
        title: &format!("{words}: watch of {}", subject.level),
        mood: &format!("{mood}{}", if is_ended { " ended" } else { "" }),
        style: STYLE,
        script: SCRIPT,
    };
    live_page(frame, &body)
}

fn facts(now: &WatchFigures) -> Markup {
    let final_up_to = now.final_up_to.map(|it| it.to_string());
    let facts = [
        ("Transactions", grouped(now.transactions)),
        ("Per second", grouped(now.per_second as u64)),
        ("Lag", format!("{:.2} s", now.lag_seconds)),
        ("Retained", grouped(now.retained as u64)),
        ("Unknown ends", grouped(now.open as u64)),
        ("Keys", grouped(now.keys as u64)),
        ("Memory", sized(now.memory_bytes)),
        ("Final up to", final_up_to.unwrap_or_else(|| "–".to_owned())),
    ];
    html! {
        dl.facts #figures {
            @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
        }
    }
}

fn rate(shown: &ShownFigures) -> Markup {
    let rates = || shown.lately.iter().map(|it| it.per_second);
    let most = rates().fold(1.0, f64::max);
    let width = shown.lately.len().max(LEAST_SHOWN) - 1;
    let first = width + 1 - shown.lately.len();
    let points: Vec<String> = rates()
        .enumerate()
        .map(|(at, it)| format!("{},{:.1}", first + at, 39.0 - 37.0 * it / most))
        .collect();
    let words = format!(
        "The last {width} seconds, at most {}.",
        grouped(most as u64)
    );
    html! {
        section #rate {
            h2 { "Transactions per second" }
            svg viewBox=(format!("0 0 {width} 40")) preserveAspectRatio="none" role="img" aria-label=(words) {
                polyline vector-effect="non-scaling-stroke" points=(points.join(" ")) {}
            }
            p.soft { (words) }
        }
    }
}

fn lately(shown: &ShownFigures) -> Markup {
    html! {
        section #lately {
            h2 { "Lately" }
            div.wide tabindex="0" {
                table.rounds {
                    thead { tr {
                        @for name in ["Second", "Transactions", "Per second", "Lag", "Retained", "Memory"] { th scope="col" { (name) } }
                    } }
                    tbody {
                        @for it in shown.lately.iter().rev().take(LATELY) {
                            tr {
                                td { (format!("{:.0}", it.seconds)) }
                                td { (grouped(it.transactions)) }
                                td { (grouped(it.per_second as u64)) }
                                td { (format!("{:.2} s", it.lag_seconds)) }
                                td { (grouped(it.retained as u64)) }
                                td { (sized(it.memory_bytes)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
