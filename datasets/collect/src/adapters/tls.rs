//! TLS of connections: the requested mode, and the trusted certificates.
//!
//! Invariant: a connection that is encrypted has checked that an authority signed the server's certificate, and, unless
//! `verify-ca` was asked for, that it is for this server's name. An authority of one's own is named by `sslrootcert`.

use std::path::PathBuf;

use crate::adapter::Failure;

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// Never.
    Off,
    /// Where the server offers it.
    Offered,
    /// Always.
    Required,
    /// Always; the certificate may be for another name, as behind a proxy.
    AnyName,
}

/// The files of a client's certificate and of its key.
#[cfg(feature = "etcd")]
pub(super) type Identity = (PathBuf, PathBuf);

/// What an address asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsWanted {
    pub(super) mode: TlsMode,
    /// A file of the certificates of trusted authorities. Without it, the public ones are.
    pub(super) authority: Option<PathBuf>,
}

/// Takes the parameters about TLS out of an address: `sslmode` and `sslrootcert` as `PostgreSQL` spells them, or `ssl-mode` and
/// `ssl-ca` as `MySQL` does.
pub(super) fn take(address: &str) -> Result<(String, TlsWanted), Failure> {
    let (rest, asked) = split(address);
    let [mode, authority, certificate, key] = asked;
    if certificate.or(key).is_some() {
        return Err(Failure::Fatal(
            "sslcert and sslkey: a client's certificate is shown to etcd only; log in with a password"
                .to_owned(),
        ));
    }
    let (mode, authority) = (lower(mode), authority.map(PathBuf::from));
    let mode = match mode.as_deref() {
        None if authority.is_none() && is_here(&rest) => TlsMode::Off,
        None if authority.is_none() => TlsMode::Offered,
        Some("disable" | "disabled") => TlsMode::Off,
        Some("prefer" | "preferred") => TlsMode::Offered,
        None
        | Some("require" | "required" | "verify-full" | "verify_identity" | "verify-identity") => {
            TlsMode::Required
        }
        // Anyone can get a certificate from a public authority for a name of their own.
        Some("verify-ca" | "verify_ca") if authority.is_none() => {
            return Err(Failure::Fatal(
                "sslmode=verify-ca does not check the name, so it needs the file of an authority: sslrootcert=FILE (ssl-ca for MariaDB)"
                    .to_owned(),
            ));
        }
        Some("verify-ca" | "verify_ca") => TlsMode::AnyName,
        Some(other) => {
            return Err(Failure::Fatal(format!(
                "sslmode={other} is not known: disable, prefer, require, verify-ca or verify-full; the certificate is always checked"
            )));
        }
    };
    Ok((rest, TlsWanted { mode, authority }))
}

/// Whom a client of etcd believes, and how it proves who it is.
#[cfg(feature = "etcd")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Encrypted {
    /// A file of the certificates of trusted authorities. Without it, the public ones are.
    pub(super) authority: Option<PathBuf>,
    /// What the client shows.
    pub(super) identity: Option<Identity>,
}

/// The same of an address of etcd, whose scheme says whether it is encrypted.
#[cfg(feature = "etcd")]
pub(super) fn take_https(address: &str) -> Result<(String, Encrypted), Failure> {
    let (rest, [mode, authority, certificate, key]) = split(address);
    let mode = lower(mode);
    let wrong = |why: &str| Err(Failure::Fatal(format!("{rest}: {why}")));
    let is_encrypted = rest.starts_with("https://");
    let has_file = [&authority, &certificate, &key]
        .iter()
        .any(|it| it.is_some());
    match mode.as_deref() {
        None | Some("require" | "required" | "verify-full") if is_encrypted => {
            let identity = match (certificate, key) {
                (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
                (None, None) => None,
                _ => return wrong("sslcert and sslkey belong together"),
            };
            let authority = authority.map(PathBuf::from);
            Ok((
                rest,
                Encrypted {
                    authority,
                    identity,
                },
            ))
        }
        None | Some("disable") if !is_encrypted && !has_file => Ok((rest, Encrypted::default())),
        Some("verify-ca") if is_encrypted => wrong(
            "sslmode=verify-ca is not supported for etcd; the certificate's name is always checked",
        ),
        _ if is_encrypted => wrong("https:// is always encrypted and checked; leave sslmode out"),
        _ => wrong("http:// is not encrypted; write https://"),
    }
}

/// Parameters about TLS, as `PostgreSQL` and as `MySQL` spell them.
const NAMES: [&[&str]; 4] = [
    &["sslmode", "ssl-mode", "ssl_mode"],
    &["sslrootcert", "ssl-ca", "ssl_ca"],
    &["sslcert", "ssl-cert", "ssl_cert"],
    &["sslkey", "ssl-key", "ssl_key"],
];

fn lower(mode: Option<String>) -> Option<String> {
    mode.map(|it| it.to_ascii_lowercase())
}

/// An address without its parameters about TLS, and these: the mode, the files of authorities, of a certificate and of its key.
fn split(address: &str) -> (String, [Option<String>; NAMES.len()]) {
    let mut found = [const { None }; NAMES.len()];
    let rest = match address.split_once("://") {
        Some((scheme, rest)) => {
            let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
            let query = kept(query.split('&'), &mut found).join("&");
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{scheme}://{place}{mark}{query}")
        }
        None => kept(address.split(' '), &mut found).join(" "),
    };
    (rest, found)
}

/// The parameters that are not about TLS.
fn kept<'a>(
    parameters: impl Iterator<Item = &'a str>,
    found: &mut [Option<String>; NAMES.len()],
) -> Vec<&'a str> {
    let mut kept = Vec::new();
    for parameter in parameters {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match NAMES.iter().position(|names| names.contains(&name)) {
            Some(at) => found[at] = Some(value.to_owned()),
            None => kept.push(parameter),
        }
    }
    kept
}

/// Whether a server is on this machine, so that no network is between.
fn is_here(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else {
        let mut hosts = address
            .split_whitespace()
            .filter_map(|it| it.strip_prefix("host="));
        return hosts.all(|it| it.starts_with('/') || is_loopback(it));
    };
    let place = rest.split(['/', '?']).next().unwrap_or("");
    let place = place.rsplit('@').next().unwrap_or("");
    let mut hosts = place
        .split(',')
        .map(|it| it.rsplit_once(':').map_or(it, |it| it.0));
    hosts.all(|host| host.is_empty() || host.starts_with("%2F") || is_loopback(host))
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    let number = host.parse::<std::net::IpAddr>();
    host == "localhost" || number.is_ok_and(|it| it.is_loopback())
}

/// The most bytes of a file of certificates; all public authorities together take 250 kB.
#[cfg(any(feature = "postgres", feature = "etcd"))]
const MOST_CERTIFICATES: u64 = 16 << 20;

/// The certificates of a file that a parameter names, of which there is at least one.
#[cfg(any(feature = "postgres", feature = "etcd"))]
fn certificates(
    name: &str,
    path: &std::path::Path,
) -> Result<Vec<rustls::pki_types::CertificateDer<'static>>, Failure> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let fail = |why: String| Failure::Fatal(format!("{name}={}: {why}", path.display()));
    let bytes = kingsnake_datasets::bounded::read_bytes(path, MOST_CERTIFICATES)
        .map_err(|error| fail(error.to_string()))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let read = read.map_err(|error| fail(error.to_string()))?;
    if read.is_empty() {
        return Err(fail("there is no certificate (PEM) in it".to_owned()));
    }
    Ok(read)
}

/// A connector that trusts the given authority, or the public ones.
#[cfg(feature = "postgres")]
pub(super) fn connector(
    wanted: &TlsWanted,
) -> Result<tokio_postgres_rustls::MakeRustlsConnect, Failure> {
    use std::sync::Arc;
    let mut roots = rustls::RootCertStore::empty();
    if let Some(path) = &wanted.authority {
        for certificate in certificates("sslrootcert", path)? {
            roots.add(certificate).map_err(|error| {
                Failure::Fatal(format!("sslrootcert={}: {error}", path.display()))
            })?;
        }
    } else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let fail = |why: String| Failure::Fatal(format!("TLS: {why}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(
        Arc::new(roots),
        provider.clone(),
    );
    let verifier = verifier.build().map_err(|error| fail(error.to_string()))?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fail(error.to_string()))?;
    let config = match wanted.mode {
        TlsMode::AnyName => config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(super::tls_any_name::AnyName(verifier))),
        _ => config.with_webpki_verifier(verifier),
    };
    let config = config.with_no_client_auth();
    Ok(tokio_postgres_rustls::MakeRustlsConnect::new(config))
}

/// The same for etcd.
#[cfg(feature = "etcd")]
pub(super) fn https(wanted: &Encrypted) -> Result<ureq::tls::TlsConfig, Failure> {
    use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
    let read = |name: &str, path: &std::path::Path| -> Result<Vec<Certificate<'static>>, Failure> {
        let read = certificates(name, path)?;
        let all = read.iter().map(|it| Certificate::from_der(it).to_owned());
        Ok(all.collect())
    };
    let mut config = TlsConfig::builder();
    if let Some(path) = &wanted.authority {
        config = config.root_certs(RootCerts::new_with_certs(&read("sslrootcert", path)?));
    }
    if let Some((certificate, key)) = &wanted.identity {
        let fail = |why: String| Failure::Fatal(format!("sslkey={}: {why}", key.display()));
        let pem = kingsnake_datasets::bounded::read_bytes(key, MOST_CERTIFICATES);
        let pem = pem.map_err(|error| fail(error.to_string()))?;
        let key = PrivateKey::from_pem(&pem).map_err(|error| fail(error.to_string()))?;
        let shown = ClientCert::new_with_certs(&read("sslcert", certificate)?, key);
        config = config.client_cert(Some(shown));
    }
    Ok(config.build())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(address: &str) -> (String, TlsMode) {
        let (rest, wanted) = take(address).unwrap();
        (rest, wanted.mode)
    }

    #[test]
    fn servers_elsewhere_are_encrypted_where_they_can_and_always_on_request() {
        for here in [
            "postgres://u:p@127.0.0.1:5432/d",
            "postgres://u@localhost/d",
            "mysql://u@[::1]:3306/d",
            "postgres://%2Frun%2Fpostgresql/d",
            "host=/run/postgresql user=u",
            "user=u",
        ] {
            assert_eq!(taken(here), (here.to_owned(), TlsMode::Off));
        }
        for there in ["postgres://u:p@db.example/d", "host=10.0.0.7 user=u"] {
            assert_eq!(taken(there), (there.to_owned(), TlsMode::Offered));
        }
        let asked = "postgres://127.0.0.1/d?a=b&sslmode=verify-full&sslrootcert=/ca.pem";
        let (rest, wanted) = take(asked).unwrap();
        assert_eq!(rest, "postgres://127.0.0.1/d?a=b");
        assert_eq!(wanted.mode, TlsMode::Required);
        assert_eq!(wanted.authority, Some(PathBuf::from("/ca.pem")));
        assert_eq!(taken("mysql://h/d?ssl-mode=DISABLED").1, TlsMode::Off);
        assert_eq!(taken("host=h sslmode=prefer").1, TlsMode::Offered);
        // A named authority is always checked.
        assert_eq!(taken("mysql://[::1]/d?ssl-ca=/ca.pem").1, TlsMode::Required);
        assert!(take("postgres://h/d?sslcert=/c&sslkey=/k").is_err());
        for unknown in ["allow", "verify-ca", "no", ""] {
            assert!(take(&format!("postgres://h/d?sslmode={unknown}")).is_err());
        }
        let any_name = "postgres://h/d?sslmode=verify-ca&sslrootcert=/ca.pem";
        assert_eq!(taken(any_name).1, TlsMode::AnyName);
    }

    #[test]
    #[cfg(feature = "etcd")]
    fn the_scheme_of_etcd_says_whether_it_is_encrypted() {
        for (typed, rest, authority) in [
            ("http://h:2379", "http://h:2379", None),
            ("http://h:2379?sslmode=disable", "http://h:2379", None),
            ("https://h:2379", "https://h:2379", None),
            (
                "https://h:2379?sslmode=require&ssl-ca=/ca",
                "https://h:2379",
                Some("/ca"),
            ),
        ] {
            let authority = authority.map(PathBuf::from);
            let identity = None;
            let expected = (
                rest.to_owned(),
                Encrypted {
                    authority,
                    identity,
                },
            );
            assert_eq!(take_https(typed).unwrap(), expected);
        }
        let (rest, wanted) = take_https("https://h:1?sslcert=/c&sslkey=/k").unwrap();
        assert_eq!(rest, "https://h:1");
        assert_eq!(wanted.identity, Some(("/c".into(), "/k".into())));
        for refused in [
            "https://h?sslcert=/c",
            "https://h?sslkey=/k",
            "http://h?sslcert=/c&sslkey=/k",
            "http://h?ssl-ca=/ca",
            "http://h?sslmode=require",
            "https://h?sslmode=disable",
            "https://h?sslmode=prefer",
            "https://h?sslmode=verify-ca&ssl-ca=/ca",
        ] {
            assert!(take_https(refused).is_err(), "{refused}");
        }
    }
}
