//! A JSON value as field F1 and exact match see it: leaves, below names and in lists.
//!
//! Promise: what says nothing (null, an empty text, an empty object or array) is not in the tree, so an
//! expected null and a field that is left out are the same.

use super::{
    scalar::Scalar,
    score::{LEAVES_MAX, LIST_MAX, Unscored},
};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub struct Tree {
    pub node: TreeNode,
    /// How many leaves it holds; at least 1.
    pub leaves: usize,
}

#[derive(Clone, Debug)]
pub enum TreeNode {
    Leaf(Scalar),
    List(Vec<Tree>),
    Fields(BTreeMap<String, Tree>),
}

// === impl Tree ===

impl Tree {
    /// `None` when the value holds no leaf; an error when it is larger than the bounds.
    pub fn of(value: &Value) -> Result<Option<Self>, Unscored> {
        let node = match value {
            Value::Array(entries) => {
                let trees = entries
                    .iter()
                    .filter_map(|entry| Self::of(entry).transpose())
                    .collect::<Result<Vec<_>, _>>()?;
                if trees.len() > LIST_MAX {
                    return Err(Unscored::because(format!(
                        "an array of {} entries; {LIST_MAX} are compared at most",
                        trees.len()
                    )));
                }
                TreeNode::List(trees)
            }
            Value::Object(fields) => TreeNode::Fields(
                fields
                    .iter()
                    .filter_map(|(name, value)| match Self::of(value) {
                        Ok(tree) => tree.map(|tree| Ok((name.clone(), tree))),
                        Err(error) => Some(Err(error)),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            scalar => {
                return Ok(Scalar::of(scalar).map(|scalar| Self {
                    node: TreeNode::Leaf(scalar),
                    leaves: 1,
                }));
            }
        };
        let leaves = match &node {
            TreeNode::Leaf(_) => 1,
            TreeNode::List(trees) => trees.iter().map(|tree| tree.leaves).sum(),
            TreeNode::Fields(trees) => trees.values().map(|tree| tree.leaves).sum(),
        };
        if leaves > LEAVES_MAX {
            return Err(Unscored::because(format!(
                "an object of {leaves} values; {LEAVES_MAX} are compared at most"
            )));
        }
        Ok((leaves > 0).then_some(Self { node, leaves }))
    }
}
