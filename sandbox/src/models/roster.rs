//! The frontier models by name: what they cost and what they can see.
//!
//! One list for the comparison, the eval roster and the baselines of eval runs.
//! Promise: an id here names no vendor; a model stands once.

use crate::money::Price;

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
