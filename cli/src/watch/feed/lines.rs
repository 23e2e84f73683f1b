//! Lines that are not transactions: the header, and session announcements.

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogHeader {
    pub(super) kingsnake: i64,
    #[serde(default)]
    pub(super) initial: Value,
    #[serde(default)]
    pub(super) sessions: Option<usize>,
    #[serde(default)]
    #[allow(dead_code)] // A description for people.
    pub(super) about: Option<String>,
    #[serde(default)]
    pub(super) tables: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ControlLine {
    Heartbeat(ControlFields),
    Open(ControlFields),
    Close(ControlFields),
    End(EndFields),
}

/// The outcome of the last transaction of a session, if its line had an unknown one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndFields {
    pub(super) session: Value,
    pub(super) status: Value,
    pub(super) commit: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ControlFields {
    pub(super) session: Option<Value>,
    pub(super) time: Option<i64>,
    pub(super) ts: Option<i64>,
}

/// Whether a line is a heartbeat, an open, a close or an end.
pub(super) fn is_control(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"{") else {
        return false;
    };
    let rest = rest.trim_ascii_start();
    [&b"\"heartbeat\""[..], b"\"open\"", b"\"close\"", b"\"end\""]
        .iter()
        .any(|it| rest.starts_with(it))
}
