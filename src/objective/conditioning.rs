//! Conditioning sets as a graph, and whether the likelihood that they define is normalised.

/// The conditioning sets of a sequence: for each position `i`, the positions `D_i` whose tokens the
/// prediction of token `i` is conditioned on.
///
/// # Source
/// Structure paper, section 2 (`D_i`) and the appendix's remark on likelihood and pseudo-likelihood (the
/// graph with an edge from every member of `D_i` to `i`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditioningGraph {
    sets: Vec<Vec<usize>>,
}

impl ConditioningGraph {
    /// The graph of the sets `D_0, D_1, …`. Members that are no position of the sequence are dropped.
    pub fn new(mut sets: Vec<Vec<usize>>) -> Self {
        let n = sets.len();
        for set in &mut sets {
            set.retain(|&j| j < n);
        }
        Self { sets }
    }

    /// The number of positions.
    pub fn n(&self) -> usize {
        self.sets.len()
    }

    /// The conditioning set of each position.
    pub fn sets(&self) -> &[Vec<usize>] {
        &self.sets
    }

    /// How many predictions each position serves as context.
    pub fn context_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.n()];
        for &j in self.sets.iter().flatten() {
            counts[j] += 1;
        }
        counts
    }

    /// How many positions each position is predicted from.
    pub fn target_counts(&self) -> Vec<usize> {
        self.sets.iter().map(Vec::len).collect()
    }

    /// Whether no token conditions itself, directly or through others.
    ///
    /// The product of the conditionals along an acyclic graph is a normalised distribution; along a graph
    /// with cycles it need not be, and its logarithm is a pseudo-likelihood. Positions are taken away
    /// whose conditioning sets are exhausted until none is left (Kahn); `O(n + edges)`.
    pub fn is_acyclic(&self) -> bool {
        let mut children = vec![Vec::new(); self.n()];
        for (i, set) in self.sets.iter().enumerate() {
            for &j in set {
                children[j].push(i);
            }
        }
        let mut waits_for = self.target_counts();
        let mut ready: Vec<usize> = (0..self.n()).filter(|&i| waits_for[i] == 0).collect();
        let mut ordered = 0;
        while let Some(j) = ready.pop() {
            ordered += 1;
            for &i in &children[j] {
                waits_for[i] -= 1;
                if waits_for[i] == 0 {
                    ready.push(i);
                }
            }
        }
        ordered == self.n()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_of_one_two_and_three() {
        let graph = |sets: &[&[usize]]| ConditioningGraph::new(sets.iter().map(|s| s.to_vec()).collect());
        assert!(graph(&[]).is_acyclic());
        assert!(graph(&[&[], &[]]).is_acyclic());
        assert!(!graph(&[&[0]]).is_acyclic());
        assert!(!graph(&[&[1], &[0]]).is_acyclic());
        assert!(!graph(&[&[2], &[0], &[1]]).is_acyclic());
        // Any order will do, as the chain rule holds for any permutation.
        assert!(graph(&[&[2, 1], &[2], &[]]).is_acyclic());
        // A cycle apart from an acyclic part.
        assert!(!graph(&[&[], &[0], &[3], &[2]]).is_acyclic());
    }

    #[test]
    fn counts_are_out_and_in_degrees() {
        let graph = ConditioningGraph::new(vec![vec![], vec![0], vec![0, 1, 7]]);
        assert_eq!(graph.context_counts(), [2, 1, 0]);
        assert_eq!(graph.target_counts(), [0, 1, 2]);
    }
}
