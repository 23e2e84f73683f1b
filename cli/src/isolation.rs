//! The meaning of recorded isolation levels: `--isolation-map`, and the transactions' own levels under it.

use std::str::FromStr;

use anyhow::{Result, bail};
use kingsnake_solver::level::{Level, Model};
use kingsnake_solver::model::{History, TxnId};

/// The level of each recorded name; `*` is any other name, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolationMap {
    entries: Vec<(String, Model)>,
}

/// The default: every level has its own name, and these names mean the same in all databases.
const USUAL: &str = "serializable=ser,snapshot=si,snapshot isolation=si,read committed=rc-so";

impl Default for IsolationMap {
    fn default() -> Self {
        USUAL.parse().expect("it is well formed")
    }
}

impl FromStr for IsolationMap {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let entry = |part: &str| {
            let (name, level) = part
                .rsplit_once('=')
                .ok_or_else(|| format!("{part:?} is not NAME=LEVEL"))?;
            let name = name.trim().trim_matches('"').to_lowercase();
            if name.is_empty() {
                return Err(format!("{part:?} names no isolation level; * is any other"));
            }
            Ok((name, model(level.trim())?))
        };
        let entries: Result<Vec<_>, String> = typed.split(',').map(entry).collect();
        Ok(IsolationMap { entries: entries? })
    }
}

fn model(name: &str) -> Result<Model, String> {
    let level = name.parse::<Level>().ok();
    // Only levels that are a plain model.
    let model = level.map(Level::model);
    let own = model.filter(|it| {
        Model::MIXED.contains(it) && level.is_some_and(|level| level.name() == it.name())
    });
    own.ok_or_else(|| {
        if name == Model::Psi.name() {
            return "psi is a level of whole histories: it is about what every transaction saw, not about one order of commits, so no \
                    transaction has it beside others of another level; use --level psi"
                .to_owned();
        }
        let names: Vec<&str> = Model::MIXED.iter().map(|model| model.name()).collect();
        let names = names.join(", ");
        format!("no transaction can have level {name:?} of its own; the levels are {names}")
    })
}

impl IsolationMap {
    fn model(&self, name: Option<&str>) -> Option<Model> {
        let of = |wanted: &str| {
            let entry = self.entries.iter().find(|entry| entry.0 == wanted);
            entry.map(|entry| entry.1)
        };
        let name = name.map(str::to_lowercase);
        // What databases spell with spaces means what the map says.
        let own = || {
            let name = name.as_deref().filter(|it| !it.contains(' '))?;
            model(name).ok()
        };
        name.as_deref()
            .and_then(of)
            .or_else(own)
            .or_else(|| of("*"))
    }

    /// The default map, overridden by these names.
    pub fn usual_with(more: &[(&str, Model)]) -> Self {
        let mut map = IsolationMap::default();
        let more = more.iter().map(|&(name, model)| (name.to_owned(), model));
        map.entries.extend(more);
        map
    }

    /// The map in the syntax of the option.
    pub fn typed(&self) -> String {
        let entry = |(name, model): &(String, Model)| {
            if name.contains(' ') {
                format!("{name:?}={}", model.name())
            } else {
                format!("{name}={}", model.name())
            }
        };
        self.entries.iter().map(entry).collect::<Vec<_>>().join(",")
    }

    /// Gives each transaction of a history its own level.
    pub fn apply(&self, history: &mut History) -> Result<()> {
        history.set_models(|history, txn| self.of(history, txn))
    }

    fn of(&self, history: &History, txn: TxnId) -> Result<Model> {
        let recorded = history
            .isolation(txn)
            .map(|name| history.symbols().show(name));
        if let Some(model) = self.model(recorded.as_deref()) {
            return Ok(model);
        }
        let (name, map) = (history.txn_name(txn), self.typed());
        let add = "with *=LEVEL --isolation-map gives one to all others";
        match recorded {
            None => bail!(
                "transaction {name} records no isolation level, and {map} has none for it; {add}"
            ),
            Some(recorded) => bail!(
                "transaction {name} asked for isolation {recorded:?}, which is not in the map {map}; \
                 say what it stands for, such as --isolation-map '{map},{recorded}=si'; {add}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_typed_as_it_is_read() {
        let map = "serializable=ser,\"repeatable read\"=si,\"read committed\"=rc-so";
        let read: IsolationMap = map.parse().expect("it is well formed");
        assert_eq!(read.typed(), map);
        assert_eq!(read.model(Some("Repeatable Read")), Some(Model::Si));
        assert_eq!(
            read.model(Some("pc")),
            Some(Model::Pc),
            "levels name themselves"
        );
        assert_eq!(read.model(Some("chaos")), None);
        assert_eq!(read.model(None), None);
        let rest: IsolationMap = "*=rc".parse().expect("it is well formed");
        assert_eq!(rest.model(None), Some(Model::Rc));
    }

    #[test]
    fn a_map_with_an_unknown_level_is_refused() {
        for wrong in ["serializable", "=ser", "serializable=nonsense", "x=auto"] {
            assert!(wrong.parse::<IsolationMap>().is_err(), "{wrong}");
        }
    }
}
