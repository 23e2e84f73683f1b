//! Scales: from a number to a place on the paper, and the ticks that a reader needs.

/// A logarithmic scale.
#[derive(Clone, Copy, Debug)]
pub struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// A tick: where, and what it is called if there is room for names.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The number.
    pub at: f64,
    /// Its name.
    pub name: Option<String>,
}

impl LogScale {
    /// From the least of these numbers to the greatest.
    pub fn within(numbers: impl IntoIterator<Item = f64>, from: f64, to: f64) -> LogScale {
        let (mut low, mut high) = ends(numbers);
        if low >= high {
            (low, high) = (low / 2.0, low * 2.0);
        }
        LogScale {
            low,
            high,
            from,
            to,
        }
    }

    /// A scale that shows all of these numbers, its ends at 1, 2 or 5 times a power of ten, at least one decade long.
    pub fn over(numbers: impl IntoIterator<Item = f64>, from: f64, to: f64) -> LogScale {
        let (least, most) = ends(numbers);
        let mut low = step_down(least * 0.95);
        let mut high = step_up(most * 1.05);
        while high / low < 9.99 {
            low = step_down(low * 0.99);
            if high / low < 9.99 {
                high = step_up(high * 1.01);
            }
        }
        LogScale {
            low,
            high,
            from,
            to,
        }
    }

    /// Where a number is; at the end where it is beyond it.
    pub fn place(&self, number: f64) -> f64 {
        let share = (number.max(1e-12) / self.low).ln() / (self.high / self.low).ln();
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Ticks at 1 to 9 times powers of ten, or only at powers of ten where there are many. Powers of ten have names; where
    /// there are fewer than three of them, 2 and 5 have too.
    pub fn ticks(&self, name: impl Fn(f64) -> String) -> Vec<Tick> {
        let mut ticks = Vec::new();
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        for power in first..=last {
            for digit in 1..=9 {
                let at = f64::from(digit) * 10f64.powi(power);
                if at > self.low * 0.999 && at < self.high * 1.001 {
                    ticks.push((at, digit));
                }
            }
        }
        let n_decades = ticks.iter().filter(|(_, digit)| *digit == 1).count();
        let few = n_decades < 3;
        ticks
            .into_iter()
            .filter(|(_, digit)| n_decades < 6 || *digit == 1)
            .map(|(at, digit)| Tick {
                at,
                name: (digit == 1 || (few && (digit == 2 || digit == 5))).then(|| name(at)),
            })
            .collect()
    }
}

/// The least and the greatest of the numbers that a logarithmic scale can show.
fn ends(numbers: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let mut ends: Option<(f64, f64)> = None;
    for number in numbers {
        if number.is_finite() && number > 0.0 {
            let (least, most) = ends.unwrap_or((number, number));
            ends = Some((least.min(number), most.max(number)));
        }
    }
    ends.unwrap_or((0.1, 1.0))
}

const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

fn step_down(number: f64) -> f64 {
    let power = 10f64.powf(number.log10().floor());
    let fits = STEPS
        .iter()
        .rev()
        .find(|&&step| step * power <= number * 1.000_001);
    fits.map_or(power, |step| step * power)
}

fn step_up(number: f64) -> f64 {
    let power = 10f64.powf(number.log10().floor());
    let fits = STEPS
        .iter()
        .find(|&&step| step * power >= number * 0.999_999);
    fits.map_or(10.0 * power, |step| step * power)
}

/// A linear scale.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Linear {
    /// From the least of these numbers to the greatest.
    pub fn over(numbers: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Linear {
        let (low, high) = numbers
            .into_iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| {
                (low.min(it), high.max(it))
            });
        let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
        Linear {
            low,
            high,
            from,
            to,
        }
    }

    /// Where a number is.
    pub fn place(&self, number: f64) -> f64 {
        let share = (number - self.low) / (self.high - self.low);
        self.from + share * (self.to - self.from)
    }

    /// At most eleven round numbers.
    pub fn ticks(&self) -> Vec<f64> {
        let span = self.high - self.low;
        let step = step_up(span / 10.0);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|at| at as f64 * step).collect()
    }
}

/// Seconds as an axis or a mark says them.
pub fn time(seconds: f64) -> String {
    use crate::claims::short;
    if seconds < 0.000_999_5 {
        format!("{} µs", short(seconds * 1e6))
    } else if seconds < 0.999_5 {
        format!("{} ms", short(seconds * 1e3))
    } else {
        format!("{} s", short(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(low: f64, high: f64) -> Vec<String> {
        let scale = LogScale::over([low, high], 0.0, 1.0);
        let ticks = scale.ticks(time);
        ticks.into_iter().filter_map(|tick| tick.name).collect()
    }

    #[test]
    fn decades_have_names() {
        assert_eq!(
            names(0.003, 290.0),
            ["10 ms", "100 ms", "1 s", "10 s", "100 s"]
        );
        assert_eq!(names(0.002, 0.9), ["1 ms", "10 ms", "100 ms", "1 s"]);
    }

    #[test]
    fn short_scales_name_more() {
        assert_eq!(names(1.2, 7.0), ["1 s", "2 s", "5 s", "10 s"]);
        assert_eq!(names(2.5, 2.6), ["1 s", "2 s", "5 s", "10 s"]);
    }

    #[test]
    fn every_number_is_within_its_scale() {
        for least in [1e-5, 0.0213, 0.5, 1.0, 9.99, 10.0, 123.0] {
            for factor in [1.0, 1.01, 3.0, 1e4] {
                let scale = LogScale::over([least, least * factor], 100.0, 0.0);
                let (one, other) = (scale.place(least), scale.place(least * factor));
                assert!(
                    one < 99.9 && one > 0.1 && other <= one && other > 0.1,
                    "{scale:?}"
                );
                assert!(
                    scale
                        .ticks(time)
                        .iter()
                        .filter(|it| it.name.is_some())
                        .count()
                        >= 2
                );
            }
        }
    }

    #[test]
    fn nothing_to_show_is_still_a_scale() {
        let scale = LogScale::over([f64::INFINITY, 0.0], 0.0, 1.0);
        assert!(scale.place(0.5).is_finite());
        assert!((LogScale::within([7.0], 0.0, 1.0).place(7.0) - 0.5).abs() < 1e-9);
        assert_eq!(Linear::over([], 0.0, 1.0).ticks().len(), 11);
    }

    #[test]
    fn linear_ticks_are_round() {
        let ticks = Linear::over([0.0, 100.0], 0.0, 1.0).ticks();
        assert_eq!(ticks.len(), 11);
        assert!((ticks[9] - 90.0).abs() < 1e-9);
        assert_eq!(Linear::over([0.0, 7.0], 0.0, 1.0).ticks().len(), 8);
    }

    #[test]
    fn times_are_said_in_their_unit() {
        assert_eq!(time(0.000_05), "50 µs");
        assert_eq!(time(0.1), "100 ms");
        assert_eq!(time(300.0), "300 s");
        assert_eq!(time(1.234), "1.23 s");
    }
}
