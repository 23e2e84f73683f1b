//! Graphs like those of histories: sessions that advance together, and edges a short way ahead in time, since transactions
//! read what was written lately.

use std::ops::Range;

use crate::edge::Edge;
use crate::reach::Dag;
use kingsnake_context::rng::Rng;

/// The parameters of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionGraph {
    /// Number of nodes.
    pub n_nodes: u32,
    /// Average number of edges per node.
    pub degree: u32,
    /// Number of sessions.
    pub n_sessions: u32,
    /// Largest distance between the two nodes of an edge.
    pub span: u32,
}

impl SessionGraph {
    /// The sessions, as ranges of nodes.
    pub fn sessions(self) -> Vec<Range<u32>> {
        let length = self.n_nodes.div_ceil(self.n_sessions.max(1)).max(1);
        (0..self.n_nodes)
            .step_by(length as usize)
            .map(|start| start..self.n_nodes.min(start + length))
            .collect()
    }

    /// The graph. It depends only on the numbers.
    pub fn dag(self) -> Dag {
        let n = self.n_nodes as usize;
        let sessions = self.sessions();
        let in_time = in_time(&sessions);
        let edge = Edge::plain;
        let mut edges: Vec<Edge> = sessions
            .iter()
            .flat_map(|session| (session.start + 1..session.end).map(|to| edge(to - 1, to)))
            .collect();
        let mut rng = Rng::new(u64::from(self.n_nodes) * 1000 + u64::from(self.degree));
        while n > 1 && edges.len() < n * self.degree as usize {
            let from = rng.below(n - 1);
            let to = (from + 1 + rng.below(self.span.max(1) as usize)).min(n - 1);
            edges.push(edge(in_time[from], in_time[to]));
        }
        match Dag::new(n, edges.iter()) {
            Ok(dag) => dag,
            Err(_) => unreachable!("every edge goes forward in time"),
        }
    }
}

/// The nodes as time passes: the first of each session, then the second of each.
fn in_time(sessions: &[Range<u32>]) -> Vec<u32> {
    let length = sessions.iter().map(ExactSizeIterator::len).max();
    let all = (0..length.unwrap_or(0) as u32).flat_map(|at| {
        let nodes = sessions.iter().map(move |session| session.start + at);
        nodes
            .zip(sessions)
            .filter(|(node, session)| *node < session.end)
    });
    all.map(|it| it.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_the_edges_that_were_asked_for_and_its_sessions_are_paths() {
        let of = SessionGraph {
            n_nodes: 103,
            degree: 4,
            n_sessions: 10,
            span: 20,
        };
        let dag = of.dag();
        assert_eq!((dag.n_nodes(), dag.n_edges()), (103, 412));
        let sessions = of.sessions();
        assert_eq!(
            sessions.iter().map(ExactSizeIterator::len).sum::<usize>(),
            103
        );
        for session in sessions {
            for node in session.start + 1..session.end {
                assert!(dag.successors(node - 1).contains(&node));
            }
        }
    }

    #[test]
    fn no_nodes_and_one_node_are_graphs_too() {
        for n_nodes in [0, 1] {
            let of = SessionGraph {
                n_nodes,
                degree: 3,
                n_sessions: 5,
                span: 10,
            };
            assert_eq!(
                (of.dag().n_nodes(), of.dag().n_edges()),
                (n_nodes as usize, 0)
            );
        }
    }
}
