//! TLS of connections: what an address asks for, and which certificates are believed.
//!
//! Invariant: a connection that is encrypted has checked the server's certificate and its name. There is no way to turn the check
//! off; an authority of one's own is named by `sslrootcert`.

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
}

/// What an address asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsWanted {
    pub(super) mode: TlsMode,
    /// The certificates of authorities that are believed besides the public ones.
    pub(super) authority: Option<PathBuf>,
}

/// Takes the parameters about TLS out of an address: `sslmode` and `sslrootcert` as `PostgreSQL` spells them, or `ssl-mode` and
/// `ssl-ca` as `MySQL` does.
pub(super) fn take(address: &str) -> Result<(String, TlsWanted), Failure> {
    let mut found = (None, None);
    let rest = match address.split_once("://") {
        Some((scheme, rest)) => {
            let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
            let query = kept(query.split('&'), &mut found).join("&");
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{scheme}://{place}{mark}{query}")
        }
        None => kept(address.split(' '), &mut found).join(" "),
    };
    let (mode, authority) = found;
    let mode = match mode.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None if authority.is_none() && is_here(&rest) => TlsMode::Off,
        None if authority.is_none() => TlsMode::Offered,
        Some("disable" | "disabled") => TlsMode::Off,
        Some("prefer" | "preferred") => TlsMode::Offered,
        None
        | Some("require" | "required" | "verify-full" | "verify_identity" | "verify-identity") => {
            TlsMode::Required
        }
        Some(other) => {
            return Err(Failure::Fatal(format!(
                "sslmode={other} is not known: disable, prefer, require or verify-full; the certificate and its name are always checked"
            )));
        }
    };
    let authority = authority.map(PathBuf::from);
    Ok((rest, TlsWanted { mode, authority }))
}

/// The parameters that are not about TLS.
fn kept<'a>(
    parameters: impl Iterator<Item = &'a str>,
    (mode, authority): &mut (Option<String>, Option<String>),
) -> Vec<&'a str> {
    let mut kept = Vec::new();
    for parameter in parameters {
        match parameter.split_once('=') {
            Some(("sslmode" | "ssl-mode" | "ssl_mode", value)) => *mode = Some(value.to_owned()),
            Some(("sslrootcert" | "ssl-ca" | "ssl_ca", value)) => {
                *authority = Some(value.to_owned());
            }
            _ => kept.push(parameter),
        }
    }
    kept
}

/// Whether a server is on this machine, so that nobody is between.
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

/// A connector that believes the public authorities and this one.
#[cfg(feature = "postgres")]
pub(super) fn connector(
    wanted: &TlsWanted,
) -> Result<tokio_postgres_rustls::MakeRustlsConnect, Failure> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = &wanted.authority {
        let fail = |why: String| Failure::Fatal(format!("sslrootcert={}: {why}", path.display()));
        let read = CertificateDer::pem_file_iter(path).map_err(|it| fail(it.to_string()))?;
        for certificate in read {
            let certificate = certificate.map_err(|it| fail(it.to_string()))?;
            roots.add(certificate).map_err(|it| fail(it.to_string()))?;
        }
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|it| Failure::Fatal(it.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(tokio_postgres_rustls::MakeRustlsConnect::new(config))
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
        // One who names an authority wants it checked.
        assert_eq!(taken("mysql://[::1]/d?ssl-ca=/ca.pem").1, TlsMode::Required);
        for unknown in ["allow", "verify-ca", "no", ""] {
            assert!(take(&format!("postgres://h/d?sslmode={unknown}")).is_err());
        }
    }
}
