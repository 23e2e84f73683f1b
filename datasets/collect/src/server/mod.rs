//! Private servers: processes of installed packages, on loopback, in a temporary directory, never as root, and gone
//! afterwards. They are for their owner only: a random password, files that others cannot read.
//!
//! A server dies with the collector (`setpriv --pdeathsig`), and directories that a killed collector left behind are removed
//! by the next one. Packages are never installed from here.

mod etcd;
mod mariadb;
mod postgres;
mod process;
mod proxy;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use thiserror::Error;

pub use process::is_running;
use process::{Home, Process};
pub use proxy::Proxy;

/// Why there is no private server.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Nothing to start.
    #[error("no private server of {0} is known; say where one is with --url")]
    Unknown(String),
    /// The package is not installed.
    #[error("{program} was not found{hint}")]
    NotInstalled {
        /// The program.
        program: String,
        /// Which package has it.
        hint: String,
    },
    /// It did not start.
    #[error("{program} did not start: {why}")]
    DidNotStart {
        /// The program.
        program: String,
        /// What it said last.
        why: String,
    },
    /// The file system or the system says no.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
}

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often one is started before the last error is told.
const ATTEMPTS: usize = 3;

/// A private server, or a cluster of them. Dropping it ends its processes and removes its files.
pub struct Private {
    home: Home,
    nodes: Vec<Mutex<Process>>,
    /// One address a node.
    pub urls: Vec<String>,
}

/// What a server is to be like.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The database, as typed.
    pub database: &'a str,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Clients that will connect.
    pub sessions: usize,
    /// The server's program, in place of the installed one; what else it needs is looked for beside it.
    pub binary: Option<&'a Path>,
}

impl Wanted<'_> {
    /// The program of a name beside the one that was given; nothing where none was given.
    fn beside(&self, name: &str) -> Option<Result<PathBuf, ServerError>> {
        let path = self.binary?.parent()?.join(name);
        Some(if path.is_file() {
            Ok(path)
        } else {
            let (program, hint) = (
                path.display().to_string(),
                " (it belongs beside --binary)".to_owned(),
            );
            Err(ServerError::NotInstalled { program, hint })
        })
    }

    /// The server's program: the one that was given, or the first of these names.
    fn program(&self, names: &[&str], hint: &str) -> Result<PathBuf, ServerError> {
        match self.binary {
            Some(binary) if binary.is_file() => Ok(binary.to_owned()),
            Some(binary) => Err(ServerError::NotInstalled {
                program: binary.display().to_string(),
                hint: " (--binary)".to_owned(),
            }),
            None => process::find_program(names, hint),
        }
    }
}

impl Private {
    /// Starts one, and waits until it answers. A port that was free may be taken by somebody else before the server has
    /// it, and a node of a cluster needs several, so a server that ends at once is started again on other ports.
    pub fn start(wanted: &Wanted<'_>) -> Result<Self, ServerError> {
        process::remove_stale();
        for _ in 1..ATTEMPTS {
            match Self::start_once(wanted) {
                Err(ServerError::DidNotStart { .. }) => {}
                started => return started,
            }
        }
        Self::start_once(wanted)
    }

    fn start_once(wanted: &Wanted<'_>) -> Result<Self, ServerError> {
        let mut private = Private {
            home: Home::make(wanted.database)?,
            nodes: Vec::new(),
            urls: Vec::new(),
        };
        // From here on, an error drops what was started.
        match wanted.database {
            "postgres" => postgres::start(&mut private, wanted)?,
            "mariadb" => mariadb::start(&mut private, wanted)?,
            "etcd" => etcd::start(&mut private, wanted)?,
            other => return Err(ServerError::Unknown(other.to_owned())),
        }
        Ok(private)
    }

    /// Where its files are.
    pub fn directory(&self) -> &Path {
        &self.home.path
    }

    /// How many nodes it has.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The process ids of a node, its children included.
    pub fn pids(&self, node: usize) -> Vec<i32> {
        self.node(node).family()
    }

    /// Ends a node at once, as a crash would.
    pub fn kill(&self, node: usize) {
        self.node(node).kill();
    }

    /// Ends one process of a node that serves a client, if there is one.
    pub fn kill_backend(&self, node: usize, drawn: usize) -> bool {
        self.node(node).kill_child(drawn)
    }

    /// Starts a node again that was killed.
    pub fn restart(&self, node: usize) -> Result<(), ServerError> {
        let mut node = self.node(node);
        node.spawn()?;
        node.wait_until_open(PATIENCE)
    }

    /// Stops a node's processes without ending them.
    pub fn pause(&self, node: usize) {
        self.node(node).pause();
    }

    /// Lets them go on.
    pub fn resume(&self, node: usize) {
        self.node(node).resume();
    }

    fn node(&self, node: usize) -> std::sync::MutexGuard<'_, Process> {
        self.nodes[node]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn add(&mut self, mut process: Process, url: String) -> Result<(), ServerError> {
        process.spawn()?;
        // Kept before it is waited for, so that it ends whatever happens.
        self.nodes.push(Mutex::new(process));
        self.urls.push(url);
        Ok(())
    }

    fn wait(&self, node: usize) -> Result<(), ServerError> {
        self.node(node).wait_until_open(PATIENCE)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        for node in &self.nodes {
            node.lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .kill();
        }
        // The last writes of a dying process may still come in between.
        let since = Instant::now();
        while std::fs::remove_dir_all(&self.home.path).is_err()
            && self.home.path.exists()
            && since.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
