//! A certificate of a private server, made by openssl: its nodes and its clients show it to each other, and trust no
//! other. Its key is needed to query the server or to join it as a node.

use std::path::PathBuf;

use super::process::{User, find_program, make_for, put_for, run};
use super::{Private, ServerError};

/// Server and client at once, and no authority: some clients refuse a server that presents one.
const SETTINGS: &str = "[req]
distinguished_name = name
x509_extensions = own
prompt = no
[name]
CN = kingsnake
[own]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = IP:127.0.0.1
";

/// Files in a directory that only the server's user can read.
pub(super) struct Certificate {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Certificate {
    pub(super) fn make(private: &Private, user: Option<User>) -> Result<Self, ServerError> {
        let root = private.home.path.join("certificate");
        make_for(&root, user)?;
        let place = |name: &str| root.join(name);
        put_for(&place("settings"), SETTINGS, user)?;
        let shown = |path: PathBuf| path.display().to_string();
        let (certificate, key) = (shown(place("certificate")), shown(place("key")));
        let settings = shown(place("settings"));
        let openssl = find_program(&["openssl"], " (Debian's package: openssl)")?;
        let kind = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650";
        let mut args: Vec<String> = kind.split(' ').map(str::to_owned).collect();
        args.insert(0, "req".to_owned());
        for (option, value) in [
            ("-config", &settings),
            ("-keyout", &key),
            ("-out", &certificate),
        ] {
            args.extend([option.to_owned(), value.clone()]);
        }
        match &private.clocks {
            // It is in force on a node whose clock is behind.
            Some(clocks) => {
                let mut words = clocks.yesterday();
                words.push(openssl.display().to_string());
                words.extend(args);
                run(&find_program(&["env"], "")?, &words, user)?;
            }
            None => run(&openssl, &args, user)?,
        }
        Ok(Certificate { certificate, key })
    }

    /// What follows a client's address.
    pub(super) fn query(&self) -> String {
        let (certificate, key) = (&self.certificate, &self.key);
        format!("?sslrootcert={certificate}&sslcert={certificate}&sslkey={key}")
    }
}
