//! The tables of an experiment.

use super::matrix::{Matrix, across, line_name, lines};
use crate::claims::short;
use crate::design::{SettledExperiment, Study};
use crate::figure::scale::time;
use crate::phases::{self, PARTS};
use crate::recipe::{Measure, StudyTable};
use crate::row::{Row, RowOutcome, Solver};
use crate::summary::{Spread, middle, spread};
use kingsnake_text::{grouped, sized};
use maud::{Markup, html};

const NOTHING: &str = "–";

/// A table.
pub fn table(
    table: StudyTable,
    study: &Study,
    shown: &SettledExperiment,
    points: &[Vec<&Row>],
) -> Markup {
    match table {
        StudyTable::Medians => match super::measure(shown) {
            Measure::Both => html! {
                (medians(study, shown, points, Measure::Seconds))
                (medians(study, shown, points, Measure::Cpu))
            },
            measure => medians(study, shown, points, measure),
        },
        StudyTable::Split => each("Median time to encode + to solve", shown, points, split),
        StudyTable::Sizes => each(
            "Variables / clauses / conflicts (medians)",
            shown,
            points,
            sizes,
        ),
        StudyTable::Memory => each("Peak memory (median)", shown, points, memory),
        StudyTable::Detection => each(
            "Violations found, of the runs, and the 95 % interval of the share (Wilson)",
            shown,
            points,
            detection,
        ),
        StudyTable::Positions => each(
            "Transactions committed when the counterexample was complete (median of the runs that found one, and the least)",
            shown,
            points,
            positions,
        ),
        StudyTable::Aborts => each(
            "Attempts that aborted while the history was made (median)",
            shown,
            points,
            aborts,
        ),
        StudyTable::Making => each(
            "Time to make the history + to check it (medians)",
            shown,
            points,
            making,
        ),
        StudyTable::Rounds => rounds(shown, points),
        StudyTable::Phases => by_phase(shown, points),
    }
}

fn columns(shown: &SettledExperiment) -> Vec<String> {
    let values = &shown.axes[across(shown)].values;
    values.iter().map(|label| label.name.clone()).collect()
}

fn each(
    caption: &str,
    shown: &SettledExperiment,
    points: &[Vec<&Row>],
    cell: fn(&[&Row]) -> String,
) -> Markup {
    let mut matrix = Matrix::new(caption, columns(shown));
    for (name, along) in lines(shown) {
        matrix.words(name, along.iter().map(|&point| cell(&points[point])));
    }
    matrix.markup()
}

/// How many of the runs found a violation.
pub fn detection(rows: &[&Row]) -> String {
    if rows.is_empty() {
        return NOTHING.to_owned();
    }
    let found = rows.iter().filter(|row| row.verdict == "violated").count();
    let [low, high] = wilson(found, rows.len()).map(|share| 100.0 * share);
    format!("{found} of {} ({low:.0}–{high:.0} %)", rows.len())
}

fn positions(rows: &[&Row]) -> String {
    let position = |row: &Row| row.position.map(|it| it as f64);
    let least = rows.iter().filter_map(|row| row.position).min();
    match (middle(rows, position), least) {
        (Some(median), Some(least)) => {
            format!("{} (least {})", grouped(median as u64), grouped(least))
        }
        _ => NOTHING.to_owned(),
    }
}

/// The share of attempts that aborted.
pub fn aborts(rows: &[&Row]) -> String {
    let rate = middle(rows, |row| row.made.map(|it| 100.0 * it.abort_rate()));
    rate.map_or(NOTHING.to_owned(), |it| format!("{it:.1} %"))
}

/// How long it took to make the history and to check it.
pub fn making(rows: &[&Row]) -> String {
    let made = middle(rows, |row| row.made.map(|it| it.seconds));
    let checked = middle(rows, |row| Some(row.stats.seconds));
    match (made, checked) {
        (Some(made), Some(checked)) => format!("{} + {}", time(made), time(checked)),
        _ => NOTHING.to_owned(),
    }
}

/// Wilson's 95 % interval of a share.
pub(super) fn wilson(found: usize, all: usize) -> [f64; 2] {
    const Z: f64 = 1.959_964;
    let (n, share) = (all as f64, found as f64 / all as f64);
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    [(middle - half) / scale, (middle + half) / scale].map(|it| it.clamp(0.0, 1.0))
}

fn medians(
    study: &Study,
    shown: &SettledExperiment,
    points: &[Vec<&Row>],
    measure: Measure,
) -> Markup {
    let limit = study.timeout.as_secs_f64();
    let columns = columns(shown);
    let caption = format!(
        "Median {}, its ratio to {}, where the median lies with 95 % confidence (bootstrap), and the shortest and the longest run",
        measure.label(),
        columns.first().map_or("the first", String::as_str)
    );
    let mut answered = vec![(0, 0); columns.len()];
    let mut ratios = vec![Vec::new(); columns.len()];
    let mut matrix = Matrix::new(caption, columns);
    for (name, along) in lines(shown) {
        let spreads: Vec<Option<Spread>> = along
            .iter()
            .map(|&point| spread(&points[point], measure))
            .collect();
        let first = spreads.first().copied().flatten();
        let mut cells = Vec::new();
        for (at, (spread, &point)) in spreads.iter().zip(&along).enumerate() {
            let Some(spread) = spread else {
                cells.push(if let Some(why) = &study.points[point].refused {
                    html! { abbr title=(why) { "refused" } }
                } else if points[point].is_empty() {
                    html! { (NOTHING) }
                } else {
                    html! { span.soft { "not asked" } }
                });
                continue;
            };
            let ratio = ratio(spread, first).filter(|_| at > 0);
            answered[at].0 += usize::from(spread.is_answered());
            answered[at].1 += 1;
            ratios[at].extend(ratio);
            cells.push(median_cell(spread, ratio, measure, limit));
        }
        matrix.line(name, cells);
    }
    // A column of which nothing was asked has answered nothing because of that.
    let counts = answered.iter().map(|&(answered, asked)| match asked {
        0 => "not applicable".to_owned(),
        _ => format!("{answered} of {asked}"),
    });
    matrix.words("answered", counts);
    let means = ratios.iter().map(|ratios| mean(ratios));
    matrix.words("geometric mean of the ratios, where both answer", means);
    matrix.markup()
}

fn ratio(spread: &Spread, base: Option<Spread>) -> Option<f64> {
    let base = base.filter(|base| base.is_answered() && base.median > 0.0)?;
    spread.is_answered().then(|| spread.median / base.median)
}

fn mean(ratios: &[f64]) -> String {
    if ratios.is_empty() {
        return NOTHING.to_owned();
    }
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    format!("× {}", short((sum / ratios.len() as f64).exp()))
}

fn median_cell(spread: &Spread, ratio: Option<f64>, measure: Measure, limit: f64) -> Markup {
    let within = |number| measure.within(number, limit);
    let (low, high) = spread.interval;
    let lacks = match spread.lacks {
        _ if spread.is_answered() => None,
        Some(outcome) if outcome != RowOutcome::Time => Some(outcome.word().to_owned()),
        _ => Some(within(f64::INFINITY)),
    };
    html! {
        @if let Some(lacks) = lacks { b.lacks { (lacks) } } @else { (within(spread.median)) }
        @if let Some(ratio) = ratio { br; small { "× " (short(ratio)) } }
        @if spread.n > 1 && spread.is_answered() {
            br; small { "[" (within(low)) " – " (within(high)) "]" }
            br; small { (within(spread.low)) " – " (within(spread.high)) }
        }
    }
}

/// What the solver counted in a run that it answered; a run that was stopped has no counts.
fn solver(row: &Row) -> Option<&Solver> {
    let solver = row.stats.solver.as_ref();
    solver.filter(|_| row.outcome == RowOutcome::Answered)
}

fn split(rows: &[&Row]) -> String {
    let encode = middle(rows, |row| Some(solver(row)?.encode_seconds));
    let solve = middle(rows, |row| Some(solver(row)?.solve_seconds));
    match (encode, solve) {
        (Some(encode), Some(solve)) => format!("{} + {}", time(encode), time(solve)),
        _ => NOTHING.to_owned(),
    }
}

fn sizes(rows: &[&Row]) -> String {
    let of = |count: fn(&Row) -> Option<u64>| {
        let number = middle(rows, |row| count(row).map(|it| it as f64));
        number.map(|it| grouped(it as u64))
    };
    let all = [
        of(|row| Some(solver(row)?.variables)),
        of(|row| Some(solver(row)?.clauses)),
        of(|row| Some(solver(row)?.conflicts)),
    ];
    match all.into_iter().collect::<Option<Vec<String>>>() {
        Some(all) => all.join(" / "),
        None => NOTHING.to_owned(),
    }
}

fn memory(rows: &[&Row]) -> String {
    let peak = middle(rows, |row| row.peak_memory_bytes.map(|it| it as f64));
    peak.map_or(NOTHING.to_owned(), |it| sized(it as u64))
}

fn by_phase(shown: &SettledExperiment, points: &[Vec<&Row>]) -> Markup {
    let mut columns = PARTS.map(str::to_owned).to_vec();
    columns.extend(["all".to_owned(), "decided by".to_owned()]);
    let mut matrix = Matrix::new("Time by phase in the median run", columns);
    for (at, point) in super::combinations(shown) {
        let rows = &points[point];
        let (Some(first), Some(times)) =
            (rows.first(), phases::medians(rows, super::measure(shown)))
        else {
            continue;
        };
        let mut cells: Vec<String> = times
            .iter()
            .map(|&it| {
                if it > 0.0 {
                    time(it)
                } else {
                    NOTHING.to_owned()
                }
            })
            .collect();
        cells.push(time(times.iter().sum()));
        cells.push(first.decider.clone());
        matrix.words(line_name(shown, &at, None), cells);
    }
    matrix.markup()
}

fn rounds(shown: &SettledExperiment, points: &[Vec<&Row>]) -> Markup {
    let all = || shown.grid.iter().flat_map(|&point| &points[point]);
    let n_rounds = all().map(|row| row.stats.rounds.len()).max().unwrap_or(0);
    let mut columns = vec!["pairs before".to_owned()];
    columns.extend((1..=n_rounds).map(|round| format!("open after {round}")));
    columns.push("left to the solver".to_owned());
    columns.push("decided by".to_owned());
    let caption = "Constraints before and after each pruning round (first run)";
    let mut matrix = Matrix::new(caption, columns);
    for (at, point) in super::combinations(shown) {
        let Some(row) = points[point].first() else {
            continue;
        };
        let mut cells = vec![grouped(row.stats.pairs)];
        cells.extend((0..n_rounds).map(|round| {
            let round = row.stats.rounds.get(round);
            round.map_or(String::new(), |round| grouped(round.open))
        }));
        cells.push(grouped(row.stats.open_constraints));
        cells.push(row.decider.clone());
        matrix.words(line_name(shown, &at, None), cells);
    }
    matrix.markup()
}
