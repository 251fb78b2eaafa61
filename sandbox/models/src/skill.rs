//! What sets the built-in models apart: the passes each of them makes over a prompt.
//!
//! All of them read with the same methods. A specialist makes the passes of its own kind; a frontier model
//! makes most of them, and each of the roster lacks other ones, so that a comparison has something to find.
//! Promise: a model's passes depend on its name alone, never on chance.

use super::category::Category;

/// The passes beyond the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "passes are made or not, each by itself"
)]
pub struct Skills {
    /// Meaning beside shared words.
    pub meaning: bool,
    /// "not" turns what stands behind it.
    pub negation: bool,
    /// Praise of a nuisance is blame; a threat may use no hard word.
    pub between_lines: bool,
    /// What follows from what is written: a due date from terms of payment.
    pub inference: bool,
    /// Names and roles in sentences, not only in labelled lines.
    pub prose: bool,
    /// Figures and exclusions of a query: "under 100", "not waterproof".
    pub limits: bool,
    /// Several tables, several languages: what needs more than one thing at a time.
    pub relations: bool,
    /// The whole of a schema: references, combinations, formats, patterns and ranges.
    pub whole_schema: bool,
}

const ALL: Skills = Skills {
    meaning: true,
    negation: true,
    between_lines: true,
    inference: true,
    prose: true,
    limits: true,
    relations: true,
    whole_schema: true,
};

// === impl Skills ===

impl Skills {
    pub const fn specialist(category: Category) -> Self {
        let plain = Self {
            between_lines: false,
            inference: false,
            whole_schema: false,
            ..ALL
        };
        match category {
            Category::Extraction => plain,
            Category::Coding => Self {
                meaning: false,
                prose: false,
                ..plain
            },
            Category::Vision | Category::Summarization | Category::GeneralChat => Self {
                limits: false,
                ..plain
            },
        }
    }

    /// The frontier model behind `auto`.
    pub const fn frontier() -> Self {
        ALL
    }

    /// A frontier model by its name.
    pub fn of_name(id: &str) -> Self {
        match id {
            "frontier-a" => Self {
                limits: false,
                ..ALL
            },
            "frontier-b" => Self {
                inference: false,
                between_lines: false,
                ..ALL
            },
            "frontier-c" => Self {
                negation: false,
                relations: false,
                ..ALL
            },
            "frontier-e" => Self {
                meaning: false,
                inference: false,
                between_lines: false,
                relations: false,
                ..ALL
            },
            "frontier-f" => Self {
                prose: false,
                between_lines: false,
                limits: false,
                ..ALL
            },
            _ => ALL,
        }
    }
}
