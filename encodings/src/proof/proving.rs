//! Any back end, with a proof of UNSAT.

use std::path::PathBuf;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Progress;
use kingsnake_graph::decide::{Backend, DecideError, DecideStats, Decision, Origin, Question};

use super::check::Checked;
use super::write::{ProofError, write};

/// A back end that writes a proof when it refutes a question.
pub struct Proving {
    backend: Box<dyn Backend>,
    path: PathBuf,
    about: Vec<String>,
    seed: u32,
    written: Option<Result<Checked, ProofError>>,
    is_concluded: bool,
}

impl Proving {
    /// Proofs go to this path, with these lines of comment, and their instances beside it.
    pub fn new(backend: Box<dyn Backend>, path: PathBuf, about: Vec<String>, seed: u32) -> Proving {
        Proving {
            backend,
            path,
            about,
            seed,
            written: None,
            is_concluded: false,
        }
    }

    /// The proof, or why there is none; `None` if nothing was refuted.
    pub fn written(self) -> Option<Result<Checked, ProofError>> {
        self.written
    }
}

impl Backend for Proving {
    fn name(&self) -> &str {
        self.backend.name()
    }

    fn refuses(&self, origin: Origin) -> Option<String> {
        self.backend.refuses(origin)
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let (decision, stats) = self.backend.decide(question, budget, progress)?;
        if let Decision::Core(core) = &decision
            && !self.is_concluded
        {
            let written = write(&question, core, &self.about, self.seed, budget, &self.path);
            self.written = Some(written);
        }
        Ok((decision, stats))
    }
    fn conclude(&mut self) {
        self.is_concluded = true;
    }
}
