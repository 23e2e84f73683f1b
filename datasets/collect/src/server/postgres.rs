//! A private `PostgreSQL`: `initdb` into a temporary directory, then `postgres` on loopback. With more nodes the first is the primary;
//! the others are made by `pg_basebackup` and follow it by streaming. Whether a commit waits for them is up to `synchronous_commit`.

use std::path::PathBuf;

use super::process::{
    Process, Promotion, User, find_program, free_port, make_for, password, put_for, run, user,
};
use super::{Private, ServerError, Wanted};
use crate::fault::ServerFault;

/// Debian keeps each version's programs in a directory of its own.
fn find(name: &str, wanted: &Wanted<'_>) -> Result<PathBuf, ServerError> {
    if let Some(found) = wanted.beside(name) {
        return found;
    }
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
    let password = password()?;
    let mut primary = 0;
    for number in 0..wanted.nodes {
        let node = PostgresServer {
            root: private.home.path.join(number.to_string()),
            port: free_port()?,
            user,
        };
        make_for(&node.root, user)?;
        let mut settings = node.settings(wanted);
        if number == 0 {
            primary = node.port;
            node.make_primary(wanted, &password)?;
            if wanted.nodes > 1 {
                settings.push("synchronous_standby_names=*".to_owned());
            }
        } else {
            let from = node.make_standby(wanted, primary, &password)?;
            settings.push(format!("primary_conninfo={from}"));
        }
        let mut args = vec!["-D".to_owned(), node.data()];
        for setting in settings {
            args.extend(["-c".to_owned(), setting]);
        }
        let log = private.home.path.join(format!("{number}.log"));
        let mut process = Process::new(find("postgres", wanted)?, args, user, log, node.port);
        if wanted.faults.contains(&ServerFault::Failover) {
            let data = node.data();
            let args = ["promote", "-w", "-D", &data].map(str::to_owned);
            process.promotion = Some(Promotion {
                program: find("pg_ctl", wanted)?,
                args: args.to_vec(),
                gone: Vec::new(),
            });
        }
        let url = format!(
            "postgres://kingsnake:{password}@127.0.0.1:{}/postgres",
            node.port
        );
        private.add(process, url)?;
        private.wait(number)?;
    }
    Ok(())
}

struct PostgresServer {
    root: PathBuf,
    port: u16,
    user: Option<User>,
}

impl PostgresServer {
    fn data(&self) -> String {
        self.root.join("data").display().to_string()
    }

    fn settings(&self, wanted: &Wanted<'_>) -> Vec<String> {
        vec![
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.root.display()),
            format!("max_connections={}", wanted.sessions * 2 + 20),
            "wal_level=logical".to_owned(),
            // A crash of the server loses nothing by it; only one of the machine would.
            "fsync=off".to_owned(),
            "shared_buffers=32MB".to_owned(),
            // A backup takes two beside those of the standbys.
            format!("max_wal_senders={}", wanted.nodes + 2),
            "max_replication_slots=4".to_owned(),
            "restart_after_crash=on".to_owned(),
            // Its transactions would be in our snapshots.
            "autovacuum=off".to_owned(),
        ]
    }

    fn make_primary(&self, wanted: &Wanted<'_>, password: &str) -> Result<(), ServerError> {
        let kept = self.root.join("password");
        put_for(&kept, password, self.user)?;
        let from = format!("--pwfile={}", kept.display());
        let data = self.data();
        let args = [
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
        ];
        run(
            &find("initdb", wanted)?,
            &args.map(str::to_owned),
            self.user,
        )
    }

    /// A copy of the primary; returns how it connects to it.
    fn make_standby(
        &self,
        wanted: &Wanted<'_>,
        primary: u16,
        password: &str,
    ) -> Result<String, ServerError> {
        let kept = self.root.join("password");
        put_for(
            &kept,
            &format!("127.0.0.1:{primary}:*:kingsnake:{password}\n"),
            self.user,
        )?;
        let from = format!(
            "host=127.0.0.1 port={primary} user=kingsnake passfile={}",
            kept.display()
        );
        let data = self.data();
        let args = [
            "-d",
            &from,
            "-D",
            &data,
            "-R",
            "-X",
            "stream",
            "-c",
            "fast",
            "--no-sync",
        ];
        run(
            &find("pg_basebackup", wanted)?,
            &args.map(str::to_owned),
            self.user,
        )?;
        Ok(from)
    }
}
