//! Field-level F1: how many of the expected values are in the answer, at their place.
//!
//! Interface, Task: "field-F1 for extraction".
//! Promise: a leaf counts only below the same names; entries of an array are aligned so that most is right,
//! whatever their order; a wrong value costs precision and recall, one too many precision, one that is
//! missing recall.

use super::{
    assignment::greatest_sum,
    score::{Score, Unscored, f1},
    tree::{Tree, TreeNode},
};
use serde_json::Value;

pub fn score(expected: &Value, answer: &Value) -> Score {
    compared(expected, answer).map(|(matched, expected, answered)| f1(matched, expected, answered))
}

/// Leaves that are right, leaves that are expected, leaves in the answer.
pub fn compared(expected: &Value, answer: &Value) -> Result<(usize, usize, usize), Unscored> {
    if expected.is_object() && !answer.is_object() {
        return Err(Unscored::because("the answer is no JSON object"));
    }
    let (expected, answer) = (Tree::of(expected)?, Tree::of(answer)?);
    let right = match (&expected, &answer) {
        (Some(expected), Some(answer)) => matched(expected, answer),
        _ => 0,
    };
    let leaves = |tree: &Option<Tree>| tree.as_ref().map_or(0, |tree| tree.leaves);
    Ok((right, leaves(&expected), leaves(&answer)))
}

fn matched(expected: &Tree, answer: &Tree) -> usize {
    match (&expected.node, &answer.node) {
        (TreeNode::Leaf(one), TreeNode::Leaf(two)) => usize::from(one.same(two)),
        (TreeNode::Fields(expected), TreeNode::Fields(answer)) => expected
            .iter()
            .filter_map(|(name, tree)| Some(matched(tree, answer.get(name)?)))
            .sum(),
        (TreeNode::List(expected), TreeNode::List(answer)) => {
            greatest_sum(expected, answer, &matched)
        }
        _ => 0,
    }
}
