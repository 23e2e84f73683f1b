//! Addresses of servers: where they come from, and how they may be shown.
//!
//! Invariant: no password of an address is in what [`redacted`] returns, whatever the address looks like.

use std::fmt::Write as _;
use std::path::PathBuf;

use thiserror::Error;

/// The replacement of a password.
const HIDDEN: &str = "***";

/// Parts of the names of parameters whose values are secrets.
const SECRETS: [&str; 6] = ["pass", "pwd", "secret", "token", "key", "auth"];

/// Why there is no address.
#[derive(Debug, Error)]
pub enum AddressError {
    /// The variable is not set, or is no text.
    #[error("--url env:{0}: there is no such variable in the environment")]
    Variable(String),
    /// The file cannot be read.
    #[error("--url @{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The file is empty.
    #[error("--url @{0}: the file is empty; its first line should be the address")]
    Empty(PathBuf),
}

/// The most bytes of a file that holds an address.
const MOST_ADDRESS: u64 = 1 << 20;

/// The address that was typed: itself, or what the environment (`env:NAME`) or the first line of a file (`@FILE`) holds.
pub fn resolve(typed: &str) -> Result<String, AddressError> {
    if let Some(name) = typed.strip_prefix("env:") {
        return std::env::var(name).map_err(|_| AddressError::Variable(name.to_owned()));
    }
    let Some(path) = typed.strip_prefix('@').map(PathBuf::from) else {
        return Ok(typed.to_owned());
    };
    match kingsnake_datasets::bounded::read_text(&path, MOST_ADDRESS) {
        Ok(text) => match text.lines().next().map(str::trim) {
            Some(line) if !line.is_empty() => Ok(line.to_owned()),
            _ => Err(AddressError::Empty(path)),
        },
        Err(error) => Err(AddressError::File(path, error)),
    }
}

/// An address as it may be shown: without the password, in whatever form it is given.
pub fn redacted(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", redacted_url(rest)),
        // The scheme was forgotten.
        None if address.split_once('@').is_some_and(|it| it.0.contains(':')) => {
            redacted_url(address)
        }
        None if address.contains('=') => redacted_words(address),
        None => address.to_owned(),
    }
}

/// What follows the scheme: `user:password@host/database?name=value&…`.
fn redacted_url(rest: &str) -> String {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (who, place) = match (rest.rfind('@'), place.rsplit_once('@')) {
        // An at sign after the question mark may belong to a password that was not spelt as it should be.
        (Some(_), None) => return HIDDEN.to_owned(),
        (Some(at), Some((who, _))) if at > who.len() => return HIDDEN.to_owned(),
        (_, Some((who, place))) => (Some(who), place),
        (None, None) => (None, place),
    };
    let mut shown = String::new();
    if let Some(who) = who {
        // So may a slash before the at sign.
        if who.contains(['/', '#']) {
            return HIDDEN.to_owned();
        }
        match who.split_once(':') {
            Some((user, _)) => {
                let _ = write!(shown, "{user}@");
            }
            None => {
                let _ = write!(shown, "{who}@");
            }
        }
    }
    shown.push_str(place);
    for (at, parameter) in query.split('&').filter(|it| !it.is_empty()).enumerate() {
        shown.push(if at == 0 { '?' } else { '&' });
        match parameter.split_once('=') {
            Some((name, _)) if is_secret(name) => {
                let _ = write!(shown, "{name}={HIDDEN}");
            }
            _ => shown.push_str(parameter),
        }
    }
    shown
}

/// `host=… password=…`, as libpq takes it: values may be quoted, and a backslash escapes.
fn redacted_words(words: &str) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut letters = words.chars().peekable();
    loop {
        while letters.next_if(|it| it.is_whitespace()).is_some() {}
        if letters.peek().is_none() {
            return shown.join(" ");
        }
        let mut name = String::new();
        while let Some(letter) = letters.next_if(|&it| it != '=') {
            name.push(letter);
        }
        let name = name.trim().to_owned();
        if letters.next().is_none() {
            // No value: this is no parameter.
            shown.push(if is_secret(&name) {
                HIDDEN.to_owned()
            } else {
                name
            });
            continue;
        }
        while letters.next_if(|it| it.is_whitespace()).is_some() {}
        let is_quoted = letters.next_if_eq(&'\'').is_some();
        let mut value = String::new();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => value.extend(letters.next()),
                '\'' if is_quoted => break,
                _ if !is_quoted && letter.is_whitespace() => break,
                _ => value.push(letter),
            }
        }
        let value = if is_secret(&name) { HIDDEN } else { &value };
        shown.push(format!("{name}={value}"));
    }
}

fn is_secret(name: &str) -> bool {
    let name = decoded(name).to_ascii_lowercase();
    // Paths of keys are no secrets, but their passwords are.
    name != "sslkey" && SECRETS.iter().any(|it| name.contains(it))
}

/// A name as a client reads it: `%61` is a letter.
fn decoded(name: &str) -> String {
    let mut parts = name.split('%');
    let mut bytes = parts.next().unwrap_or("").as_bytes().to_vec();
    for part in parts {
        let number = part.get(..2).and_then(|it| u8::from_str_radix(it, 16).ok());
        bytes.push(number.unwrap_or(b'%'));
        bytes.extend_from_slice(&part.as_bytes()[if number.is_some() { 2 } else { 0 }..]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_an_address_shows_its_password() {
        let plain = [
            "postgres://h:5432/db",
            "mysql://user@h/db?x=y",
            "/tmp/file.db",
            "host=h user=u",
            "http://127.0.0.1:2379",
            "http://h?a%=%zz&b%4=c",
            "/tmp/a@b/file.db",
        ];
        for address in plain {
            assert_eq!(redacted(address), address);
        }
        assert_eq!(redacted("postgres://u:hunter2@h:1/d"), "postgres://u@h:1/d");
        let secret = [
            "postgres://u:hunter2@h/d",
            "postgres://u:hun@hunter2@h/d",
            "postgres://u:a/hunter2@h/d",
            "postgres://u:a?hunter2@h/d",
            "postgres://u:a#hunter2@h/d",
            "postgres://h/d?user=u&password=hunter2",
            "postgres://h/d?PassWord=hunter2&sslmode=require",
            "postgres://h/d?password=a@hunter2",
            "mysql://h/d?sslpassword=hunter2",
            "host=h password=hunter2 user=u",
            "host=h password = 'a b hunter2' user=u",
            r"host=h password='a\'hunter2' user=u",
            r"host=h password=a\ hunter2 user=u",
            "password=hunter2",
            "postgres://:hunter2@h",
            "postgres://h/d?p%61ssword=hunter2",
            "postgres://h/d?%50%57d=hunter2",
            "u:hunter2@h:5432/d",
            "postgres:u:hunter2@h/d?a=b",
        ];
        for address in secret {
            let shown = redacted(address);
            assert!(!shown.contains("hunter2"), "{address} is shown as {shown}");
        }
    }

    #[test]
    fn an_address_comes_from_a_file_or_as_it_is() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("url");
        std::fs::write(&path, "postgres://u:p@h/d\n").unwrap();
        let typed = format!("@{}", path.display());
        assert_eq!(resolve(&typed).unwrap(), "postgres://u:p@h/d");
        assert_eq!(resolve("postgres://h").unwrap(), "postgres://h");
        std::fs::write(&path, "\n").unwrap();
        assert!(resolve(&typed).is_err());
        assert!(resolve("env:KINGSNAKE_NO_SUCH_VARIABLE").is_err());
    }
}
