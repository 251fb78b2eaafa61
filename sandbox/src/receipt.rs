//! The receipt of an answer, as headers or as stream comments.
//!
//! Promise: one receipt gives both forms, so that they cannot disagree; faults on a receipt are applied
//! here and nowhere else.

use crate::{
    fault::{Fault, ReceiptField},
    models::{Category, MissingInput, Served},
    money::MicroUsd,
    spec,
};
use http::{HeaderMap, HeaderName, HeaderValue};

#[derive(Clone, Debug)]
pub struct Receipt {
    billed: MicroUsd,
    would_have_cost: MicroUsd,
    served_by: &'static str,
    specialist: Option<Category>,
    escalated: bool,
    missing_input: Option<MissingInput>,
}

// === impl Receipt ===

impl Receipt {
    pub fn new(served: &Served, billed: MicroUsd) -> Self {
        Self {
            billed,
            would_have_cost: served.would_have_cost,
            served_by: served.served_by.as_str(),
            specialist: served.specialist,
            escalated: served.escalated,
            missing_input: served.missing_input,
        }
    }

    /// Interface, POST /v1/chat/completions, response headers.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        set(&mut headers, spec::BILLED, &self.billed.to_string());
        set(
            &mut headers,
            spec::WOULD_HAVE_COST,
            &self.would_have_cost.to_string(),
        );
        set(&mut headers, spec::SERVED_BY, self.served_by);
        set(&mut headers, spec::ROUTE_VERSION, spec::ROUTE_VERSION_VALUE);
        // Assumed (escalated-false): `false` is written out when there was no escalation.
        set(
            &mut headers,
            spec::ESCALATED,
            if self.escalated { "true" } else { "false" },
        );
        if let Some(category) = self.specialist {
            set(&mut headers, spec::SPECIALIST, category.as_str());
        }
        if let Some(missing) = self.missing_input {
            set(&mut headers, spec::INPUT_REQUIRED, missing.names().0);
        }
        headers
    }

    /// Interface, agent lane: "Non-streamed responses carry `X-Service-Billed`". Assumed
    /// (agent-receipt-headers): and the route version, but none of the other receipt headers.
    pub fn agent_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        set(&mut headers, spec::BILLED, &self.billed.to_string());
        set(&mut headers, spec::ROUTE_VERSION, spec::ROUTE_VERSION_VALUE);
        headers
    }

    /// Interface, streaming: the four comment lines just before `[DONE]`, without their line ends.
    pub fn comments(&self, fault: &Fault) -> Vec<String> {
        let fields = [
            (
                ReceiptField::Billed,
                spec::COMMENT_BILLED,
                self.billed.to_string(),
            ),
            (
                ReceiptField::FrontierWouldHaveCost,
                spec::COMMENT_WOULD_HAVE_COST,
                self.would_have_cost.to_string(),
            ),
            (
                ReceiptField::ServedBy,
                spec::COMMENT_SERVED_BY,
                self.served_by.to_owned(),
            ),
            (
                ReceiptField::RouteVersion,
                spec::COMMENT_ROUTE_VERSION,
                spec::ROUTE_VERSION_VALUE.to_owned(),
            ),
        ];
        let mut lines = Vec::new();
        for _ in 0..=fault.duplicate_receipt {
            for (field, name, value) in &fields {
                if let Some(value) = fault.receipt_value(*field, value.clone()) {
                    lines.push(format!(": {name} {value}"));
                }
            }
        }
        lines
    }
}

/// Applies a fault to the receipt headers of an answer.
pub fn spoil(headers: &mut HeaderMap, fault: &Fault) {
    let fields = [
        (ReceiptField::Billed, spec::BILLED),
        (ReceiptField::FrontierWouldHaveCost, spec::WOULD_HAVE_COST),
        (ReceiptField::ServedBy, spec::SERVED_BY),
        (ReceiptField::RouteVersion, spec::ROUTE_VERSION),
        (ReceiptField::Specialist, spec::SPECIALIST),
        (ReceiptField::Escalated, spec::ESCALATED),
    ];
    for (field, name) in fields {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            continue;
        };
        if let Some(text) = fault.receipt.get(&field) {
            headers.remove(&name);
            if let Some(value) = text
                .as_deref()
                .and_then(|text| HeaderValue::from_str(text).ok())
            {
                headers.insert(name.clone(), value);
            }
        }
        if fault.no_receipt {
            headers.remove(&name);
        }
        if let Some(value) = headers.get(&name).cloned() {
            for _ in 0..fault.duplicate_receipt {
                headers.append(name.clone(), value.clone());
            }
        }
    }
}

/// Sets a header whose name and value this side spells.
pub fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (
        HeaderName::from_bytes(name.as_bytes()),
        HeaderValue::from_str(value),
    ) {
        headers.insert(name, value);
    } else {
        debug_assert!(false, "a header of our own must be valid: {name}");
    }
}
