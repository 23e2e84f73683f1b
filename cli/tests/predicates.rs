//! Rows and predicates from the command line: a producer that knows nothing but the format's page, Jepsen's predicate reads, and what
//! every output of a check says of them.

mod run;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use run::{Scratch, expect};
use serde_json::{Value, json};

/// A database of one table, `rows`, that writes down what its clients do, as docs/formats.md says.
struct Producer {
    log: String,
    /// The number of owner and balance, and the value that names the version.
    rows: BTreeMap<i64, (i64, i64)>,
    /// Of each key, what its versions are called, oldest first.
    versions: BTreeMap<i64, Vec<Value>>,
    n_commits: i64,
    n_versions: i64,
}

impl Producer {
    fn new() -> Self {
        let header = json!({"kingsnake": 1, "tables": {"accounts": ["balance"]}});
        let mut log = format!("{header}\n");
        let mut rows = BTreeMap::new();
        for key in 0..3 {
            let row = json!({"balance": 5});
            writeln!(
                log,
                "{{\"initial\":{{\"key\":{key},\"value\":0,\"row\":{row}}}}}"
            )
            .expect("a text takes all");
            rows.insert(key, (5, 0));
        }
        Producer {
            log,
            rows,
            versions: BTreeMap::new(),
            n_commits: 0,
            n_versions: 0,
        }
    }

    fn choose(&self, is: impl Fn(i64) -> bool) -> Vec<(i64, i64)> {
        let rows = self.rows.iter().filter(|it| is(it.1.0));
        rows.map(|it| (*it.0, it.1.1)).collect()
    }

    fn set(&mut self, key: i64, balance: i64) -> i64 {
        self.n_versions += 1;
        self.rows.insert(key, (balance, self.n_versions));
        self.install(key, json!(self.n_versions));
        self.n_versions
    }

    fn install(&mut self, key: i64, version: Value) {
        self.versions.entry(key).or_default().push(version);
    }

    /// Sets all rich accounts to 4, opens one, closes all poor ones, and perhaps asks for the sum of all.
    fn step(&mut self, client: i64, asks_sum: bool) {
        let start = self.n_commits;
        let rich = json!({"table": "accounts", "where": [">", "balance", 4]});
        let mut ops: Vec<Value> = Vec::new();
        let found = self.choose(|balance| balance > 4);
        let returned: Vec<Value> = found.iter().map(|it| json!([it.0, it.1])).collect();
        ops.push(json!(["select", rich, returned, {"at": start}]));
        let mut changed = Vec::new();
        for (key, old) in found {
            let new = self.set(key, 4);
            changed.push(json!([key, old, new, {"balance": 4}]));
        }
        ops.push(json!(["update", rich, changed, {"at": start}]));
        let key = 10 + self.n_commits;
        let new = self.set(key, client + 4);
        ops.push(json!(["insert", key, new, {"balance": client + 4}]));
        let poor = json!({"table": "accounts", "where": ["<=", "balance", 3]});
        let mut deleted = Vec::new();
        for (key, old) in self.choose(|balance| balance <= 3) {
            let tombstone = format!("gone {key}");
            self.rows.remove(&key);
            // Only the last version that a transaction leaves is installed.
            self.versions.remove(&key);
            self.install(key, json!({"deleted": tombstone}));
            deleted.push(json!([key, old, tombstone]));
        }
        ops.push(json!(["delete", poor, deleted, {"at": start}]));
        if asks_sum {
            let sum: i64 = self.rows.values().map(|it| it.0).sum();
            ops.push(
                json!(["aggregate", {"table": "accounts"}, "sum", "balance", sum, {"at": start}]),
            );
        }
        self.n_commits += 1;
        let txn = json!({"id": self.n_commits, "session": client, "start_ts": start, "commit_ts": self.n_commits, "ops": ops});
        writeln!(self.log, "{txn}").expect("a text takes all");
    }

    /// A history of 13 transactions, the last transaction last.
    fn run(asks_sum: bool) -> String {
        let mut producer = Producer::new();
        for step in 0..13 {
            producer.step(step % 3 - 1, asks_sum);
        }
        let mut orders = String::new();
        for (key, values) in &producer.versions {
            let values = json!(values);
            writeln!(
                orders,
                "{{\"version_order\":{{\"key\":{key},\"values\":{values}}}}}"
            )
            .expect("a text takes all");
        }
        let (header, lines) = producer.log.split_once('\n').expect("a header");
        format!("{header}\n{orders}{lines}")
    }
}

#[test]
fn somebody_can_write_a_producer_from_the_page_of_formats() {
    let scratch = Scratch::new();
    for (more, asks_sum) in [
        (["--level", "ser"], false),
        (["--level", "si"], false),
        (["--certificate-from", "history"], true),
        (["--along", "commit-ts"], true),
    ] {
        let log = Producer::run(asks_sum);
        let history = scratch.put("made.jsonl", &log);
        expect(0, &["check", &history, more[0], more[1]]);
        // A row that the last select did not return.
        let (all, last) = log.trim_end().rsplit_once('\n').expect("two lines");
        let mut txn: Value = serde_json::from_str(last).expect("it is JSON");
        let rows = txn["ops"][0][2].as_array_mut().expect("the rows");
        assert!(!rows.is_empty());
        rows.remove(0);
        let history = scratch.put("broken.jsonl", format!("{all}\n{txn}\n"));
        let said = expect(1, &["check", &history, more[0], more[1]]);
        let words = "asked for rows with balance > 4 and did not get row";
        assert!(said.stdout.contains(words), "{}", said.stdout);
    }
}

#[test]
fn aggregates_are_decided_without_a_certificate() {
    let scratch = Scratch::new();
    let log = Producer::run(true);
    let sum = scratch.put("sum.jsonl", &log);
    let (all, last) = log.trim_end().rsplit_once('\n').expect("two lines");
    let mut txn: Value = serde_json::from_str(last).expect("it is JSON");
    let ops = txn["ops"].as_array_mut().expect("operations");
    let aggregate = ops.last_mut().expect("it asked");
    let told = aggregate[4].as_i64().expect("a sum");
    aggregate[4] = json!(told + 1_000_000);
    let wrong = scratch.put("wrong.jsonl", format!("{all}\n{txn}\n"));
    for level in ["ser", "si", "pc", "cc", "ra", "rc-so", "rc", "auto"] {
        expect(0, &["check", &sum, "--level", level]);
        let said = expect(1, &["check", &wrong, "--level", level]);
        if level != "auto" {
            let words = "asked for the sum of balance over all rows and was told";
            assert!(said.stdout.contains(words), "{level}: {}", said.stdout);
        }
    }
}

/// Two clients each find no even value of the other's, and insert one: a write skew that only predicates show.
const SKEW: &str = "{:type :ok, :f :init, :process 9, :value {:x 1, :y 3}}
{:type :invoke, :f :txn, :process 0, :value [[:rp [:mod 2 0] nil] [:insert :a 2]]}
{:type :invoke, :f :txn, :process 1, :value [[:rp [:mod 2 0] nil] [:insert :b 4]]}
{:type :ok, :f :txn, :process 0, :value [[:rp [:mod 2 0] {}] [:insert :a 2]]}
{:type :ok, :f :txn, :process 1, :value [[:rp [:mod 2 0] {}] [:insert :b 4]]}
";

#[test]
fn jepsen_s_predicate_reads_show_a_write_skew() {
    let scratch = Scratch::new();
    let history = scratch.put("skew.edn", SKEW);
    expect(0, &["check", &history, "--level", "si"]);
    let said = expect(1, &["check", &history, "--level", "ser"]);
    assert!(said.stdout.contains("Write skew"), "{}", said.stdout);
    // Without conditions nothing is wrong.
    expect(0, &["check", &history, "--level", "ser", "--no-predicates"]);
    let converted = scratch.path("skew.jsonl");
    expect(0, &["convert", "--to", "kingsnake", &history, &converted]);
    expect(1, &["check", &converted, "--level", "ser"]);
}

#[test]
fn jepsen_s_predicate_reads_miss_what_was_there_and_see_what_was_deleted() {
    let scratch = Scratch::new();
    let check = |name: &str, text: &str| {
        let history = scratch.put(name, text);
        run::run(&["check", &history, "--level", "ser"])
    };
    let init = "{:type :ok, :f :init, :process 9, :value {1 10, 2 20}}\n";
    let txn = |value: &str, process: i64| {
        format!("{{:type :ok, :f :txn, :process {process}, :value [{value}]}}\n")
    };
    // Every version of key 2 satisfies the predicate.
    let missed = check(
        "missed.edn",
        &format!("{init}{}", txn("[:rp :true {1 10}]", 0)),
    );
    assert_eq!(missed.status, 1, "{}{}", missed.stdout, missed.stderr);
    // It may have been deleted before.
    let deleted = format!(
        "{init}{}{}",
        txn("[:rp :true {1 10}]", 0),
        txn("[:delete 2]", 1)
    );
    assert_eq!(check("deleted.edn", &deleted).status, 0);
    // Not by who deletes it afterwards.
    let own = format!("{init}{}", txn("[:rp [:= 20] {}] [:delete 2]", 0));
    assert_eq!(check("own.edn", &own).status, 1);
    let own = format!(
        "{init}{}",
        txn("[:rp [:= 20] {2 20}] [:delete 2] [:rp [:= 20] {}]", 0)
    );
    assert_eq!(check("own-2.edn", &own).status, 0);
    // JSON, whose maps have texts for keys.
    let json = r#"{"type":"ok","f":"init","process":9,"value":{"1":10,"2":20}}
{"type":"ok","f":"txn","process":0,"value":[["rp",["=",20],{"2":20}],["r",1,10]]}
"#;
    assert_eq!(check("rows.json", json).status, 0);
    let json = json.replace(r#"["=",20],{"2":20}"#, r#""true",{"1":10}"#);
    assert_eq!(check("missed.json", &json).status, 1);
}

#[test]
fn predicates_of_jepsen_that_mean_nothing_are_refused() {
    let scratch = Scratch::new();
    for (value, words) in [
        ("[:rp [:> 3] {}]", "a predicate of another form"),
        ("[:rp :true [1 2]]", "rows that are no map"),
        ("[:rp [:mod 0 1] {}]", "a predicate of another form"),
        ("[:upsert 1 2]", "step upsert is not supported"),
    ] {
        let text = format!("{{:type :ok, :f :txn, :process 0, :value [{value}]}}\n");
        let history = scratch.put("bad.edn", &text);
        let said = expect(2, &["check", &history]);
        assert!(said.stderr.contains(words), "{}", said.stderr);
        assert!(said.stderr.contains("line 1"), "{}", said.stderr);
    }
}
