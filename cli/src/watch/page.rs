//! The live page: one document that asks for the figures every second. Only this machine is served, and nothing is loaded from
//! elsewhere.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use anyhow::{Context, Result};

use super::input::loopback;
use super::status::SharedFigures;

const PAGE: &str = include_str!("page.html");

/// Serves the page in a thread of its own; returns its address.
pub fn serve(address: &str, figures: SharedFigures, report: Option<PathBuf>) -> Result<String> {
    let listener = TcpListener::bind(loopback(address)?)
        .with_context(|| format!("cannot show a page at {address}"))?;
    let address = listener.local_addr().context("no address")?;
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // Who goes away misses the page.
            let _ = answer(&client, &figures, report.as_deref());
        }
    });
    Ok(format!("http://{address}/"))
}

fn answer(
    client: &TcpStream,
    figures: &SharedFigures,
    report: Option<&std::path::Path>,
) -> std::io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(2)))?;
    client.set_write_timeout(Some(Duration::from_secs(2)))?;
    let mut lines = BufReader::new(std::io::Read::take(client, 8192));
    let mut request = String::new();
    lines.read_line(&mut request)?;
    let mut header = String::new();
    while lines.read_line(&mut header)? > 2 {
        header.clear();
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, kind, body) = match path {
        "/" => (
            "200 OK",
            "text/html; charset=utf-8",
            PAGE.as_bytes().to_vec(),
        ),
        "/figures.json" => {
            let figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
            let body = serde_json::to_vec(&*figures).unwrap_or_default();
            ("200 OK", "application/json", body)
        }
        "/violation" => match report.and_then(|it| std::fs::read(it).ok()) {
            Some(body) => ("200 OK", "text/html; charset=utf-8", body),
            None => ("404 Not Found", "text/plain", b"no report\n".to_vec()),
        },
        _ => ("404 Not Found", "text/plain", b"not found\n".to_vec()),
    };
    let mut out = client;
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )?;
    out.write_all(&body)?;
    out.flush()
}
