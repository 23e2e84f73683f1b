//! The names of the formats.

use std::fmt;
use std::str::FromStr;

/// A way of writing a history down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Our own JSON Lines.
    Kingsnake,
    /// Cobra's logs, a version known by its write id.
    Cobra,
    /// Cobra's logs, a version known by its value, because write ids repeat.
    CobraValues,
    /// dbcop's bincode.
    Dbcop,
    /// One operation per line, as `PolySI`, Plume and `IsoVista` write it.
    Text,
    /// AWDIT's text.
    Awdit,
    /// Viper's JSON logs.
    Viper,
    /// A Jepsen history in EDN.
    JepsenEdn,
    /// A Jepsen history in JSON.
    JepsenJson,
    /// `VeriStrong`'s text for list-append.
    ListAppendText,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 10] = [
        Format::Kingsnake,
        Format::Cobra,
        Format::CobraValues,
        Format::Dbcop,
        Format::Text,
        Format::Awdit,
        Format::Viper,
        Format::JepsenEdn,
        Format::JepsenJson,
        Format::ListAppendText,
    ];

    /// The formats that [`write`](crate::write()) can write.
    pub const WRITTEN: [Format; 6] = [
        Format::Kingsnake,
        Format::Text,
        Format::Dbcop,
        Format::Cobra,
        Format::JepsenEdn,
        Format::JepsenJson,
    ];

    /// The name on the command line and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Kingsnake => "kingsnake",
            Format::Cobra => "cobra",
            Format::CobraValues => "cobra-values",
            Format::Dbcop => "dbcop",
            Format::Text => "text",
            Format::Awdit => "awdit",
            Format::Viper => "viper",
            Format::JepsenEdn => "jepsen-edn",
            Format::JepsenJson => "jepsen-json",
            Format::ListAppendText => "list-append-text",
        }
    }

    /// Every name, for messages.
    pub(crate) fn names(formats: &[Format]) -> String {
        let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
        names.join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// A name that no format has.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no format `{name}`; there are {all}", all = Format::names(&Format::ALL))]
pub struct UnknownFormat {
    name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Format::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| UnknownFormat {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert!("csv".parse::<Format>().is_err());
    }
}
