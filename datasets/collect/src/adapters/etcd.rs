//! etcd, through its JSON gateway: reads are sent at once, writes at the commit, which goes through if nothing that was read
//! has changed since (`mod_revision`). The version order is that of revisions, from a watch.
//!
//! A transaction that only reads one key needs no comparison: with linearizable reads it is current, with serializable ones
//! it may be stale.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::tls::TlsConfig;

use super::{Target, encode, table, tls};
use crate::adapter::{
    DELETED, Database, DatabaseSession, Failure, Initially, Key, OrderBy, StoredCell, VersionLog,
    Wrote,
};

/// The database at a target.
pub(super) fn make(target: &Target) -> Result<Box<dyn Database>, Failure> {
    Ok(Box::new(Etcd::new(target)?))
}

const PREFIX: &[u8] = b"kingsnake/";

struct Etcd {
    nodes: Vec<EtcdNode>,
    stale_reads: bool,
    order: OrderBy,
    settings: Vec<(String, String)>,
    /// How long a client waits for an answer.
    timeout: Duration,
    start: Mutex<i64>,
}

/// Time limit of our own requests, such as for the log.
const PATIENCE: Duration = Duration::from_secs(10);

/// A key under our prefix.
fn named(key: [u8; 9]) -> Vec<u8> {
    [PREFIX, &key].concat()
}

/// The first key after all under our prefix.
fn after_all() -> Vec<u8> {
    b"kingsnake0".to_vec()
}

fn coded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn decoded(value: &Value) -> Result<Vec<u8>, Failure> {
    let text = value.as_str().unwrap_or("");
    STANDARD
        .decode(text)
        .map_err(|error| Failure::Fatal(format!("etcd: {error}")))
}

/// Numbers of 64 bits come as texts.
fn number(value: &Value) -> i64 {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

struct EtcdNode {
    url: String,
    tls: TlsConfig,
}

impl EtcdNode {
    fn new(url: &str) -> Result<Self, Failure> {
        let (url, wanted) = tls::take_https(url)?;
        Ok(EtcdNode {
            url: url.trim_end_matches('/').to_owned(),
            tls: tls::https(&wanted)?,
        })
    }
}

struct Link {
    agent: Agent,
    url: String,
}

impl Link {
    fn new(node: &EtcdNode, timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .tls_config(node.tls.clone())
            // A redirect must not lead to a place without encryption.
            .max_redirects(0);
        Link {
            agent: config.build().into(),
            url: node.url.clone(),
        }
    }

    fn ask(&self, what: &str, body: &Value) -> Result<Value, Failure> {
        let url = format!("{}/v3/{what}", self.url);
        let lost = |error: ureq::Error| match error {
            ureq::Error::StatusCode(code @ (400 | 401 | 403 | 404)) => {
                Failure::Fatal(format!("etcd at {} answers {code} to {what}", self.url))
            }
            error => Failure::Lost(format!("etcd at {}: {error}", self.url)),
        };
        let mut answer = self.agent.post(&url).send_json(body).map_err(lost)?;
        answer.body_mut().read_json().map_err(lost)
    }
}

impl Etcd {
    fn new(target: &Target) -> Result<Self, Failure> {
        let settings = table::ETCD.settings(target);
        let typed = settings.iter().find(|(name, _)| name == "timeout");
        let typed = typed.map_or("", |(_, value)| value);
        let seconds = typed.parse::<f64>().ok().filter(|it| *it > 0.0);
        let timeout = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
        let timeout = timeout.ok_or_else(|| {
            Failure::Fatal(format!(
                "timeout={typed}: write seconds above 0, such as timeout=0.2"
            ))
        })?;
        Ok(Etcd {
            nodes: target
                .urls
                .iter()
                .map(|url| EtcdNode::new(url))
                .collect::<Result<_, _>>()?,
            stale_reads: target.isolation == "serializable-reads",
            order: target.version_order,
            settings,
            timeout,
            start: Mutex::new(0),
        })
    }

    /// A node, for our own questions.
    fn link(&self, node: usize) -> Link {
        Link::new(&self.nodes[node % self.nodes.len()], PATIENCE)
    }

    fn revision(&self) -> Result<i64, Failure> {
        let answer = self
            .link(0)
            .ask("kv/range", &json!({"key": coded(PREFIX), "limit": 1}))?;
        Ok(number(&answer["header"]["revision"]))
    }
}

impl Database for Etcd {
    fn version(&self) -> Result<String, Failure> {
        let answer = self.link(0).ask("maintenance/status", &json!({}))?;
        let nodes = match self.nodes.len() {
            1 => String::new(),
            n => format!(", {n} nodes"),
        };
        Ok(format!(
            "etcd {}{nodes}",
            answer["version"].as_str().unwrap_or("")
        ))
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn node(&self, session: usize) -> Option<String> {
        (self.nodes.len() > 1).then(|| format!("node {}", session % self.nodes.len()))
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        let link = self.link(0);
        let range = json!({"key": coded(PREFIX), "range_end": coded(&after_all()), "limit": 1});
        let there = link.ask("kv/range", &range)?;
        if there["kvs"].as_array().is_some_and(|kvs| !kvs.is_empty()) {
            return Err(Failure::Fatal(format!(
                "keys under kingsnake/ are in the way at {}; delete them first",
                link.url
            )));
        }
        for (key, beside) in initially.rows() {
            let cell = encode::cell(StoredCell { value: 0, beside });
            let put = json!({"key": coded(&named(encode::register(key))), "value": coded(&cell)});
            link.ask("kv/put", &put)?;
        }
        // A linearizable read waits until its node has all of this, so no later read there sees less.
        for node in 0..self.nodes.len() {
            self.link(node).ask("kv/range", &range)?;
        }
        *self
            .start
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = self.revision()? + 1;
        Ok(())
    }

    fn open(&self, session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        Ok(Box::new(EtcdClient {
            link: Link::new(&self.nodes[session % self.nodes.len()], self.timeout),
            stale_reads: self.stale_reads,
            compares: Vec::new(),
            n_reads: 0,
            seen: BTreeMap::new(),
            puts: BTreeMap::new(),
        }))
    }

    fn log(&self) -> Result<Option<VersionLog>, Failure> {
        if self.order != OrderBy::Log {
            return Ok(None);
        }
        let start = *self
            .start
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // The mark at the end: a watch sends it after everything before it.
        let end = self.link(0).ask(
            "kv/put",
            &json!({"key": coded(b"kingsnake/end"), "value": ""}),
        )?;
        let end = number(&end["header"]["revision"]);
        self.watch(start, end).map(Some)
    }

    fn clean(&self) -> Result<(), Failure> {
        let all = json!({"key": coded(PREFIX), "range_end": coded(&after_all())});
        self.link(0).ask("kv/deleterange", &all).map(drop)
    }
}

impl Etcd {
    /// The versions from one revision to another.
    fn watch(&self, start: i64, end: i64) -> Result<VersionLog, Failure> {
        let link = self.link(0);
        let lost =
            |error: &dyn std::fmt::Display| Failure::Lost(format!("etcd at {}: {error}", link.url));
        let request = json!({"create_request": {
            "key": coded(PREFIX), "range_end": coded(&after_all()), "start_revision": start.to_string()
        }});
        let url = format!("{}/v3/watch", link.url);
        let mut answer = link
            .agent
            .post(&url)
            .send_json(&request)
            .map_err(|error| lost(&error))?;
        let lines = std::io::BufReader::new(answer.body_mut().as_reader()).lines();
        let mut log = VersionLog::default();
        let mut lengths: BTreeMap<Key, usize> = BTreeMap::new();
        for line in lines {
            let line = line.map_err(|error| lost(&error))?;
            let told: Value = serde_json::from_str(&line).map_err(|error| lost(&error))?;
            for event in told["result"]["events"].as_array().into_iter().flatten() {
                let kv = &event["kv"];
                let key = decoded(&kv["key"])?;
                let bytes = decoded(&kv["value"])?;
                match key.strip_prefix(PREFIX) {
                    Some(place @ [b'r', ..]) if place.len() == 9 => {
                        let value = if event["type"] == "DELETE" {
                            DELETED
                        } else {
                            encode::cell_of(&bytes)?.value
                        };
                        log.versions.push((encode::key_of(place)?, value));
                    }
                    Some(place @ [b'l', ..]) if place.len() == 9 => {
                        // One put may append several elements.
                        let (key, list) = (encode::key_of(place)?, encode::numbers(&bytes)?);
                        let known = lengths.insert(key, list.len()).unwrap_or(0);
                        log.versions
                            .extend(list.iter().skip(known).map(|value| (key, *value)));
                    }
                    _ => {}
                }
                log.is_complete |= number(&kv["mod_revision"]) >= end;
            }
            if log.is_complete {
                break;
            }
        }
        Ok(log)
    }
}

struct EtcdClient {
    link: Link,
    stale_reads: bool,
    /// What must still hold at the commit.
    compares: Vec<Value>,
    n_reads: usize,
    /// What was read, so that a second read of a key agrees.
    seen: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// What is to be written; nothing for a delete.
    puts: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl EtcdClient {
    fn get(&mut self, key: [u8; 9]) -> Result<Option<Vec<u8>>, Failure> {
        let key = named(key);
        if let Some(bytes) = self.puts.get(&key) {
            return Ok(bytes.clone());
        }
        if let Some(bytes) = self.seen.get(&key) {
            return Ok(bytes.clone());
        }
        let range = json!({"key": coded(&key), "serializable": self.stale_reads});
        let answer = self.link.ask("kv/range", &range)?;
        let kv = &answer["kvs"][0];
        self.n_reads += 1;
        self.compares.push(json!({
            "key": coded(&key), "target": "MOD", "result": "EQUAL",
            "mod_revision": number(&kv["mod_revision"]).to_string()
        }));
        let bytes = if kv.is_null() {
            None
        } else {
            Some(decoded(&kv["value"])?)
        };
        self.seen.insert(key, bytes.clone());
        Ok(bytes)
    }
}

impl DatabaseSession for EtcdClient {
    fn begin(&mut self) -> Result<(), Failure> {
        self.abort()
    }

    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure> {
        let bytes = self.get(encode::register(key))?;
        bytes.map(|bytes| encode::cell_of(&bytes)).transpose()
    }

    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure> {
        let bytes = encode::cell(cell).to_vec();
        self.puts.insert(named(encode::register(key)), Some(bytes));
        Ok(Wrote::default())
    }

    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure> {
        let bytes = self.get(encode::list(key))?;
        bytes.map_or(Ok(Vec::new()), |bytes| encode::numbers(&bytes))
    }

    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure> {
        let mut bytes = self.get(encode::list(key))?.unwrap_or_default();
        bytes.extend(value.to_be_bytes());
        self.puts.insert(named(encode::list(key)), Some(bytes));
        Ok(Wrote::default())
    }

    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure> {
        let (low, high) = (named(encode::register(low)), named(encode::register(high)));
        // The end of a range is left out, so one zero byte more takes the last key in.
        let end = [&high[..], &[0]].concat();
        let range =
            json!({"key": coded(&low), "range_end": coded(&end), "serializable": self.stale_reads});
        let answer = self.link.ask("kv/range", &range)?;
        let revision = number(&answer["header"]["revision"]);
        // Two, because a range is more than one key.
        self.n_reads += 2;
        self.compares.push(json!({
            "key": coded(&low), "range_end": coded(&end), "target": "MOD", "result": "LESS",
            "mod_revision": (revision + 1).to_string()
        }));
        let mut rows = BTreeMap::new();
        for kv in answer["kvs"].as_array().into_iter().flatten() {
            // The comparison above is of keys that are there: one that was deleted meanwhile needs its own.
            self.compares.push(json!({
                "key": kv["key"], "target": "MOD", "result": "EQUAL", "mod_revision": kv["mod_revision"]
            }));
            rows.insert(decoded(&kv["key"])?, decoded(&kv["value"])?);
        }
        for (key, bytes) in self.puts.range(low..=high) {
            match bytes {
                Some(bytes) => drop(rows.insert(key.clone(), bytes.clone())),
                None => drop(rows.remove(key)),
            }
        }
        rows.iter()
            .map(|(key, bytes)| {
                Ok((
                    encode::key_of(&key[PREFIX.len()..])?,
                    encode::cell_of(bytes)?.value,
                ))
            })
            .collect()
    }

    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure> {
        let was_there = self.get(encode::register(key))?.is_some();
        if was_there {
            self.puts.insert(named(encode::register(key)), None);
        }
        Ok(was_there.then(Wrote::default))
    }

    fn commit(&mut self) -> Result<Option<String>, Failure> {
        if self.puts.is_empty() && self.n_reads <= 1 {
            return Ok(None);
        }
        let put = |(key, bytes): (&Vec<u8>, &Option<Vec<u8>>)| match bytes {
            Some(bytes) => json!({"request_put": {"key": coded(key), "value": coded(bytes)}}),
            None => json!({"request_delete_range": {"key": coded(key)}}),
        };
        let puts: Vec<Value> = self.puts.iter().map(put).collect();
        let has_put = !puts.is_empty();
        let answer = self.link.ask(
            "kv/txn",
            &json!({"compare": self.compares, "success": puts}),
        )?;
        if answer["succeeded"].as_bool() != Some(true) {
            return Err(Failure::Aborted("conflict"));
        }
        let revision = number(&answer["header"]["revision"]);
        Ok(has_put.then(|| format!("revision {revision}")))
    }

    fn abort(&mut self) -> Result<(), Failure> {
        self.compares.clear();
        self.seen.clear();
        self.puts.clear();
        self.n_reads = 0;
        Ok(())
    }
}
