//! The native part of the Python package `kingsnake`: checks, evidence, anomalies and pages, on top of the Rust library.
//!
//! Work runs in a thread of its own without the interpreter's lock; the caller's thread waits, hands on progress and stops the work at
//! Ctrl-C.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kingsnake::{
    CheckReport, Checker, Definition, Error, History, Place, Progress, ProgressEvent, ReadError,
    Verdict,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    kingsnake,
    HistoryError,
    PyValueError,
    "A history that cannot be read. `file`, `line` and `column` say where; each is None if it is not known."
);

/// Between two looks for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

/// The answer to a check. It is true if the level holds.
#[pyclass(name = "Verdict", frozen)]
struct PyVerdict(CheckReport<'static>);

#[pymethods]
impl PyVerdict {
    /// `satisfied`, `violated` or `unknown`.
    #[getter]
    fn verdict(&self) -> &'static str {
        word(self.0.verdict().holds())
    }

    /// True, False, or None if the answer is unknown.
    #[getter]
    fn holds(&self) -> Option<bool> {
        self.0.verdict().holds()
    }

    /// The anomaly's name, if the level is violated.
    #[getter]
    fn anomaly(&self) -> Option<String> {
        anomaly(&self.0.verdict())
    }

    /// What happened, in plain words, if the level is violated.
    #[getter]
    fn story(&self) -> Option<String> {
        self.0.verdict().story()
    }

    /// The certificate or the counterexample as text, for `verify`; None if the answer is unknown.
    #[getter]
    fn evidence(&self) -> Option<String> {
        self.0.evidence()
    }

    /// What in the log may have been taken for this answer by mistake.
    #[getter]
    fn hints(&self) -> Vec<String> {
        self.0.hints().to_vec()
    }

    /// The report as one HTML page.
    fn page(&self) -> String {
        self.0.page()
    }

    /// The counterexample as an SVG picture, if the level is violated.
    fn svg(&self) -> Option<String> {
        self.0.svg()
    }

    /// The JSON document of `kingsnake check --json`.
    fn json(&self) -> String {
        self.0.json()
    }

    fn _repr_html_(&self) -> String {
        self.0.card()
    }

    fn __str__(&self) -> String {
        self.0.verdict().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<kingsnake.Verdict {}>", self.0.verdict())
    }

    fn __bool__(&self) -> bool {
        self.holds() == Some(true)
    }
}

/// One level of `auto`.
#[pyclass(name = "LevelAnswer", frozen, get_all)]
struct PyLevelAnswer {
    /// How to ask for this level alone: `si`, or `si --session-order off`.
    label: &'static str,
    /// `satisfied`, `violated`, `unknown`, or `no times` if the level needs times and the history has none.
    verdict: &'static str,
    /// True, False, or None.
    holds: Option<bool>,
    /// The anomaly's name, if the level is violated.
    anomaly: Option<String>,
    /// Whether the level holds and no stronger one does.
    is_strongest: bool,
}

#[pymethods]
impl PyLevelAnswer {
    fn __repr__(&self) -> String {
        format!("<kingsnake.LevelAnswer {}: {}>", self.label, self.verdict)
    }
}

/// A class of anomaly.
#[pyclass(name = "Anomaly", frozen, get_all)]
struct PyAnomaly {
    /// Its name, as docs/levels.md lists them.
    name: String,
    /// How many were found.
    count: usize,
    /// What happened in one of them, in plain words.
    story: String,
}

#[pymethods]
impl PyAnomaly {
    fn __repr__(&self) -> String {
        format!("<kingsnake.Anomaly {} × {}>", self.name, self.count)
    }
}

fn word(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "satisfied",
        Some(false) => "violated",
        None => "unknown",
    }
}

fn anomaly(verdict: &Verdict<'_>) -> Option<String> {
    match verdict {
        Verdict::Violated(violation) => Some(violation.anomaly()),
        _ => None,
    }
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An error with its place as attributes.
fn unread(python: Python<'_>, error: &ReadError) -> PyErr {
    let raised = HistoryError::new_err(error.to_string());
    let line = match error.place() {
        Place::Line(line) => Some(line),
        _ => None,
    };
    let value = raised.value(python);
    let file = error.file().display().to_string();
    let set = value
        .setattr("file", file)
        .and_then(|()| value.setattr("line", line))
        .and_then(|()| value.setattr("column", error.column()));
    set.map_or_else(|error| error, |()| raised.clone_ref(python))
}

/// What is read: a file, or the text of a history that was made.
enum Input {
    Path(PathBuf),
    Text(Vec<u8>),
}

impl Input {
    fn of(history: &Bound<'_, PyAny>) -> PyResult<Input> {
        if let Ok(text) = history.getattr("_text") {
            return Ok(Input::Text(text.call0()?.extract::<String>()?.into_bytes()));
        }
        let Ok(path) = history.extract::<PathBuf>() else {
            let words = "a history is a path or a kingsnake.History";
            return Err(PyTypeError::new_err(words));
        };
        if !path.exists() {
            let words = format!("there is no {}", path.display());
            return Err(PyOSError::new_err(words));
        }
        Ok(Input::Path(path))
    }

    fn read(&self) -> Result<History, ReadError> {
        match self {
            Input::Path(path) => kingsnake::open(path),
            Input::Text(text) => kingsnake::parse(text),
        }
    }
}

/// Sends progress to the thread that waits.
struct Teller(Sender<Told>);

enum Told {
    Event(ProgressEvent),
    End,
}

impl Progress for Teller {
    fn event(&mut self, event: ProgressEvent) {
        // Where nothing waits any more, the message is not needed.
        let _ = self.0.send(Told::Event(event));
    }
}

/// Reads a history and works on it in a thread of its own.
fn work<T: Send>(
    python: Python<'_>,
    history: &Bound<'_, PyAny>,
    limit: Option<Duration>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Checker, &Input) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let input = Input::of(history)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, events) = mpsc::channel();
    let events = Mutex::new(events);
    let (done, raised) = std::thread::scope(|scope| {
        let flag = Arc::clone(&stop);
        let worker = scope.spawn(move || {
            let ended = sender.clone();
            let checker = Checker::new().interrupt(flag).progress(Teller(sender));
            let checker = match limit {
                Some(limit) => checker.timeout(limit),
                None => checker,
            };
            let answer = work(checker, &input);
            let _ = ended.send(Told::End);
            answer
        });
        let mut raised = Ok(());
        loop {
            let told = python.detach(|| {
                let events = events.lock().unwrap_or_else(PoisonError::into_inner);
                events.recv_timeout(PATIENCE)
            });
            let heard = match told {
                Ok(Told::Event(event)) => match progress {
                    Some(progress) if raised.is_ok() => progress.call1((words(&event),)).map(drop),
                    _ => Ok(()),
                },
                Ok(Told::End) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => Ok(()),
            };
            raised = raised.and(heard).and_then(|()| python.check_signals());
            if raised.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        (python.detach(|| worker.join()), raised)
    });
    raised?;
    match done {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Error::Read(error))) => Err(unread(python, &error)),
        Ok(Err(error)) => Err(wrong(error)),
        Err(_) => Err(wrong("internal error: the thread that works has ended")),
    }
}

/// An event in words.
fn words(event: &ProgressEvent) -> String {
    match event {
        ProgressEvent::Asking(level) => (*level).to_owned(),
        ProgressEvent::Answered { level, verdict } => format!("{level}: {verdict}"),
        ProgressEvent::Phase(phase) => phase.name().to_owned(),
        ProgressEvent::Round { round, open, .. } => {
            format!("prune: round {round}, {open} open constraints")
        }
        ProgressEvent::Deciding {
            settled, variables, ..
        } => format!("decide: {settled} of {variables} variables settled"),
        _ => String::new(),
    }
}

fn limit(timeout: Option<f64>) -> PyResult<Option<Duration>> {
    let limit = timeout.map(Duration::try_from_secs_f64).transpose();
    limit.map_err(wrong)
}

/// Checks a history, or the file or directory of that path, at a level.
#[pyfunction]
#[pyo3(signature = (history, level = "ser", session_order = None, timeout = None, progress = None))]
fn check(
    python: Python<'_>,
    history: &Bound<'_, PyAny>,
    level: &str,
    session_order: Option<bool>,
    timeout: Option<f64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyVerdict> {
    Checker::new().level_named(level).map_err(wrong)?;
    if Definition::named(level).is_some() && session_order.is_some() {
        return Err(wrong("the level of a paper says itself which orders count"));
    }
    let limit = limit(timeout)?;
    let report = work(python, history, limit, progress, |checker, input| {
        let mut checker = checker.level_named(level).expect("it was looked up");
        if let Some(on) = session_order {
            checker = checker.session_order(on);
        }
        match input {
            Input::Path(path) => checker.report_file(path),
            Input::Text(text) => checker.own_report(kingsnake::parse(text)?),
        }
    });
    report.map(PyVerdict)
}

/// Asks for every level; the strongest levels that hold have `is_strongest`.
#[pyfunction]
#[pyo3(signature = (history, session_order = None, timeout = None, progress = None))]
fn auto(
    python: Python<'_>,
    history: &Bound<'_, PyAny>,
    session_order: Option<bool>,
    timeout: Option<f64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<PyLevelAnswer>> {
    let limit = limit(timeout)?;
    work(python, history, limit, progress, |checker, input| {
        let history = input.read()?;
        let mut checker = match session_order {
            Some(on) => checker.session_order(on),
            None => checker,
        };
        let answers = checker.auto(&history)?.into_iter().map(|it| {
            let verdict = it.verdict.as_ref();
            PyLevelAnswer {
                label: it.label,
                verdict: verdict.map_or("no times", |it| word(it.holds())),
                holds: verdict.and_then(Verdict::holds),
                anomaly: verdict.and_then(anomaly),
                is_strongest: it.is_strongest,
            }
        });
        Ok(answers.collect())
    })
}

/// Every class of anomaly that a history shows, the worst first.
#[pyfunction]
#[pyo3(signature = (history, timeout = None))]
fn anomalies(
    python: Python<'_>,
    history: &Bound<'_, PyAny>,
    timeout: Option<f64>,
) -> PyResult<Vec<PyAnomaly>> {
    let limit = limit(timeout)?;
    work(python, history, limit, None, |checker, input| {
        let history = input.read()?;
        let found = checker.anomalies(&history)?;
        let classes = found.classes().map(|(class, story)| PyAnomaly {
            name: class.name.to_owned(),
            count: class.count,
            story: story.to_text(),
        });
        Ok(classes.collect())
    })
}

/// What looks like a mistake of the log rather than of the database.
#[pyfunction]
fn lint(python: Python<'_>, history: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let remarks = match Input::of(history)? {
        Input::Path(path) => python.detach(|| kingsnake::lint(path)),
        Input::Text(text) => kingsnake::parse(&text).map(|it| kingsnake::lint_history(&it)),
    };
    remarks.map_err(|error| unread(python, &error))
}

/// Checks a certificate or a counterexample against a history again, independently of the solver; raises ValueError where the text is
/// neither.
#[pyfunction]
fn verify(python: Python<'_>, history: &Bound<'_, PyAny>, evidence: &str) -> PyResult<bool> {
    let input = Input::of(history)?;
    let history = python.detach(|| input.read());
    let history = history.map_err(|error| unread(python, &error))?;
    let claim = kingsnake::read(&history, evidence.as_bytes()).map_err(wrong)?;
    Ok(python.detach(|| kingsnake::verify(&history, &claim).is_ok()))
}

/// Checks whether a database kept its isolation guarantees.
#[pymodule(name = "_kingsnake")]
fn define(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("HistoryError", module.py().get_type::<HistoryError>())?;
    module.add_class::<PyVerdict>()?;
    module.add_class::<PyLevelAnswer>()?;
    module.add_class::<PyAnomaly>()?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(auto, module)?)?;
    module.add_function(wrap_pyfunction!(anomalies, module)?)?;
    module.add_function(wrap_pyfunction!(lint, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)
}
