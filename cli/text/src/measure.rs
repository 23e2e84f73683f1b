//! Counts, durations and sizes for people.

/// A number with thousands separators.
pub fn grouped(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count of things: `1 key`, `2 keys`.
pub fn count(number: usize, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number as u64))
}

/// A share in percent. If it rounds to all or to nothing without being that, it is shown as less or more.
pub fn percent(part: u64, whole: u64) -> String {
    let share = 100.0 * part as f64 / whole.max(1) as f64;
    if part > 0 && share < 0.05 {
        "less than 0.1 %".to_owned()
    } else if part < whole && share >= 99.95 {
        "more than 99.9 %".to_owned()
    } else {
        format!("{share:.1} %")
    }
}

/// A duration as a person reads it.
pub fn lasting(time: std::time::Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 0.000_999_5 {
        format!("{:.0} µs", seconds * 1e6)
    } else if seconds < 0.1 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 0.999_5 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 60.0 {
        format!("{seconds:.2} s")
    } else {
        format!("{} min {:02.0} s", (seconds / 60.0) as u64, seconds % 60.0)
    }
}

/// A size as a person reads it.
pub fn sized(bytes: u64) -> String {
    const MIB: f64 = 1_048_576.0;
    let size = bytes as f64;
    if bytes < 1024 {
        format!("{bytes} bytes")
    } else if size < MIB {
        format!("{:.0} kB", size / 1024.0)
    } else if size < 1024.0 * MIB {
        format!("{:.0} MB", size / MIB)
    } else {
        format!("{:.2} GB", size / MIB / 1024.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(0_u64), "0");
        assert_eq!(grouped(999_u64), "999");
        assert_eq!(grouped(1_000_u64), "1,000");
        assert_eq!(grouped(12_345_678_u64), "12,345,678");
        assert_eq!(count(1, "key"), "1 key");
        assert_eq!(count(2_000, "key"), "2,000 keys");
    }

    #[test]
    fn a_share_is_all_or_nothing_only_where_it_is() {
        assert_eq!(percent(45_183_691, 45_186_771), "more than 99.9 %");
        assert_eq!(percent(3_080, 45_186_771), "less than 0.1 %");
        assert_eq!([percent(7, 7), percent(0, 7)], ["100.0 %", "0.0 %"]);
        assert_eq!(percent(1, 3), "33.3 %");
    }

    #[test]
    fn times_choose_their_unit() {
        assert_eq!(lasting(Duration::from_micros(7)), "7 µs");
        assert_eq!(lasting(Duration::from_micros(7_250)), "7.2 ms");
        assert_eq!(lasting(Duration::from_millis(250)), "250 ms");
        assert_eq!(lasting(Duration::from_millis(1_250)), "1.25 s");
        assert_eq!(lasting(Duration::from_secs(125)), "2 min 05 s");
    }
}
