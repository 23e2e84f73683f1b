//! What the tests of all databases share: collect, read, check.
#![allow(dead_code, clippy::print_stdout, clippy::unwrap_used)] // Each suite uses its part, prints what it saw, and may panic.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kingsnake_collect::server::{Private, ServerError, Wanted, is_running};
use kingsnake_collect::{
    Beside, Broken, CollectRequest, CollectRun, Collected, Database, Load, Mistake, OrderBy,
    ReadsAt, Target, adapter, self_test,
};
use kingsnake_datasets::{ReadOptions, open};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::decide::{Backend, DecideError, DecideStats, Decision, Question};
use kingsnake_solver::level::Level;
use kingsnake_solver::progress::{Progress, Silent};
use kingsnake_solver::verdict::Verdict;

/// Never asked: what these tests collect leaves nothing open.
struct Nobody;

impl Backend for Nobody {
    fn name(&self) -> &'static str {
        "test/nobody"
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        _: &Budget,
        _: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        panic!("{} constraints are open", question.constraints.len());
    }
}

/// Whether a history holds at a level.
pub fn holds(history: &Path, level: Level) -> bool {
    let parsed = open(history, &ReadOptions::default()).unwrap();
    let spec = level.spec(None).unwrap();
    let report = check(
        &parsed.history,
        spec,
        &Techniques::default(),
        &mut Nobody,
        &Budget::unlimited(),
        &mut Silent,
    );
    match report.unwrap().verdict {
        Verdict::Satisfied(_) => true,
        Verdict::Violated(_) => false,
        Verdict::Unknown(reason) => panic!("unknown: {reason}"),
    }
}

/// What to collect in a test.
pub struct CollectCase<'a> {
    pub database: &'a str,
    pub urls: Vec<String>,
    pub isolation: &'a str,
    pub workload: &'a str,
    pub order: OrderBy,
    pub run: CollectRun,
    pub settings: Vec<(String, String)>,
    pub reads: Option<ReadsAt>,
}

impl<'a> CollectCase<'a> {
    pub fn new(database: &'a str, isolation: &'a str, workload: &'a str) -> Self {
        CollectCase {
            database,
            urls: Vec::new(),
            isolation,
            workload,
            order: adapter(database).unwrap().version_orders[0],
            run: CollectRun {
                txns: 2_000,
                limit: Some(Duration::from_secs(15)),
                ..CollectRun::default()
            },
            settings: Vec::new(),
            reads: None,
        }
    }

    pub fn at(mut self, server: &Private) -> Self {
        self.urls.clone_from(&server.urls);
        self
    }

    pub fn by(mut self, order: OrderBy) -> Self {
        self.order = order;
        self
    }

    pub fn txns(mut self, txns: u64) -> Self {
        self.run.txns = txns;
        self
    }

    pub fn load(&self) -> Load {
        Load::new(self.workload, None, None).unwrap()
    }

    pub fn connect(&self, directory: &Path) -> Box<dyn Database> {
        self.try_connect(directory).unwrap()
    }

    pub fn try_connect(
        &self,
        directory: &Path,
    ) -> Result<Box<dyn Database>, kingsnake_collect::Failure> {
        adapter(self.database).unwrap().connect(&Target {
            urls: self.urls.clone(),
            isolation: self.isolation.to_owned(),
            version_order: self.order,
            kind: self.load().kind(),
            directory: directory.to_owned(),
            settings: self.settings.clone(),
            reads: self.reads,
        })
    }

    pub fn request<'b>(&'b self, directory: &'b Path) -> CollectRequest<'b> {
        CollectRequest {
            name: self.database,
            isolation: self.isolation,
            workload: self.workload,
            version_order: self.order,
            run: self.run.clone(),
            directory,
            leaves_tables: None,
        }
    }

    pub fn collect(&self, directory: &Path) -> Collected {
        self.collect_beside(directory, None)
    }

    pub fn collect_beside(&self, directory: &Path, beside: Option<Beside<'_>>) -> Collected {
        let database = self.connect(directory);
        self.collect_from(&*database, directory, beside)
    }

    pub fn collect_from(
        &self,
        database: &dyn Database,
        directory: &Path,
        beside: Option<Beside<'_>>,
    ) -> Collected {
        let stop = AtomicBool::new(false);
        let request = self.request(directory);
        let collected = request
            .collect(database, &self.load(), &stop, beside, &mut |_| {})
            .unwrap();
        println!(
            "{}: {} committed, aborted {:?}, {} unknown, {} operations in {:.2} s, {} findings",
            collected.meta.about(),
            collected.tally.committed,
            collected.tally.aborted,
            collected.tally.unknown,
            collected.merged.n_ops,
            collected.running.as_secs_f64(),
            collected.merged.findings.len()
        );
        assert_eq!(collected.notes, Vec::<String>::new());
        collected
    }

    /// Every operation with one session, then deliberate mistakes, each of which the checker must find.
    pub fn control(&self, mistakes: &[Mistake]) {
        let directory = tempfile::tempdir().unwrap();
        let database = self.connect(directory.path());
        let test = self_test(&*database).unwrap();
        assert_eq!(test.failed, Vec::<String>::new());
        assert!(test.passed.len() >= 12);
        for &mistake in mistakes {
            let place = directory.path().join(mistake.name());
            let broken = Broken {
                inner: &*database,
                mistake,
            };
            let collected = self.collect_from(&broken, &place, None);
            assert!(
                !holds(&collected.history, Level::Ser),
                "{} was not found",
                mistake.name()
            );
        }
    }

    /// A level that allows an anomaly shows it sooner or later: tries again with more transactions, and reports if it
    /// never did, because nothing guarantees it.
    pub fn should_violate(&self, level: Level) {
        let mut case = CollectCase {
            settings: self.settings.clone(),
            urls: self.urls.clone(),
            run: self.run.clone(),
            ..*self
        };
        for _ in 0..3 {
            let directory = tempfile::tempdir().unwrap();
            let collected = case.collect(directory.path());
            if !holds(&collected.history, level) {
                return;
            }
            case.run.txns *= 4;
            case.run.seed += 1;
        }
        println!(
            "NOT SHOWN: {} at {} kept {level} on {}",
            self.database, self.isolation, self.workload
        );
    }
}

/// A private server; prints a notice and returns `None` if its package is not installed.
pub fn server(database: &str, nodes: usize) -> Option<Private> {
    start(&Wanted {
        nodes,
        sessions: 16,
        ..Wanted::one(database)
    })
}

/// A private server with these properties; prints a notice and returns `None` if its package is not installed.
pub fn start(wanted: &Wanted<'_>) -> Option<Private> {
    match Private::start(wanted) {
        Ok(server) => Some(server),
        Err(error @ ServerError::NotInstalled { .. }) => {
            println!("SKIPPED a test with {}: {error}", wanted.database);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The processes of a server.
pub fn pids(server: &Private) -> Vec<i32> {
    (0..server.n_nodes())
        .flat_map(|node| server.pids(node))
        .collect()
}

/// Ends the server, and makes sure that nothing is left of it.
pub fn gone(server: Private) {
    let (pids, directory) = (pids(&server), server.directory().to_owned());
    drop(server);
    assert!(pids.iter().all(|&pid| !is_running(pid)), "{pids:?}");
    assert!(!directory.exists());
}
