//! A private `PostgreSQL`: `initdb` into a temporary directory, then `postgres` on loopback.

use std::path::{Path, PathBuf};

use super::process::{Process, find_program, free_port, make_for, password, put_for, run, user};
use super::{Private, ServerError, Wanted};

/// Debian keeps each version's programs in a directory of its own.
fn find(name: &str) -> Result<PathBuf, ServerError> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let path = entry.path().join("bin").join(name);
            path.is_file().then_some((version, path))
        })
        .collect();
    found.sort();
    match found.pop() {
        Some((_, path)) => Ok(path),
        None => find_program(&[name], " (Debian's package: postgresql)"),
    }
}

pub(super) fn start(private: &mut Private, wanted: &Wanted<'_>) -> Result<(), ServerError> {
    let user = user("postgres");
    let root: &Path = &private.home.path.join("0");
    make_for(root, user)?;
    let data = root.join("data").display().to_string();
    let (password, kept) = (password()?, root.join("password"));
    put_for(&kept, &password, user)?;
    let from = format!("--pwfile={}", kept.display());
    let words = |words: &[&str]| words.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    let args = words(&[
        "-D",
        &data,
        "-A",
        "scram-sha-256",
        &from,
        "-U",
        "kingsnake",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]);
    run(&find("initdb")?, &args, user)?;
    let port = free_port()?;
    let connections = wanted.sessions * 2 + 20;
    let settings = [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        format!("unix_socket_directories={}", root.display()),
        format!("max_connections={connections}"),
        "wal_level=logical".to_owned(),
        // A crash of the server loses nothing by it; only one of the machine would.
        "fsync=off".to_owned(),
        "shared_buffers=32MB".to_owned(),
        "max_wal_senders=2".to_owned(),
        "max_replication_slots=4".to_owned(),
        "restart_after_crash=on".to_owned(),
        // Its transactions would be in our snapshots.
        "autovacuum=off".to_owned(),
    ];
    let mut args = words(&["-D", &data]);
    for setting in settings {
        args.extend(["-c".to_owned(), setting]);
    }
    let log = private.home.path.join("0.log");
    let process = Process::new(find("postgres")?, args, user, log, port);
    let url = format!("postgres://kingsnake:{password}@127.0.0.1:{port}/postgres");
    private.add(process, url)?;
    private.wait(0)
}
