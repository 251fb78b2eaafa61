//! Pairs the entries of two lists so that the most is right overall.
//!
//! The Hungarian method with potentials, O(n² m): a greedy choice can miss the best alignment, and then the
//! score of a right answer would depend on the order it was written in. What a greedy choice gets right is its
//! beginning, so that lists that agree for the most part take O(n m).
//! Promise: the sum is the greatest there is; the bounds of [`super::score::LIST_MAX`] keep it short.

/// The greatest sum of `weight(one, two)` over pairs that use each entry at most once.
pub fn greatest_sum<T>(one: &[T], two: &[T], weight: &dyn Fn(&T, &T) -> usize) -> usize {
    if one.len() > two.len() {
        return greatest_sum(two, one, &|second, first| weight(first, second));
    }
    let mut weights: Vec<Vec<i64>> = one
        .iter()
        .map(|first| {
            two.iter()
                .map(|second| i64::try_from(weight(first, second)).unwrap_or(i64::MAX))
                .collect()
        })
        .collect();
    // An entry that is like no other one adds nothing to any pairing.
    weights.retain(|row| row.iter().any(|weight| *weight > 0));
    usize::try_from(Pairing::of(weights).sum()).unwrap_or(0)
}

/// Rows and columns count from 1; number 0 is the method's own, for "none". Costs are negative weights, and no
/// cost is below the sum of its row's and its column's potential; the cost of a pair is that sum.
struct Pairing {
    weights: Vec<Vec<i64>>,
    row_potential: Vec<i64>,
    column_potential: Vec<i64>,
    /// The row that a column is paired with.
    row_of: Vec<usize>,
}

// === impl Pairing ===

#[expect(
    clippy::indexing_slicing,
    reason = "row and column numbers run below the lengths the vectors are made with"
)]
impl Pairing {
    /// The best pairing of all rows. There are no more rows than columns.
    fn of(weights: Vec<Vec<i64>>) -> Self {
        let columns = weights.first().map_or(0, Vec::len);
        let best = weights
            .iter()
            .map(|row| -row.iter().copied().max().unwrap_or(0));
        let mut pairing = Self {
            row_potential: std::iter::once(0).chain(best).collect(),
            column_potential: vec![0; columns + 1],
            row_of: vec![0; columns + 1],
            weights,
        };
        for row in 1..=pairing.weights.len() {
            let free = (1..=columns)
                .find(|column| pairing.row_of[*column] == 0 && pairing.reduced(row, *column) == 0);
            match free {
                Some(column) => pairing.row_of[column] = row,
                None => pairing.augment(row),
            }
        }
        pairing
    }

    fn sum(&self) -> i64 {
        (1..self.row_of.len())
            .filter(|column| self.row_of[*column] != 0)
            .map(|column| self.weights[self.row_of[column] - 1][column - 1])
            .sum()
    }

    fn reduced(&self, row: usize, column: usize) -> i64 {
        -self.weights[row - 1][column - 1] - self.row_potential[row] - self.column_potential[column]
    }

    /// Pairs one row more: the cheapest chain of changes to the pairs there are, found as by Dijkstra.
    fn augment(&mut self, row: usize) {
        let columns = self.row_of.len();
        self.row_of[0] = row;
        let mut least = vec![i64::MAX; columns];
        let mut before = vec![0; columns];
        let mut used = vec![false; columns];
        let mut column = 0;
        while self.row_of[column] != 0 {
            used[column] = true;
            let at = self.row_of[column];
            let mut delta = i64::MAX;
            let mut next = 0;
            for other in 1..columns {
                if used[other] {
                    continue;
                }
                let reduced = self.reduced(at, other);
                if reduced < least[other] {
                    least[other] = reduced;
                    before[other] = column;
                }
                if least[other] < delta {
                    delta = least[other];
                    next = other;
                }
            }
            for other in 0..columns {
                if used[other] {
                    self.row_potential[self.row_of[other]] += delta;
                    self.column_potential[other] -= delta;
                } else if least[other] != i64::MAX {
                    least[other] -= delta;
                }
            }
            column = next;
        }
        while column != 0 {
            self.row_of[column] = self.row_of[before[column]];
            column = before[column];
        }
        self.row_of[0] = 0;
    }
}
