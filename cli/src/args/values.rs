//! Parsers of single values: durations, shares, sizes, and names from a table.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use kingsnake_datasets::Format;

pub(super) fn formats(of: &[Format]) -> impl TypedValueParser<Value = Format> + use<> {
    let names: Vec<&'static str> = of.iter().map(|format| format.name()).collect();
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

pub(super) fn seconds(typed: &str) -> Result<Duration, String> {
    let number: f64 = typed
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

/// Milliseconds, as nanoseconds.
pub(super) fn milliseconds(typed: &str) -> Result<u64, String> {
    match typed.parse::<f64>() {
        Ok(number) if (0.0..=9e12).contains(&number) => Ok((number * 1e6).round() as u64),
        _ => Err("not a number of milliseconds".to_owned()),
    }
}

pub(super) fn share(typed: &str) -> Result<f64, String> {
    match typed.parse() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("not a number from 0 to 1".to_owned()),
    }
}

/// A size such as `4G`: the letters are powers of 1,024, and `iB` or `B` may follow.
pub(super) fn bytes(typed: &str) -> Result<u64, String> {
    let wrong = || "not a size such as 500M or 4G".to_owned();
    let plain = typed.trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (digits, shift) = match plain.char_indices().last().ok_or_else(wrong)? {
        (at, 'k' | 'K') => (&plain[..at], 10),
        (at, 'm' | 'M') => (&plain[..at], 20),
        (at, 'g' | 'G') => (&plain[..at], 30),
        (at, 't' | 'T') => (&plain[..at], 40),
        _ => (plain, 0),
    };
    let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
    let size = number * 2_f64.powi(shift);
    if size.is_finite() && size >= 0.0 {
        Ok(size as u64)
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_letters() {
        assert_eq!(bytes("17"), Ok(17));
        assert_eq!(bytes("4G"), Ok(4 << 30));
        assert_eq!(bytes("1.5KiB"), Ok(1536));
        assert_eq!(bytes("2TB"), Ok(2 << 40));
        assert!(bytes("").is_err());
        assert!(bytes("G").is_err());
        assert!(bytes("-1").is_err());
        assert!(bytes("manyM").is_err());
    }

    #[test]
    fn times_may_be_fractions_but_not_negative() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert!(seconds("-1").is_err());
        assert!(seconds("NaN").is_err());
        assert!(seconds("soon").is_err());
        assert_eq!(milliseconds("2.5"), Ok(2_500_000));
        assert!(milliseconds("-1").is_err());
        assert!(milliseconds("1e300").is_err());
    }
}
