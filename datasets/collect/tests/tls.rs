//! Connections with TLS to private servers whose certificate an authority of the test signed: encrypted where asked for, refused
//! where the certificate is of no known authority or of another name.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // A test may panic, and says what it skips.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{CollectCase, server};
use kingsnake_collect::{OrderBy, Target, adapter};
use kingsnake_datasets::workloads::WorkloadKind;
use mysql::prelude::Queryable;

/// An authority, and a server's certificate for 127.0.0.1 or for another name; nothing where there is no openssl.
fn certificates(directory: &Path) -> Option<()> {
    let script = r#"
        set -e
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 3 -subj /CN=authority
        openssl req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 3 -subj /CN=other
        for place in here:IP:127.0.0.1 there:DNS:db.example; do
            name=${place%%:*}
            openssl req -newkey rsa:2048 -nodes -keyout $name.key -out $name.csr -subj /CN=$name
            printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\n' "${place#*:}" > $name.ext
            openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $name.pem -days 3 -extfile $name.ext
        done
        chmod 0644 *.pem
    "#;
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(directory)
        .output();
    if made.is_ok_and(|it| it.status.success()) {
        return Some(());
    }
    println!("SKIPPED: TLS, because openssl makes no certificate");
    None
}

/// What the adapter says when it connects.
fn connected(database: &str, url: &str) -> Result<String, String> {
    let target = Target {
        urls: vec![url.to_owned()],
        isolation: adapter(database).unwrap().levels[0].name.to_owned(),
        version_order: OrderBy::None,
        kind: WorkloadKind::Registers,
        directory: PathBuf::new(),
        settings: Vec::new(),
        reads: None,
    };
    let database = adapter(database).unwrap().connect(&target);
    database
        .map_err(|it| it.to_string())
        .and_then(|it| it.version().map_err(|it| it.to_string()))
}

#[test]
fn postgres_checks_the_certificate_of_an_encrypted_connection() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(()) = certificates(scratch.path()) else {
        return;
    };
    let Some(server) = server("postgres", 1) else {
        return;
    };
    let url = server.urls[0].clone();
    let ca = scratch.path().join("ca.pem").display().to_string();
    let asked = format!("{url}?sslmode=require&sslrootcert={ca}");
    connected("postgres", &url).unwrap();
    let plain = connected("postgres", &asked).unwrap_err();
    assert!(plain.contains("TLS"), "{plain}");
    let mut admin = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    let root = server.directory().join("0");
    let mut present = |name: &str| {
        for ending in ["pem", "key"] {
            let from = scratch.path().join(format!("{name}.{ending}"));
            let to = root.join(format!("server.{ending}"));
            std::fs::copy(from, &to).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(&to, mode).unwrap();
            let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&root).unwrap());
            std::os::unix::fs::chown(&to, Some(owner), None).unwrap();
        }
        for (setting, value) in [
            (
                "ssl_cert_file",
                root.join("server.pem").display().to_string(),
            ),
            (
                "ssl_key_file",
                root.join("server.key").display().to_string(),
            ),
            ("ssl", "on".to_owned()),
        ] {
            let statement = format!("ALTER SYSTEM SET {setting} = '{value}'");
            admin.batch_execute(&statement).unwrap();
        }
        admin.batch_execute("SELECT pg_reload_conf()").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(500));
    };
    present("here");
    connected("postgres", &asked).unwrap();
    let mut case = CollectCase::new("postgres", "serializable", "mini").txns(50);
    case.urls = vec![asked.clone()];
    case.collect(tempfile::tempdir().unwrap().path());
    let stranger = scratch.path().join("other.pem").display().to_string();
    for (url, word) in [
        (format!("{url}?sslmode=require"), "UnknownIssuer"),
        (
            format!("{url}?sslmode=verify-full&sslrootcert={stranger}"),
            "certificate",
        ),
        (format!("{url}?sslmode=prefer"), "UnknownIssuer"),
    ] {
        let words = connected("postgres", &url).unwrap_err();
        assert!(words.contains(word), "{url}: {words}");
    }
    // Signed by the right authority, for another server.
    present("there");
    let words = connected("postgres", &asked).unwrap_err();
    assert!(
        words.contains("not valid for name") || words.contains("NotValidForName"),
        "{words}"
    );
    // Without the name, the authority is still checked.
    let any_name = |file: &str| {
        let authority = scratch.path().join(file).display().to_string();
        connected(
            "postgres",
            &format!("{url}?sslmode=verify-ca&sslrootcert={authority}"),
        )
    };
    any_name("ca.pem").unwrap();
    let words = any_name("other.pem").unwrap_err();
    assert!(words.contains("certificate"), "{words}");
    let words = connected("postgres", &format!("{url}?sslmode=verify-ca")).unwrap_err();
    assert!(words.contains("sslrootcert"), "{words}");
    connected("postgres", &format!("{url}?sslmode=disable")).unwrap();
}

#[test]
fn mariadb_checks_the_certificate_of_an_encrypted_connection() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(()) = certificates(scratch.path()) else {
        return;
    };
    let Some(plain) = server("mariadb", 1) else {
        return;
    };
    let ca = scratch.path().join("ca.pem").display().to_string();
    let asked = |url: &str| format!("{url}?ssl-mode=required&ssl-ca={ca}");
    connected("mariadb", &plain.urls[0]).unwrap();
    let words = connected("mariadb", &asked(&plain.urls[0])).unwrap_err();
    assert!(words.contains("secure connection"), "{words}");
    let mut admin = mysql::Conn::new(plain.urls[0].as_str()).unwrap();
    let program: Option<String> = admin.query_first("SELECT @@basedir").unwrap();
    drop((admin, plain));
    // The same server with a certificate: a program of its name that adds it.
    let real = ["sbin/mariadbd", "bin/mariadbd", "sbin/mysqld"]
        .iter()
        .map(|it| Path::new(program.as_deref().unwrap_or("/usr")).join(it))
        .find(|it| it.is_file())
        .unwrap();
    let place = scratch.path().display();
    for (name, fails) in [("here", false), ("there", true)] {
        let script = format!(
            "#!/bin/sh\nexec {} \"$@\" --ssl-cert={place}/{name}.pem --ssl-key={place}/{name}.key --ssl-ca={place}/ca.pem\n",
            real.display()
        );
        let wrapper = scratch.path().join("mariadbd");
        std::fs::write(&wrapper, script).unwrap();
        for (path, mode) in [
            (wrapper, 0o755),
            (scratch.path().to_owned(), 0o755),
            (scratch.path().join(format!("{name}.key")), 0o644),
        ] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(path, mode).unwrap();
        }
        let Some(server) = with_path(scratch.path(), || server("mariadb", 1)) else {
            return;
        };
        let url = &server.urls[0];
        let answer = connected("mariadb", &asked(url));
        assert_eq!(answer.is_err(), fails, "{answer:?}");
        let any_name = |file: &str| format!("{url}?ssl-mode=verify-ca&ssl-ca={place}/{file}");
        connected("mariadb", &any_name("ca.pem")).unwrap();
        let words = connected("mariadb", &any_name("other.pem")).unwrap_err();
        assert!(words.contains("certificate"), "{words}");
        let words = connected("mariadb", &format!("{url}?ssl-mode=required")).unwrap_err();
        assert!(words.contains("UnknownIssuer"), "{words}");
        connected("mariadb", &format!("{url}?ssl-mode=disabled")).unwrap();
    }
}

/// etcd with a certificate on a port of its own; ended when it is dropped.
struct EncryptedEtcd {
    process: std::process::Child,
    url: String,
}

impl Drop for EncryptedEtcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl EncryptedEtcd {
    /// Nothing where there is no etcd.
    fn start(directory: &Path, name: &str) -> Option<Self> {
        let free = || {
            let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            taken.local_addr().unwrap()
        };
        let (client, peer) = (free(), free());
        let url = format!("https://{client}");
        let log = std::fs::File::create(directory.join("etcd.log")).unwrap();
        let process = Command::new("etcd")
            .arg(format!(
                "--data-dir={}",
                directory.join(format!("data-{name}")).display()
            ))
            .arg(format!(
                "--cert-file={}",
                directory.join(format!("{name}.pem")).display()
            ))
            .arg(format!(
                "--key-file={}",
                directory.join(format!("{name}.key")).display()
            ))
            .args([
                format!("--listen-client-urls={url}"),
                format!("--advertise-client-urls={url}"),
            ])
            .arg(format!("--listen-peer-urls=http://{peer}"))
            .arg(format!("--initial-advertise-peer-urls=http://{peer}"))
            .arg(format!("--initial-cluster=default=http://{peer}"))
            .stdout(std::process::Stdio::null())
            .stderr(log)
            .spawn();
        let Ok(process) = process else {
            println!("SKIPPED: TLS of etcd, because etcd does not start");
            return None;
        };
        let started = EncryptedEtcd { process, url };
        let is_open = || std::net::TcpStream::connect(client).is_ok();
        for _ in 0..600 {
            if is_open() {
                return Some(started);
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let said = std::fs::read_to_string(directory.join("etcd.log")).unwrap();
        panic!("etcd does not answer: {said}");
    }
}

#[test]
fn etcd_checks_the_certificate_of_an_encrypted_connection() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(()) = certificates(scratch.path()) else {
        return;
    };
    let place = scratch.path().display();
    let Some(here) = EncryptedEtcd::start(scratch.path(), "here") else {
        return;
    };
    let asked = format!("{}?ssl-ca={place}/ca.pem", here.url);
    let version = connected("etcd", &asked).unwrap();
    assert!(version.starts_with("etcd 3"), "{version}");
    let mut case = CollectCase::new("etcd", "linearizable", "mini").txns(50);
    case.urls = vec![asked];
    case.collect(tempfile::tempdir().unwrap().path());
    for stranger in [
        here.url.clone(),
        format!("{}?ssl-ca={place}/other.pem", here.url),
    ] {
        let words = connected("etcd", &stranger).unwrap_err();
        assert!(words.contains("certificate"), "{stranger}: {words}");
    }
    let words = connected("etcd", &format!("{}?ssl-ca={place}/ca.key", here.url)).unwrap_err();
    assert!(words.contains("no certificate"), "{words}");
    drop(here);
    let Some(there) = EncryptedEtcd::start(scratch.path(), "there") else {
        return;
    };
    let asked = format!("{}?ssl-ca={place}/ca.pem", there.url);
    let words = connected("etcd", &asked).unwrap_err();
    assert!(words.contains("not valid for name"), "{words}");
}

/// Finds programs here first.
#[allow(unsafe_code)] // The other test of this file does not ask for the path while it is changed: it has its server's by name.
fn with_path<T>(directory: &Path, work: impl FnOnce() -> T) -> T {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let mut places = vec![directory.to_owned()];
    places.extend(std::env::split_paths(&before));
    unsafe { std::env::set_var("PATH", std::env::join_paths(places).unwrap()) };
    let done = work();
    unsafe { std::env::set_var("PATH", before) };
    done
}
