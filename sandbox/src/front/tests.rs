use super::*;

// Interface, Errors 503: "the Idempotency-Key check is briefly unavailable; … on the agent lane
// `Retry-After` is 30 seconds"
#[test]
fn every_503_of_the_agent_lane_asks_for_30_seconds() {
    let retry_after = |error: ServiceError| {
        let mut response = error.into_response();
        ask_for_patience(&mut response);
        let seconds = response.headers().get(header::RETRY_AFTER).cloned();
        seconds.and_then(|seconds| seconds.to_str().ok()?.parse::<u32>().ok())
    };

    assert_eq!(retry_after(ServiceError::KeyCheckUnavailable), Some(30));
    let retry_after_s = 30;
    assert_eq!(
        retry_after(ServiceError::BackendUnavailable { retry_after_s }),
        Some(30)
    );
    assert_eq!(retry_after(ServiceError::Internal), None);
}
