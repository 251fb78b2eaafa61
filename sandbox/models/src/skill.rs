//! What sets the built-in models apart: the passes that each of them makes over a prompt.
//!
//! All of them read with the same methods. A specialist makes the passes of its own kind; a frontier model
//! makes most of them, and each of the roster lacks other ones, so that a comparison has something to find.
//! Promise: a model's passes depend on its name alone, never on chance.

use super::category::Category;

/// A pass beyond the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skill {
    /// Meaning beside shared words.
    Meaning,
    /// "not" turns what stands behind it.
    Negation,
    /// Praise of a nuisance is blame; a threat may use no hard word.
    BetweenLines,
    /// What follows from what is written: a due date from terms of payment.
    Inference,
    /// Figures and exclusions of a query: "under 100", "not waterproof".
    Limits,
    /// A second table beside the one that is asked about.
    Relations,
    /// The whole of a schema: references, combinations, formats, patterns and ranges.
    WholeSchema,
}

/// Which of the two built-in models writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Specialist,
    Frontier,
}

/// All passes but these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skills {
    lacks: &'static [Skill],
}

// === impl Skills ===

impl Skills {
    pub const fn without(lacks: &'static [Skill]) -> Self {
        Self { lacks }
    }

    pub const fn specialist(category: Category) -> Self {
        use Skill::{BetweenLines, Inference, Limits, Meaning, WholeSchema};
        Self::without(match category {
            Category::Extraction => &[BetweenLines, Inference, WholeSchema],
            Category::Coding => &[BetweenLines, Inference, WholeSchema, Meaning],
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
        use Skill::{BetweenLines, Inference, Limits, Meaning, Negation, Relations};
        Self::without(match id {
            "frontier-a" => &[Limits],
            "frontier-b" => &[Inference, BetweenLines],
            "frontier-c" => &[Negation, Relations],
            "frontier-e" => &[Meaning, Inference, BetweenLines, Relations],
            "frontier-f" => &[BetweenLines, Limits],
            _ => &[],
        })
    }

    pub fn has(self, pass: Skill) -> bool {
        !self.lacks.contains(&pass)
    }
}
