//! Checks a test in the process that runs it: clients transfer money over a shared map, and the history is checked at the end.
//!
//! `cargo run -p kingsnake --example in_process`

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use kingsnake::{HistoryBuilder, Level, Status};

/// What one transaction saw: the session, the value that it read, the value that it wrote.
type Seen = (i64, i64, i64);

/// Two clients increment a counter. With `locked` a transaction holds the lock from its read to its write; without, it does not.
fn run(locked: bool) -> Vec<Seen> {
    let database = Mutex::new(HashMap::from([("x", 0_i64)]));
    let seen = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for client in [1_i64, 2] {
            let (database, seen) = (&database, &seen);
            scope.spawn(move || {
                for number in 1..=200 {
                    let value = client * 1_000 + number;
                    let mut map = database.lock().unwrap_or_else(PoisonError::into_inner);
                    let read = map["x"];
                    if !locked {
                        drop(map);
                        thread::yield_now();
                        map = database.lock().unwrap_or_else(PoisonError::into_inner);
                    }
                    map.insert("x", value);
                    drop(map);
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.push((client, read, value));
                }
            });
        }
    });
    seen.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[allow(clippy::print_stdout)] // An example shows what it found.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    for locked in [true, false] {
        let mut builder = HistoryBuilder::new();
        let x = builder.text("x");
        builder.initial(x, 0.into());
        for (number, (client, read, written)) in run(locked).into_iter().enumerate() {
            let session = builder.session(client.into());
            builder.begin(session, (number as i64).into(), Status::Committed)?;
            builder.read(x, read.into());
            builder.write(x, written.into());
        }
        let history = builder.finish()?;
        let verdict = kingsnake::check(&history, Level::Ser)?;
        println!("locked: {locked}: {verdict}");
        if let Some(story) = verdict.story() {
            println!("{story}");
        }
    }
    Ok(())
}
