//! The kinds of work that a model is asked for, coarse as a client sees them.

/// What `X-Service-Specialist` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Category {
    GeneralChat,
    Coding,
    Vision,
    Extraction,
    Summarization,
}

const ALL: [Category; 5] = [
    Category::GeneralChat,
    Category::Coding,
    Category::Vision,
    Category::Extraction,
    Category::Summarization,
];

// === impl Category ===

impl Category {
    pub fn by_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|one| one.as_str() == name)
    }

    /// All names, for an error.
    pub fn names() -> String {
        ALL.map(Self::as_str).join(", ")
    }

    /// Interface, `X-Service-Session`: "a modality change (an image turn in a text conversation) re-routes".
    pub fn same_modality(self, other: Self) -> bool {
        (self == Self::Vision) == (other == Self::Vision)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::GeneralChat => "general-chat",
            Self::Coding => "coding",
            Self::Vision => "vision",
            Self::Extraction => "extraction",
            Self::Summarization => "summarization",
        }
    }
}
