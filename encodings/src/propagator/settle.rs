//! A better order to start from: the nodes as points on a line, pushed apart by edges and pulled together by springs.
//!
//! A known edge that runs backward, or too short, pushes its ends apart. A constraint pushes along the side that is nearer to being
//! met, which is chosen anew in each sweep (alternating projections). Where one side forbids a node before several
//! others, these lie close together in a real execution (a version and its readers), so a spring pulls them together, and
//! slackens from sweep to sweep. Where the known graph is sparse this guesses far better than counting ancestors.
//!
//! Nothing depends on the result but speed: it is only ever a linear extension of the known graph.

use kingsnake_solver::decide::Question;
use rustsat::types::Lit;

use super::graph::Sides;
use super::start;
use super::watch::Watch;

/// More sweeps than this gain little.
const SWEEPS: usize = 300;
/// Over all sweeps, so many edges are visited at most.
const VISITS: usize = 200_000_000;
/// The line is made a linear extension again after so many sweeps.
const STRIDE: usize = 20;
/// The share of its excess length by which a spring moves each end, at first.
const PULL: f32 = 0.2;
/// A spring rests at this length.
const REST: f32 = 2.0;

/// The best order met on the way, as places.
pub(crate) fn settle(
    question: &Question<'_>,
    sides: &Sides,
    places: &[u32],
    watch: &Watch,
) -> Vec<u32> {
    let springs = springs(sides);
    let visits = question.targets.len() + sides.n_edges() + springs.len();
    let sweeps = SWEEPS.min(VISITS / visits.max(1));
    let mut best = (n_violated(sides, places), places.to_vec());
    let mut line: Vec<f32> = places.iter().map(|&place| place as f32).collect();
    for sweep in 1..=sweeps {
        if best.0 == 0 || watch.over() {
            break;
        }
        push_known(question, &mut line);
        let pull = PULL * (1.0 - sweep as f32 / sweeps as f32);
        for &(a, b) in &springs {
            let length = line[b as usize] - line[a as usize];
            if length.abs() > REST {
                let shift = pull * (length - REST.copysign(length));
                line[a as usize] += shift;
                line[b as usize] -= shift;
            }
        }
        push_sides(sides, &mut line);
        if sweep.is_multiple_of(STRIDE) || sweep == sweeps {
            let Some(places) = extension(question, &line) else {
                break;
            };
            for (point, &place) in line.iter_mut().zip(&places) {
                *point = place as f32;
            }
            let violated = n_violated(sides, &places);
            if violated < best.0 {
                best = (violated, places);
            }
        }
    }
    best.1
}

/// Moves both ends by half of what is missing to the distance of one place.
#[inline]
fn push(line: &mut [f32], from: u32, to: u32) {
    let missing = 1.0 - (line[to as usize] - line[from as usize]);
    if missing > 0.0 {
        line[from as usize] -= missing / 2.0;
        line[to as usize] += missing / 2.0;
    }
}

fn push_known(question: &Question<'_>, line: &mut [f32]) {
    for from in 0..question.n_nodes {
        for &to in start::successors(question, from) {
            push(line, from as u32, to);
        }
    }
}

fn push_sides(sides: &Sides, line: &mut [f32]) {
    for constraint in 0..sides.n_constraints() as u32 {
        let slack = |lit: Lit| {
            sides
                .edges(lit)
                .map(|edge| {
                    let (from, to) = sides.ends(edge);
                    line[to as usize] - line[from as usize]
                })
                .fold(f32::MAX, f32::min)
        };
        let lit = Lit::positive(constraint);
        let (either, or) = (slack(lit), slack(!lit));
        if either >= 1.0 || or >= 1.0 {
            continue;
        }
        for edge in sides.edges(if either >= or { lit } else { !lit }) {
            let (from, to) = sides.ends(edge);
            push(line, from, to);
        }
    }
}

/// Neighbouring edges of one side with the same target: their sources belong together.
fn springs(sides: &Sides) -> Vec<(u32, u32)> {
    let mut springs = Vec::new();
    for constraint in 0..sides.n_constraints() as u32 {
        for lit in [Lit::positive(constraint), Lit::negative(constraint)] {
            let edges = sides.edges(lit);
            for edge in edges.clone().skip(1) {
                let ((a, target), (b, other)) = (sides.ends(edge - 1), sides.ends(edge));
                if target == other && a != b {
                    springs.push((a, b));
                }
            }
        }
    }
    springs.sort_unstable();
    springs.dedup();
    springs
}

/// The linear extension of the known graph that follows the line.
fn extension(question: &Question<'_>, line: &[f32]) -> Option<Vec<u32>> {
    let mut order: Vec<u32> = (0..line.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| {
        line[a as usize]
            .total_cmp(&line[b as usize])
            .then(a.cmp(&b))
    });
    let mut priority = vec![0u32; line.len()];
    for (place, &node) in order.iter().enumerate() {
        priority[node as usize] = place as u32;
    }
    start::sort(question, &priority)
}

fn n_violated(sides: &Sides, places: &[u32]) -> usize {
    (0..sides.n_constraints() as u32)
        .filter(|&constraint| {
            let lit = Lit::positive(constraint);
            !sides.forward(lit, places) && !sides.forward(!lit, places)
        })
        .count()
}
