//! What sets the built-in models apart: the passes that each of them makes over a prompt.
//!
//! All of them read with the same methods. A specialist makes the passes of its own kind; a frontier model
//! makes most of them, and each of the roster lacks other ones, so that a comparison has something to find.
//! Promise: a model's passes depend on its name alone, never on chance.

use super::category::Category;

/// A pass beyond the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Meaning beside shared words.
    Meaning,
    /// "not" turns what stands behind it.
    Negation,
    /// Praise of a nuisance is blame; a threat may use no hard word.
    BetweenLines,
    /// What follows from what is written: a due date from terms of payment.
    Inference,
    /// Names and roles in sentences, not only in labelled lines.
    Prose,
    /// Figures and exclusions of a query: "under 100", "not waterproof".
    Limits,
    /// Several tables, several languages: what needs more than one thing at a time.
    Relations,
    /// The whole of a schema: references, combinations, formats, patterns and ranges.
    WholeSchema,
}

/// All passes but these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skills {
    lacks: &'static [Pass],
}

// === impl Skills ===

impl Skills {
    pub const fn without(lacks: &'static [Pass]) -> Self {
        Self { lacks }
    }

    pub const fn specialist(category: Category) -> Self {
        use Pass::{BetweenLines, Inference, Limits, Meaning, Prose, WholeSchema};
        Self::without(match category {
            Category::Extraction => &[BetweenLines, Inference, WholeSchema],
            Category::Coding => &[BetweenLines, Inference, WholeSchema, Meaning, Prose],
            Category::Vision | Category::Summarization | Category::GeneralChat => {
                &[BetweenLines, Inference, WholeSchema, Limits]
            }
        })
    }

    /// The frontier model behind `auto`.
    pub const fn frontier() -> Self {
        Self::without(&[])
    }

    /// A frontier model by its name.
    pub fn of_name(id: &str) -> Self {
        use Pass::{BetweenLines, Inference, Limits, Meaning, Negation, Prose, Relations};
        Self::without(match id {
            "frontier-a" => &[Limits],
            "frontier-b" => &[Inference, BetweenLines],
            "frontier-c" => &[Negation, Relations],
            "frontier-e" => &[Meaning, Inference, BetweenLines, Relations],
            "frontier-f" => &[Prose, BetweenLines, Limits],
            _ => &[],
        })
    }

    pub fn has(self, pass: Pass) -> bool {
        !self.lacks.contains(&pass)
    }
}
