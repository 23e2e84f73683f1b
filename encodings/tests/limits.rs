//! The default back end keeps its limits with every option: time, interruption, memory; and it tells progress from the
//! caller's thread.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::{Progress, ProgressEvent, Silent};
use kingsnake_encodings::{BACKENDS, BackendOptions, Decide, PropagatorOptions, backend};
use kingsnake_graph::decide::{Constraints, Decision};
use support::{Owned, Rng, edge, judge, pigeons, planted};

fn every_way() -> Vec<(&'static str, BackendOptions)> {
    let mut ways = Vec::new();
    for decide in [Decide::Repair, Decide::SurestFirst, Decide::Vsids] {
        let options = BackendOptions {
            propagator: PropagatorOptions {
                decide,
                ..PropagatorOptions::default()
            },
            ..BackendOptions::default()
        };
        ways.push((BACKENDS[0], options));
    }
    ways
}

#[test]
fn a_hard_question_stops_soon_after_the_time_limit() {
    let owned = pigeons(13);
    for (name, options) in every_way() {
        let limit = Duration::from_millis(200);
        let started = Instant::now();
        let budget = Budget::unlimited().with_timeout(started, limit);
        let mut backend = backend(name, &options).expect("listed");
        let (decision, stats) = backend
            .decide(owned.question(), &budget, &mut Silent)
            .expect("no failure");
        assert_eq!(decision, Decision::Unknown(StopReason::Time(limit)));
        let took = started.elapsed();
        println!(
            "{name} {:?} stopped after {took:.2?}: {stats:?}",
            options.propagator.decide
        );
    }
}

#[test]
fn another_thread_can_interrupt() {
    let owned = pigeons(13);
    for (name, options) in every_way() {
        let flag = Arc::new(AtomicBool::new(false));
        let budget = Budget::unlimited().with_interrupt(Arc::clone(&flag));
        let mut backend = backend(name, &options).expect("listed");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                flag.store(true, Ordering::Relaxed);
            });
            let started = Instant::now();
            let (decision, _) = backend
                .decide(owned.question(), &budget, &mut Silent)
                .expect("no failure");
            assert_eq!(decision, Decision::Unknown(StopReason::Interrupted));
            println!("{name} was interrupted after {:.2?}", started.elapsed());
        });
    }
}

#[test]
fn what_does_not_fit_is_not_allocated() {
    let owned = planted(2000, 4000, false, &mut Rng::new(1));
    let budget = Budget::unlimited().with_memory(1000);
    let (decision, _) = backend(BACKENDS[0], &BackendOptions::default())
        .expect("listed")
        .decide(owned.question(), &budget, &mut Silent)
        .expect("no failure");
    assert!(
        matches!(decision, Decision::Unknown(StopReason::Memory { .. })),
        "{decision:?}"
    );
}

#[test]
fn progress_is_told() {
    #[derive(Default)]
    struct Listener(Vec<ProgressEvent>);
    impl Progress for Listener {
        fn event(&mut self, event: ProgressEvent) {
            self.0.push(event);
        }
    }
    let budget = Budget::unlimited().with_timeout(Instant::now(), Duration::from_millis(600));
    let mut listener = Listener::default();
    let owned = pigeons(13);
    backend(BACKENDS[0], &BackendOptions::default())
        .expect("listed")
        .decide(owned.question(), &budget, &mut listener)
        .expect("no failure");
    assert!(!listener.0.is_empty());
    for event in listener.0 {
        assert!(
            matches!(event, ProgressEvent::Deciding { variables: 182, settled, .. } if settled <= 182),
            "{event:?}"
        );
    }
}

#[test]
fn an_order_that_violates_nothing_is_answered_without_a_decision() {
    let mut constraints = Constraints::default();
    constraints.push([edge(0, 2)], [edge(2, 1)]);
    let owned = Owned::new(&[(0, 1)], vec![0, 1, 2], constraints);
    let (decision, stats) = backend(BACKENDS[0], &BackendOptions::default())
        .expect("listed")
        .decide(owned.question(), &Budget::unlimited(), &mut Silent)
        .expect("no failure");
    assert!(matches!(decision, Decision::Choices(sides) if sides.len() == 1));
    assert_eq!((stats.decisions, stats.backend.as_str()), (0, BACKENDS[0]));
}

#[test]
fn nothing_open_is_met_and_a_known_cycle_is_an_error() {
    let empty = Owned::new(&[], Vec::new(), Constraints::default());
    for &name in BACKENDS {
        let mut backend = backend(name, &BackendOptions::default()).expect("listed");
        assert_eq!(judge(&mut *backend, &empty, Some(true)), Ok(true));
    }
    let broken = Owned::new(&[(0, 1), (1, 0)], vec![0, 1], Constraints::default());
    let mut backend = backend(BACKENDS[0], &BackendOptions::default()).expect("listed");
    assert!(judge(&mut *backend, &broken, None).is_err());
}

#[test]
fn a_loop_on_one_side_forces_the_other() {
    let mut constraints = Constraints::default();
    constraints.push([edge(0, 0)], [edge(1, 0)]);
    let owned = Owned::new(&[], vec![0, 1], constraints);
    for (name, options) in every_way() {
        let mut backend = backend(name, &options).expect("listed");
        assert_eq!(judge(&mut *backend, &owned, Some(true)), Ok(true));
    }
}
