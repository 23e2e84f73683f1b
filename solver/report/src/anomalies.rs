//! `--all`: every class of anomaly that a history shows, what they rule out, and whether that was expected.

use std::fmt::Write;

use kingsnake_history::adya::PlLevel;
use kingsnake_refute::{every_cycle, widest_spec};
use kingsnake_solver::auto::{Asked, levels};
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::certify::Meaning;
use kingsnake_solver::lattice::{self, Boundary, Names};
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::{History, Op};
use kingsnake_solver::resolve::{ResolveError, resolve_certain};
use kingsnake_solver::verdict::Counterexample;
use kingsnake_tell::{Anomalies, AnomalyClass, Collector, Story, name_by, story_by};
use kingsnake_text::{Paint, count, printable};
use serde_json::{Map, Value, json};
use thiserror::Error;

/// The anomalies found, and what they imply.
#[derive(Clone, Debug)]
pub struct FoundAnomalies {
    /// The anomalies.
    pub anomalies: Anomalies,
    /// The models that are ruled out.
    pub boundary: Boundary,
    /// The story of each class's example.
    pub stories: Vec<Story>,
    /// The name of the violated level's counterexample, also where no class contains it.
    pub named: Option<&'static str>,
    /// The levels that were asked for and are violated.
    pub violated: Vec<Level>,
}

/// Finds every class of anomaly. The caller has resolved the history once.
pub fn find(
    meaning: &Meaning<'_>,
    budget: &Budget,
) -> Result<Result<FoundAnomalies, StopReason>, ResolveError> {
    let history = meaning.history();
    let resolved = match resolve_certain(history, budget) {
        Ok(resolved) => resolved,
        Err(ResolveError::Stopped(reason)) => return Ok(Err(reason)),
        Err(error) => return Err(error),
    };
    let mut collector = Collector::new(meaning);
    collector.add_findings(resolved.findings());
    let cycles = every_cycle(history, &resolved, budget, &mut |pattern, steps| {
        collector.add_cycle(pattern, steps);
    });
    Ok(cycles.map(|is_complete| {
        let anomalies = collector.finish(is_complete);
        let spec = widest_spec(history);
        let examples = anomalies.classes.iter();
        let stories = examples.map(|class| story_by(meaning, spec, &class.example));
        FoundAnomalies {
            boundary: anomalies.boundary(),
            named: None,
            violated: Vec::new(),
            stories: stories.collect(),
            anomalies,
        }
    }))
}

/// A name that no table has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{option} {name}: there is no such {kind}; docs/levels.md lists them")]
pub struct UnknownName {
    option: &'static str,
    name: String,
    kind: &'static str,
}

/// What the user expects: models that must hold, and anomalies that must be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    models: Names,
    anomalies: Names,
    /// The levels among the names that demand more than the model of the same name.
    levels: Vec<Level>,
}

impl Expected {
    /// Parses both lists; any name of the table is accepted.
    pub fn parse(models: &[String], anomalies: &[String]) -> Result<Self, UnknownName> {
        let unknown = |option, name: &String, kind| UnknownName {
            option,
            name: name.clone(),
            kind,
        };
        let mut expected = Expected::default();
        for name in models {
            match lattice::model(name) {
                Some(model) => expected.models.insert(model.name),
                None => return Err(unknown("--expect", name, "model")),
            };
            let is_level = |it: &Asked| it.level.name().eq_ignore_ascii_case(name);
            let asked = levels(None).into_iter().filter(is_level);
            let stronger = asked.filter(|it| !rules_out(*it)).map(|it| it.level);
            expected.levels.extend(stronger);
        }
        for name in anomalies {
            match lattice::anomaly(name) {
                Some(anomaly) => expected.anomalies.insert(anomaly.name),
                None => return Err(unknown("--anomalies", name, "anomaly")),
            };
        }
        Ok(expected)
    }

    /// Whether neither list was given.
    pub fn is_empty(&self) -> bool {
        self.models.is_empty() && self.anomalies.is_empty()
    }

    /// The levels whose answers say which of the expected models are ruled out.
    pub fn levels(&self) -> Vec<Asked> {
        let implied = self
            .models
            .iter()
            .copied()
            .flat_map(lattice::implied_models);
        let models: Names = implied.collect();
        let is_wanted = |it: &Asked| model_of(it.level).is_some_and(|model| models.contains(model));
        let mut asked = levels(None);
        asked.retain(|it| self.levels.contains(&it.level) || is_wanted(it) && rules_out(*it));
        asked
    }

    /// Expectations that do not hold, one per line.
    pub fn missed(&self, found: &FoundAnomalies, violated: &Names) -> Vec<String> {
        let mut missed = Vec::new();
        for &model in &self.models {
            let boundary = &found.boundary;
            let is_out = [&boundary.not, &boundary.also_not, violated]
                .iter()
                .any(|names| names.contains(model));
            if is_out {
                missed.push(format!("{model} was expected, and is ruled out"));
            }
        }
        let violated = self.levels.iter().filter(|it| found.violated.contains(it));
        missed.extend(violated.map(|it| format!("{} was expected, and is violated", it.name())));
        // Prohibiting an anomaly prohibits all worse ones.
        for &name in &self.anomalies {
            let shown = found.anomalies.names().chain(found.named);
            let mut worse =
                shown.filter(|shown| lattice::implied_anomalies([*shown]).contains(name));
            if let Some(shown) = worse.next() {
                missed.push(format!("{name} was not expected, and {shown} was found"));
            }
        }
        missed
    }
}

impl FoundAnomalies {
    /// The classes, worst first, each with the story of its example.
    pub fn classes(&self) -> impl Iterator<Item = (&AnomalyClass, &Story)> {
        self.anomalies.classes.iter().zip(&self.stories)
    }

    /// Names the counterexample of a violated level.
    pub fn name(&mut self, meaning: &Meaning<'_>, spec: Spec, counterexample: &Counterexample) {
        let adya = name_by(meaning, spec, counterexample).adya;
        self.named = adya.and_then(lattice::anomaly).map(|it| it.name);
    }

    /// Adds models that a violated level rules out, whatever the anomalies show.
    pub fn rule_out(&mut self, models: &Names) {
        if !models.is_empty() {
            let known = self.boundary.not.iter().chain(&self.boundary.also_not);
            self.boundary = lattice::ruled_out(known.chain(models).copied());
        }
    }

    /// The classes in words, and what they rule out; `is_violated` says whether a level is violated.
    pub fn words(&self, paint: Paint, is_violated: bool) -> String {
        let mut out = String::new();
        if self.anomalies.classes.is_empty() && is_violated {
            let _ = writeln!(
                out,
                "anomalies: none by itself; which one it is depends on an order of versions that the history does not show"
            );
        } else if self.anomalies.classes.is_empty() {
            let _ = writeln!(out, "anomalies: none");
        } else {
            let _ = writeln!(out, "anomalies, the worst first:\n");
        }
        for (class, told) in self.classes() {
            let called: Vec<String> = class
                .patterns
                .iter()
                .map(|(name, n)| match n {
                    1 => (*name).to_owned(),
                    n => format!("{name} × {n}"),
                })
                .collect();
            let name = paint.bad(&format!("{:<24}", class.name));
            let _ = writeln!(out, "  {name} {:>6}  {}", class.count, called.join(", "));
            for line in &told.lines {
                let indent = "  ".repeat(line.depth);
                let _ = writeln!(out, "      {indent}{}", printable(&line.text));
            }
        }
        if !self.anomalies.is_complete {
            out.push_str("\nthere may be more: the search stopped at its limit\n");
        }
        if !self.boundary.not.is_empty() {
            let list = |names: &Names| names.iter().copied().collect::<Vec<_>>().join(", ");
            let _ = writeln!(out, "\nruled out: {}", list(&self.boundary.not));
            let stronger = self.boundary.also_not.len();
            if stronger > 0 {
                let _ = writeln!(
                    out,
                    "and {} that imply them: {}",
                    count(stronger, "model"),
                    list(&self.boundary.also_not)
                );
            }
        }
        out
    }

    /// The fields of the JSON document.
    pub fn view(&self, history: &History) -> Map<String, Value> {
        let classes: Vec<Value> = self
            .classes()
            .map(|(class, told)| {
                let lines: Vec<&str> = told.lines.iter().map(|it| it.text.as_str()).collect();
                let txns: Vec<String> =
                    told.txns.iter().map(|&txn| history.txn_name(txn)).collect();
                json!({
                    "type": class.name,
                    "count": class.count,
                    "names": class.patterns,
                    "example": {
                        "name": told.name.short,
                        "adya": told.name.adya,
                        "transactions": txns,
                        "lines": lines,
                        "counterexample": kingsnake_evidence::counterexample_view(history, &class.example),
                    },
                })
            })
            .collect();
        let fields = [
            ("anomalies_complete", json!(self.anomalies.is_complete)),
            (
                "anomaly_types",
                json!(self.anomalies.names().collect::<Vec<_>>()),
            ),
            ("anomalies", json!(classes)),
            ("not", json!(self.boundary.not)),
            ("also_not", json!(self.boundary.also_not)),
        ];
        let named = fields.map(|(name, value)| (name.to_owned(), value));
        named.into_iter().collect()
    }
}

/// The models that hold by Adya's definitions, if the history gives the order of every key's versions or its lists
/// reveal it; empty otherwise, or if the budget ends.
pub fn shown(history: &History, budget: &Budget) -> Names {
    let has_appends = || {
        let mut ops = history.txns().flat_map(|txn| history.ops(txn));
        ops.any(|op| matches!(op, Op::Append { .. }))
    };
    if history.version_orders().is_empty() && !has_appends() {
        return Names::new();
    }
    let levels = [PlLevel::Pl1, PlLevel::Pl2, PlLevel::Pl2Plus, PlLevel::Pl299];
    let mut names = Names::new();
    for level in levels {
        let Ok((verdict, _)) = kingsnake_adya::check(history, level, budget) else {
            break;
        };
        let model = lattice::model(&level.name().to_uppercase());
        if let (Some(true), Some(model)) = (verdict.holds(), model) {
            names.extend(lattice::implied_models(model.name));
        }
    }
    names
}

/// The lattice's model for a level, if it has one.
fn model_of(level: Level) -> Option<&'static str> {
    lattice::model(level.name()).map(|model| model.name)
}

/// Whether a history that breaks a level breaks the lattice's model of that name. False if the level demands more: `rc`
/// is stronger than Adya's read committed, and some levels are asked with session or real-time order without having
/// them in their name.
fn rules_out(asked: Asked) -> bool {
    let has_sessions = matches!(
        asked.level,
        Level::StrictSer | Level::StrongSessionSer | Level::StrongSi | Level::StrongSessionSi
    );
    let is_plain = !asked.spec.session_order && asked.spec.real_time.is_none();
    asked.level != Level::Rc && (has_sessions || is_plain)
}

/// The models broken by a history that breaks a level.
pub fn broken_by(asked: Asked) -> Names {
    let is_timeless = asked.spec.session_order && asked.spec.real_time.is_none();
    let level = match asked.level {
        level if rules_out(asked) => Some(level),
        Level::Ser if is_timeless => Some(Level::StrongSessionSer),
        Level::Si if is_timeless => Some(Level::StrongSessionSi),
        _ => None,
    };
    match level.and_then(model_of) {
        Some(model) => lattice::implying_models([model]),
        None => Names::new(),
    }
}

/// The models that hold if a level holds.
pub fn implied_by(level: Level) -> Names {
    model_of(level).map_or(Names::new(), lattice::implied_models)
}

/// The state of every model: holds, ruled out, or unknown.
#[derive(Clone, Debug, Default)]
pub struct KnownModels {
    /// A stronger level was satisfied.
    pub hold: Names,
    /// An anomaly, or a violated weaker level, rules it out.
    pub ruled_out: Names,
    /// Neither.
    pub undecided: Names,
}

impl KnownModels {
    /// From the decided levels and the anomalies found.
    /// `shown` hold by the version order that the history gives or its lists reveal.
    pub fn new(
        decided: impl Iterator<Item = (Asked, bool)>,
        found: Option<&FoundAnomalies>,
        shown: &Names,
    ) -> Self {
        let mut models = KnownModels::default();
        for (asked, holds) in decided {
            match (model_of(asked.level), holds) {
                (Some(name), true) => models.hold.extend(lattice::implied_models(name)),
                (_, false) => models.ruled_out.extend(broken_by(asked)),
                (None, true) => {}
            }
        }
        if let Some(found) = found {
            models.ruled_out.extend(&found.boundary.not);
            models.ruled_out.extend(&found.boundary.also_not);
        }
        let shown = shown.iter().filter(|it| !models.ruled_out.contains(*it));
        models.hold.extend(shown);
        let all = lattice::MODELS.iter().map(|model| model.name);
        let is_open = |name: &&str| !models.hold.contains(name) && !models.ruled_out.contains(name);
        models.undecided = all.filter(is_open).collect();
        models
    }

    /// The strongest that hold: no other that holds implies them.
    pub fn strongest(&self) -> Names {
        let is_implied = |name: &&'static str| {
            let others = lattice::implying_models([*name]);
            others.iter().any(|it| it != name && self.hold.contains(it))
        };
        self.hold
            .iter()
            .copied()
            .filter(|it| !is_implied(it))
            .collect()
    }

    /// The weakest that are ruled out.
    pub fn weakest_out(&self) -> Names {
        lattice::ruled_out(self.ruled_out.iter().copied()).not
    }

    /// In words.
    pub fn words(&self) -> String {
        let list = |names: &Names| match names.len() {
            0 => "none".to_owned(),
            _ => names.iter().copied().collect::<Vec<_>>().join(", "),
        };
        format!(
            "strongest models that hold: {}\nweakest models ruled out: {}\nnot decided here: {}\n",
            list(&self.strongest()),
            list(&self.weakest_out()),
            list(&self.undecided)
        )
    }

    /// One row per model.
    pub fn view(&self) -> Value {
        let row = |model: &lattice::ConsistencyModel| {
            let verdict = if self.hold.contains(model.name) {
                "holds"
            } else if self.ruled_out.contains(model.name) {
                "ruled out"
            } else {
                "not decided here"
            };
            json!({"name": model.name, "verdict": verdict})
        };
        lattice::MODELS.iter().map(row).collect()
    }
}
