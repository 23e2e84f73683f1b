//! The output of solvers: status and values, in the formats of the SAT competitions, of `MiniSat` and of SMT-LIB 2.

use kingsnake_graph::decide::DecideStats;

/// The answer of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProgramAnswer {
    /// A value for each variable: of a SAT solver 1 or -1, or 0 where it does not matter.
    Sat(Vec<i64>),
    Unsat,
    /// It gave up, with this word.
    Unknown(String),
    Nothing,
}

/// Accepts a single status.
#[derive(Default)]
struct Status(Option<(bool, String)>, Option<String>);

impl Status {
    fn tell(&mut self, is_sat: bool, word: &str) -> Result<(), String> {
        match &self.0 {
            Some((before, other)) if *before != is_sat => {
                Err(format!("it answered both {other:?} and {word:?}"))
            }
            _ => {
                self.0 = Some((is_sat, word.to_owned()));
                Ok(())
            }
        }
    }

    fn said(self, values: Vec<i64>) -> ProgramAnswer {
        match self {
            Status(Some((true, _)), _) => ProgramAnswer::Sat(values),
            Status(Some((false, _)), _) => ProgramAnswer::Unsat,
            Status(None, Some(word)) => ProgramAnswer::Unknown(word),
            Status(None, None) => ProgramAnswer::Nothing,
        }
    }
}

/// Reads `s SATISFIABLE` and `v 1 -2 0`; or `SAT` and `1 -2 0`, as `MiniSat` writes them to a file.
pub(super) fn said_by_sat_solver(text: &str, n_variables: usize) -> Result<ProgramAnswer, String> {
    let mut status = Status::default();
    let mut values = vec![0; n_variables];
    for line in text.lines() {
        let line = line.trim();
        match line.strip_prefix("s ").map_or(line, str::trim) {
            word @ ("SATISFIABLE" | "SAT") => status.tell(true, word)?,
            word @ ("UNSATISFIABLE" | "UNSAT") => status.tell(false, word)?,
            word @ ("UNKNOWN" | "INDETERMINATE" | "INDET" | "TIMEOUT") => {
                status.1 = Some(word.to_owned());
            }
            _ => {
                let listed = line.strip_prefix("v ").unwrap_or(line);
                let literals: Result<Vec<i64>, _> =
                    listed.split_whitespace().map(str::parse).collect();
                // Other lines are comments.
                for literal in literals.unwrap_or_default() {
                    assign(&mut values, literal)?;
                }
            }
        }
    }
    Ok(status.said(values))
}

fn assign(values: &mut [i64], literal: i64) -> Result<(), String> {
    if literal == 0 {
        return Ok(());
    }
    let n_variables = values.len();
    let at = usize::try_from(literal.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let Some(value) = values.get_mut(at) else {
        return Err(format!(
            "it gave variable {at} a value, and there are {n_variables}",
            at = literal.unsigned_abs()
        ));
    };
    if *value == -literal.signum() {
        return Err(format!("it gave variable {} both values", at + 1));
    }
    *value = literal.signum();
    Ok(())
}

/// Reads `sat`, and `((n0 5) (n1 (- 3)))`.
pub(super) fn said_by_smt_solver(text: &str, n_nodes: usize) -> Result<ProgramAnswer, String> {
    let mut status = Status::default();
    let mut values: Vec<Option<i64>> = vec![None; n_nodes];
    let mut words = Vec::new();
    for line in text.lines() {
        match line.trim() {
            "sat" => status.tell(true, "sat")?,
            "unsat" => status.tell(false, "unsat")?,
            word @ ("unknown" | "timeout") => status.1 = Some(word.to_owned()),
            other if other.starts_with("(error") => {}
            other => words.extend(
                other
                    .split(['(', ')', ' ', '\t'])
                    .filter(|it| !it.is_empty()),
            ),
        }
    }
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let Some(node) = word
            .strip_prefix('n')
            .and_then(|it| it.parse::<usize>().ok())
        else {
            continue;
        };
        let sign = if words.next_if_eq(&"-").is_some() {
            -1
        } else {
            1
        };
        let value = words.next().and_then(|it| it.parse::<i64>().ok());
        match (
            values.get_mut(node),
            value.and_then(|it| it.checked_mul(sign)),
        ) {
            (Some(place), Some(value)) => *place = Some(value),
            _ => return Err(format!("it gave {word} no number, or there is no {word}")),
        }
    }
    if let Status(Some((true, _)), _) = status
        && let Some(node) = values.iter().position(Option::is_none)
    {
        return Err(format!("it gave n{node} no value"));
    }
    Ok(status.said(values.into_iter().map(Option::unwrap_or_default).collect()))
}

/// Reads the program's statistics, if it writes them as `conflicts : 12`, `c conflicts: 12`, `c 12 conflicts` or `:conflicts 12`.
pub(super) fn count(text: &str, stats: &mut DecideStats) {
    for line in text.lines().filter(|line| line.len() < 200) {
        let mut words = line
            .split([' ', '\t', ':', '('])
            .filter(|it| !it.is_empty() && *it != "c");
        let (Some(one), Some(other)) = (words.next(), words.next()) else {
            continue;
        };
        for (name, number) in [(one, other), (other, one)] {
            let Ok(number) = number.parse() else {
                continue;
            };
            match name {
                "conflicts" => stats.conflicts = number,
                "decisions" => stats.decisions = number,
                "propagations" => stats.propagations = number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_solver_is_understood() {
        let sat = |values: &[i64]| Ok(ProgramAnswer::Sat(values.to_vec()));
        for (text, said) in [
            ("c remark\ns SATISFIABLE\nv 1 -2\nv 3 0\n", sat(&[1, -1, 1])),
            ("v 1 -2 0\ns SATISFIABLE\n", sat(&[1, -1, 0])),
            ("SAT\n1 -2 3 0\n", sat(&[1, -1, 1])),
            ("conflicts : 12\nUNSATISFIABLE\n", Ok(ProgramAnswer::Unsat)),
            (
                "s UNKNOWN\n",
                Ok(ProgramAnswer::Unknown("UNKNOWN".to_owned())),
            ),
            ("is it SATISFIABLE?\n", Ok(ProgramAnswer::Nothing)),
        ] {
            assert_eq!(said_by_sat_solver(text, 3), said, "{text}");
        }
        let text = "sat\n((n0 5)\n (n1 (- 3)) (n2 -1))\n";
        assert_eq!(said_by_smt_solver(text, 3), sat(&[5, -3, -1]));
        let text = "unsat\n(error \"model is not available\")\n";
        assert_eq!(said_by_smt_solver(text, 3), Ok(ProgramAnswer::Unsat));
    }

    #[test]
    fn what_contradicts_itself_is_no_answer() {
        for text in [
            "SAT\n1 -1 0\n",
            "SAT\n4 0\n",
            "SAT\nUNSAT\n",
            "SAT\n-9223372036854775808 0",
        ] {
            assert!(said_by_sat_solver(text, 3).is_err(), "{text}");
        }
        for text in [
            "sat\n((n0 5))\n",
            "sat\n((n0 x)(n1 1))",
            "sat\n((n7 1))",
            "sat\nunsat\n",
        ] {
            assert!(said_by_smt_solver(text, 2).is_err(), "{text}");
        }
    }

    #[test]
    fn conflicts_are_counted_as_each_solver_writes_them() {
        for text in [
            "c conflicts:   12  3 per second",
            "conflicts     : 12   (5 /sec)",
            "c 12 conflicts",
            " :conflicts   12",
        ] {
            let mut stats = DecideStats::default();
            count(text, &mut stats);
            assert_eq!(stats.conflicts, 12, "{text}");
        }
    }
}
