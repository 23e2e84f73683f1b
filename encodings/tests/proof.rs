//! Proofs: what a back end refutes is written and accepted; what is damaged is refused, or still proves what it says.

mod support;

use std::path::PathBuf;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_encodings::proof::{
    ProofInstance, ProofRefusal, Proving, check, instance_path, same_question,
};
use kingsnake_encodings::{BACKENDS, BackendOptions, backend};
use kingsnake_graph::decide::{Backend, Decision};
use support::{Owned, Rng, pigeons, planted, small};

struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let name = format!("kingsnake-{test}-{}.lrat", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(instance_path(&self.0));
    }
}

/// The instance and the proof of a question that cannot be met, as written.
fn proven(owned: &Owned, name: &str, scratch: &Scratch) -> (String, String) {
    let inner = backend(name, &BackendOptions::default()).expect("a back end of the table");
    let mut proving = Proving::new(inner, scratch.0.clone(), vec!["a test".to_owned()], 0);
    let (decision, _) = proving
        .decide(owned.question(), &Budget::unlimited(), &mut Silent)
        .expect("decided");
    assert!(
        matches!(decision, Decision::Core(_)),
        "{name}: {decision:?}"
    );
    let checked = proving.written().expect("a proof").expect("it was checked");
    assert!(checked.cycles > 0, "{checked:?}");
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("it was written");
    (read(&instance_path(&scratch.0)), read(&scratch.0))
}

/// Small questions that cannot be met, but not because of one constraint alone.
fn refutable(random: &mut Rng) -> Owned {
    loop {
        let owned = small(random);
        let alone = |at: &u32| !owned.can_meet(&[*at]);
        if !owned.can_meet(&owned.all()) && !owned.all().iter().any(alone) {
            return owned;
        }
    }
}

#[test]
fn every_back_end_proves_what_it_refutes() {
    let mut random = Rng::new(41);
    let scratch = Scratch::new("proves");
    for &name in BACKENDS {
        for _ in 0..40 {
            let owned = refutable(&mut random);
            let (instance, proof) = proven(&owned, name, &scratch);
            let instance = ProofInstance::read(&instance).expect("as written");
            check(&instance, &proof).expect("as checked when it was written");
            same_question(&instance, &owned.question()).expect("the same question");
        }
    }
    for owned in [pigeons(4), planted(100, 300, true, &mut random)] {
        proven(&owned, "cadical/propagator", &scratch);
    }
}

#[test]
fn what_can_be_met_gets_no_proof() {
    let scratch = Scratch::new("met");
    let owned = planted(50, 80, false, &mut Rng::new(42));
    let inner = backend(BACKENDS[0], &BackendOptions::default()).expect("the default");
    let mut proving = Proving::new(inner, scratch.0.clone(), Vec::new(), 0);
    let decided = proving.decide(owned.question(), &Budget::unlimited(), &mut Silent);
    assert!(matches!(decided, Ok((Decision::Choices(_), _))));
    assert!(proving.written().is_none());
    assert!(!scratch.0.exists());
}

fn accepted(instance: &str, proof: &str) -> Result<ProofInstance, ProofRefusal> {
    let instance = ProofInstance::read(instance)?;
    check(&instance, proof).map(|_| instance)
}

/// Replaces the first line that starts so.
fn damaged(text: &str, start: &str, change: impl Fn(&str) -> String) -> String {
    let mut changed = false;
    let lines = text.lines().map(|line| {
        if !changed && line.starts_with(start) {
            changed = true;
            return change(line);
        }
        format!("{line}\n")
    });
    let text = lines.collect();
    assert!(changed, "no line starts with {start}");
    text
}

#[test]
fn damage_is_refused_with_a_reason() {
    let scratch = Scratch::new("damage");
    let (instance, proof) = proven(&pigeons(3), "cadical/propagator", &scratch);
    accepted(&instance, &proof).expect("undamaged");
    let refused = |what: &str, instance: &str, proof: &str| {
        let reason = accepted(instance, proof).err();
        println!("{what}: {reason:?}");
        assert!(reason.is_some(), "{what} was accepted");
    };
    let n_lines = proof.lines().count();
    let last = proof.lines().last().expect("a proof has lines");
    let lines: Vec<&str> = proof.lines().take(n_lines - 1).collect();
    let truncated = lines.join("\n") + "\n";
    refused("a truncated proof", &instance, &truncated);
    refused("an empty proof", &instance, "");
    refused("half a line", &instance, &proof[..proof.len() - 3]);
    let words: Vec<&str> = last.split_whitespace().collect();
    let hintless = format!("{truncated}{} 0 0\n", words[0]);
    refused("an empty clause out of nothing", &instance, &hintless);
    let mut fewer = words.clone();
    fewer.remove(2);
    refused(
        "a lost hint",
        &instance,
        &format!("{truncated}{}\n", fewer.join(" ")),
    );
    let gone = damaged(&instance, "c cycle 1 ", |_| String::new());
    refused("a clause without a cycle", &gone, &proof);
    let other = damaged(&instance, "c cycle 1 ", |_| {
        "c cycle 1 0 1 2 3 0\n".to_owned()
    });
    refused("another cycle", &other, &proof);
    let open = damaged(&instance, "c cycle 1 ", |line| {
        let (path, _) = line.rsplit_once(' ').expect("nodes");
        format!("{path}\n")
    });
    refused("a path that does not return", &open, &proof);
    let unknown = damaged(&instance, "c known ", |_| String::new());
    refused("an edge that is not known", &unknown, &proof);
    let idle = damaged(&instance, "c side ", |_| String::new());
    refused("an edge that no side demands", &idle, &proof);
    let short = damaged(&instance, "p cnf ", |line| format!("{line}9\n"));
    refused("a wrong header", &short, &proof);
    refused("no instance", "", &proof);
}

#[test]
fn a_proof_of_another_question_is_noticed() {
    let scratch = Scratch::new("other");
    let mut random = Rng::new(43);
    let (owned, other) = (refutable(&mut random), pigeons(3));
    let (instance, _) = proven(&other, "cadical/lazy", &scratch);
    let instance = ProofInstance::read(&instance).expect("as written");
    assert!(same_question(&instance, &other.question()).is_ok());
    assert!(same_question(&instance, &owned.question()).is_err());
}

/// Whether the instance's clauses can be met, by enumeration.
fn can_be_met(instance: &ProofInstance) -> bool {
    let n = instance.constraints.len();
    assert!(n <= 16, "too many to try all");
    (0u32..1 << n).any(|values| {
        instance.clauses.iter().all(|clause| {
            clause
                .iter()
                .any(|&lit| (values >> (lit.unsigned_abs() - 1) & 1 == 1) == (lit > 0))
        })
    })
}

#[test]
fn whatever_is_accepted_after_random_damage_is_still_true() {
    let mut random = Rng::new(44);
    let scratch = Scratch::new("random");
    let (mut n_refused, mut n_accepted) = (0, 0);
    for _ in 0..60 {
        let owned = refutable(&mut random);
        let (instance, proof) = proven(&owned, "cadical/elimination", &scratch);
        for _ in 0..100 {
            let (mut instance, mut proof) =
                (instance.clone().into_bytes(), proof.clone().into_bytes());
            let target = if random.below(2) == 0 {
                &mut instance
            } else {
                &mut proof
            };
            if target.is_empty() {
                continue;
            }
            for _ in 0..=random.below(2) {
                let at = random.below(target.len());
                match random.below(3) {
                    0 => target[at] = b"0123456789- \nd"[random.below(14)],
                    1 => drop(target.remove(at)),
                    _ => {
                        let lines: Vec<usize> = (0..target.len())
                            .filter(|&at| target[at] == b'\n')
                            .collect();
                        let cut = random.below(lines.len());
                        let start = if cut == 0 { 0 } else { lines[cut - 1] + 1 };
                        target.drain(start..=lines[cut]);
                    }
                }
                if target.is_empty() || !target.contains(&b'\n') {
                    break;
                }
            }
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("ASCII stays ASCII");
            match accepted(&text(instance), &text(proof)) {
                Err(_) => n_refused += 1,
                Ok(instance) => {
                    n_accepted += 1;
                    assert!(!can_be_met(&instance), "{instance:?}");
                }
            }
        }
    }
    println!("{n_refused} refused, {n_accepted} accepted and true");
    assert!(n_refused > 1000);
}
