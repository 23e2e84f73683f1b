//! The Python module `kingsnake`: `check`, `verify`, `History` and `Verdict`, on top of the Rust library.

use std::path::PathBuf;
use std::time::Duration;

use kingsnake::{Checker, HistoryBuilder, Level, Status, Token};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// What clients saw: sessions of transactions.
#[pyclass(name = "History")]
#[derive(Default)]
struct PyHistory {
    initial: Option<Name>,
    txns: Vec<Txn>,
}

/// A key, a value or a name, as Python has it.
#[derive(Clone, FromPyObject)]
enum Name {
    Number(i64),
    Text(String),
}

#[derive(Clone)]
struct Txn {
    session: Name,
    ops: Vec<(String, Name, Option<Name>)>,
    status: Status,
    times: (Option<i64>, Option<i64>),
}

fn token(builder: &mut HistoryBuilder, name: &Name) -> Token {
    match name {
        Name::Number(number) => (*number).into(),
        Name::Text(text) => builder.text(text),
    }
}

fn value(builder: &mut HistoryBuilder, name: Option<&Name>) -> Token {
    name.map_or(Token::Nil, |name| token(builder, name))
}

#[pymethods]
impl PyHistory {
    /// An empty history. `initial` is the value of every key before the first transaction.
    #[new]
    #[pyo3(signature = (initial = None))]
    fn new(initial: Option<Name>) -> Self {
        PyHistory {
            initial,
            txns: Vec::new(),
        }
    }

    /// Adds a transaction: `ops` are `("r", key, value)` and `("w", key, value)`, in order; `None` is no value.
    #[pyo3(signature = (session, ops, status = "committed", begin = None, commit = None))]
    fn add(
        &mut self,
        session: Name,
        ops: Vec<(String, Name, Option<Name>)>,
        status: &str,
        begin: Option<i64>,
        commit: Option<i64>,
    ) -> PyResult<()> {
        if let Some(op) = ops.iter().find(|op| !["r", "w"].contains(&op.0.as_str())) {
            let words = format!(
                "an operation is ('r', key, value) or ('w', key, value), not {:?}",
                op.0
            );
            return Err(PyValueError::new_err(words));
        }
        let status = match status {
            "committed" => Status::Committed,
            "aborted" => Status::Aborted,
            "unknown" => Status::Unknown,
            other => {
                let words = format!("a status is committed, aborted or unknown, not {other:?}");
                return Err(PyValueError::new_err(words));
            }
        };
        self.txns.push(Txn {
            session,
            ops,
            status,
            times: (begin, commit),
        });
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.txns.len()
    }
}

impl PyHistory {
    fn build(&self) -> Result<kingsnake::History, kingsnake::BuildError> {
        let mut builder = HistoryBuilder::new();
        for (number, txn) in self.txns.iter().enumerate() {
            let name = token(&mut builder, &txn.session);
            let session = builder.session(name);
            builder.begin(session, (number as i64 + 1).into(), txn.status)?;
            if txn.times != (None, None) {
                builder.times(txn.times.0, txn.times.1);
            }
            for (kind, key, of) in &txn.ops {
                let key = token(&mut builder, key);
                if let Some(initial) = &self.initial {
                    let initial = token(&mut builder, initial);
                    builder.initial(key, initial);
                }
                let of = value(&mut builder, of.as_ref());
                if kind == "r" {
                    builder.read(key, of);
                } else {
                    builder.write(key, of);
                }
            }
        }
        builder.finish()
    }
}

/// The answer to a check.
#[pyclass(name = "Verdict", frozen)]
struct PyVerdict {
    /// `satisfied`, `violated` or `unknown`.
    #[pyo3(get)]
    verdict: &'static str,
    /// True, False, or None where it is not known.
    #[pyo3(get)]
    holds: Option<bool>,
    /// The anomaly's name, of a violated level.
    #[pyo3(get)]
    anomaly: Option<String>,
    /// What happened, in plain words, of a violated level.
    #[pyo3(get)]
    story: Option<String>,
    /// The certificate or the counterexample as text, for `verify`; None where there is none.
    #[pyo3(get)]
    evidence: Option<String>,
    words: String,
}

#[pymethods]
impl PyVerdict {
    fn __str__(&self) -> &str {
        &self.words
    }

    fn __repr__(&self) -> String {
        format!("<kingsnake.Verdict {}>", self.words)
    }

    fn __bool__(&self) -> bool {
        self.holds == Some(true)
    }
}

fn wrong(error: &dyn std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A history that was made, or that of a path.
fn read_history(history: &Bound<'_, PyAny>) -> PyResult<kingsnake::History> {
    if let Ok(made) = history.extract::<PyRef<'_, PyHistory>>() {
        return made.build().map_err(|error| wrong(&error));
    }
    let Ok(path) = history.extract::<PathBuf>() else {
        let words = "a history is a path or a kingsnake.History";
        return Err(PyTypeError::new_err(words));
    };
    if !path.exists() {
        let words = format!("there is no {}", path.display());
        return Err(PyOSError::new_err(words));
    }
    kingsnake::open(path).map_err(|error| wrong(&error))
}

/// Checks a certificate or a counterexample against a history again, independently of the solver; raises ValueError where the text is
/// neither.
#[pyfunction]
fn verify(python: Python<'_>, history: &Bound<'_, PyAny>, evidence: &str) -> PyResult<bool> {
    let history = read_history(history)?;
    let claim = kingsnake::read(&history, evidence.as_bytes()).map_err(|error| wrong(&error))?;
    Ok(python.detach(|| kingsnake::verify(&history, &claim).is_ok()))
}

/// Checks a history, or the file or directory of that path, at a level; raises ValueError where it makes no sense.
#[pyfunction]
#[pyo3(signature = (history, level = "ser", session_order = None, timeout = None))]
fn check(
    python: Python<'_>,
    history: &Bound<'_, PyAny>,
    level: &str,
    session_order: Option<bool>,
    timeout: Option<f64>,
) -> PyResult<PyVerdict> {
    let level: Level = level.parse().map_err(|error| wrong(&error))?;
    let history = read_history(history)?;
    let limit = timeout.map(Duration::try_from_secs_f64).transpose();
    let limit = limit.map_err(|error| wrong(&error))?;
    let answer = python.detach(|| {
        let mut checker = Checker::new().level(level);
        if let Some(on) = session_order {
            checker = checker.session_order(on);
        }
        if let Some(limit) = limit {
            checker = checker.timeout(limit);
        }
        told(&mut checker, &history)
    });
    answer.map_err(|error| wrong(&error))
}

fn told(checker: &mut Checker, history: &kingsnake::History) -> Result<PyVerdict, String> {
    let promise = checker.promise().map_err(|error| error.to_string())?;
    let verdict = checker.check(history).map_err(|error| error.to_string())?;
    Ok(PyVerdict {
        verdict: match verdict.holds() {
            Some(true) => "satisfied",
            Some(false) => "violated",
            None => "unknown",
        },
        holds: verdict.holds(),
        anomaly: match &verdict {
            kingsnake::Verdict::Violated(violation) => Some(violation.anomaly()),
            _ => None,
        },
        story: verdict.story(),
        evidence: match &verdict {
            kingsnake::Verdict::Satisfied(order) => {
                Some(kingsnake::certificate(history, &promise, order))
            }
            kingsnake::Verdict::Violated(violation) => Some(violation.evidence()),
            kingsnake::Verdict::Unknown(_) => None,
        },
        words: verdict.to_string(),
    })
}

/// Checks whether a database kept its isolation guarantees.
#[pymodule(name = "kingsnake")]
fn define(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<PyHistory>()?;
    module.add_class::<PyVerdict>()?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)
}
