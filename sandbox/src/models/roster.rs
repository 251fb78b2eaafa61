//! What the models cost, and the frontier models by name.
//!
//! One list for the comparison, the eval roster and the baselines of eval runs.
//! Promise: an id here names no vendor; each model is listed once.

use crate::money::Price;
use bursar_models::category::Category;
use std::time::Duration;

/// Published prices. Assumed (prices): the interface shows none.
pub const FRONTIER_PRICE: Price = Price {
    prompt_per_million: 3_000_000,
    completion_per_million: 15_000_000,
};

/// Published open-fleet price of a specialist. Assumed (prices).
pub fn specialist_price(category: Category) -> Price {
    let (prompt_per_million, completion_per_million) = match category {
        Category::GeneralChat => (200_000, 600_000),
        Category::Coding => (300_000, 1_200_000),
        Category::Vision => (400_000, 1_000_000),
        Category::Extraction => (150_000, 450_000),
        Category::Summarization => (100_000, 400_000),
    };
    Price {
        prompt_per_million,
        completion_per_million,
    }
}

/// How long a model server may take as a specialist before the request is escalated.
/// Assumed (specialist-deadline).
pub fn specialist_deadline(category: Category) -> Duration {
    Duration::from_secs(match category {
        Category::GeneralChat | Category::Extraction | Category::Summarization => 60,
        Category::Vision => 90,
        Category::Coding => 120,
    })
}

/// Assumed (frontier-ids): the ids hold vendor names and are not shown; these name no vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontierModel {
    pub id: &'static str,
    pub vendor: &'static str,
    pub vision: bool,
    /// Interface, `/v1/playground/frontier`: one of four allowed ids.
    pub comparison: bool,
    pub price: Price,
}

const fn model(
    id: &'static str,
    vendor: &'static str,
    vision: bool,
    comparison: bool,
    prompt_per_million: u64,
    completion_per_million: u64,
) -> FrontierModel {
    FrontierModel {
        id,
        vendor,
        vision,
        comparison,
        price: Price {
            prompt_per_million,
            completion_per_million,
        },
    }
}

#[rustfmt::skip]
const ROSTER: &[FrontierModel] = &[
    model("frontier-a", "vendor-a", true,  true,  3_000_000, 15_000_000),
    model("frontier-b", "vendor-b", true,  true,  2_500_000, 10_000_000),
    model("frontier-c", "vendor-c", true,  true,  1_250_000, 10_000_000),
    model("frontier-d", "vendor-a", true,  true,  5_000_000, 25_000_000),
    model("frontier-e", "vendor-b", false, false,   500_000,  2_000_000),
    model("frontier-f", "vendor-d", false, false,   600_000,  2_400_000),
];

pub fn roster() -> &'static [FrontierModel] {
    ROSTER
}

pub fn by_id(id: &str) -> Option<&'static FrontierModel> {
    ROSTER.iter().find(|model| model.id == id)
}
