//! Several lines cooled at once: each keeps its own nodes and constraints, and all of them take the dispatches of one.

use kingsnake_context::rng::Rng;
use kingsnake_graph::cool::Cooling;

use super::anneal::{is_forward, line, on_twins, read_by, violated};
use crate::anneal_batch::packed;

/// Lines of several sizes, to be cooled at the same temperatures with the same seed.
fn lines(n_lines: usize, n_sweeps: usize, rng: &mut Rng) -> Vec<Cooling> {
    let one = |_| {
        let (n_nodes, n_constraints) = (rng.between(2, 80), rng.between(0, 300));
        Cooling {
            seed: 7,
            ..line(n_nodes, n_constraints, n_sweeps, rng)
        }
    };
    (0..n_lines).map(one).collect()
}

#[test]
fn a_node_of_a_packed_line_reads_what_it_reads_alone() {
    let mut rng = Rng::new(41);
    for _ in 0..20 {
        let lines = lines(5, 3, &mut rng);
        let all = packed(&lines.iter().collect::<Vec<_>>());
        let (mut first, mut n_violated) = (0, 0);
        for line in &lines {
            for id in 0..line.points.len() as u32 {
                let alone: Vec<u32> = read_by(line, id).iter().map(|it| first + it).collect();
                assert_eq!(read_by(&all, first + id), alone);
            }
            first += line.points.len() as u32;
            n_violated += violated(line, &line.points);
        }
        assert_eq!(violated(&all, &all.points), n_violated);
        let mut movers = all.movers.clone();
        movers.sort_unstable();
        movers.dedup();
        assert_eq!(movers.len(), all.movers.len());
        let n_movers: usize = lines.iter().map(|it| it.movers.len()).sum();
        assert_eq!(movers.len(), n_movers);
    }
}

#[test]
fn lines_cooled_at_once_are_cooled_as_well_as_alone() {
    let mut rng = Rng::new(42);
    let (mut alone, mut together) = (0, 0);
    for _ in 0..10 {
        let lines = lines(6, 12, &mut rng);
        let all = packed(&lines.iter().collect::<Vec<_>>());
        let cooled = on_twins(&all);
        assert!(is_forward(&all, &cooled.points));
        assert_eq!(
            cooled.n_violated.iter().min(),
            Some(&violated(&all, &cooled.points))
        );
        together += violated(&all, &cooled.points);
        let each = lines.iter().map(|it| violated(it, &on_twins(it).points));
        alone += each.sum::<u32>();
    }
    // The points kept are of the sweep that is best for all of them, so each alone may have met a better one.
    assert!(together < alone + alone / 4 + 10, "{together}, not {alone}");
}

#[cfg(feature = "wgpu")]
#[test]
fn checks_that_anneal_at_a_time_share_their_dispatches() {
    use crate::{DeviceChoice, GpuCooler, shared_coolers};
    use kingsnake_context::budget::Budget;
    use kingsnake_graph::cool::{Cooled, CoolerSource};
    use kingsnake_graph::prune::Offer;

    drop(super::hardware(
        "a batch of annealings",
        crate::hardware::Opening::default(),
    ));
    let cool = |source: CoolerSource, line: &Cooling| -> Cooled {
        let budget = Budget::unlimited();
        let mut cooler = source.make();
        assert!(matches!(
            cooler.offer(&line.size(), &budget),
            Offer::Taken(_)
        ));
        cooler.cool(line, &budget, &mut |_| true).expect("it cools")
    };
    let mut rng = Rng::new(43);
    let lines = lines(6, 8, &mut rng);
    let mut sources = shared_coolers(&DeviceChoice::Gpu, lines.len() + 1);
    // A check that never anneals does not hold up the others once it is over.
    sources.truncate(lines.len());
    let together: Vec<Cooled> = std::thread::scope(|scope| {
        let threads: Vec<_> = lines
            .iter()
            .zip(sources)
            .map(|(line, source)| scope.spawn(move || cool(source, line)))
            .collect();
        let joined = threads.into_iter().map(|it| it.join().expect("no panic"));
        joined.collect()
    });
    let mut one_by_one = 0;
    for (line, cooled) in lines.iter().zip(&together) {
        assert!(is_forward(line, &cooled.points));
        assert_eq!(cooled.device.shared_by, lines.len() as u32);
        let alone = cool(GpuCooler::source(DeviceChoice::Gpu), line);
        one_by_one += alone.device.dispatches;
    }
    let twins = on_twins(&packed(&lines.iter().collect::<Vec<_>>()));
    let points: Vec<u32> = together.iter().flat_map(|it| it.points.clone()).collect();
    assert_eq!(points, twins.points);
    let packed = together[0].device.dispatches;
    println!("{packed} dispatches for six annealings together, {one_by_one} one by one");
    assert!(packed * 3 < one_by_one, "{packed} against {one_by_one}");
}
