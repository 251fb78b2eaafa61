use super::*;

#[test]
fn what_a_daemon_says_is_read_as_it_is_meant() {
    let refused = format!("the service answered 401: {}", own_call::KEY_REFUSED);
    type Means = fn(String) -> ServiceProbe;
    let table: [(&str, Means); 6] = [
        (&refused, ServiceProbe::Refuses),
        (
            "the service answered 404: it has no /v1/auto/metrics",
            ServiceProbe::Answered,
        ),
        (
            "the service was not reached: TLS with x failed",
            ServiceProbe::Unreached,
        ),
        (
            "the service did not answer within 30 s",
            ServiceProbe::Unreached,
        ),
        (
            "too many questions at once; try again",
            ServiceProbe::Unasked,
        ),
        (
            "the service's /v1/auto/metrics has no member \"spend\"; set [reconcile] spend_field",
            |_| ServiceProbe::Took(None),
        ),
    ];
    for (words, wanted) in table {
        assert_eq!(as_said(words.to_owned()), wanted(words.to_owned()));
    }
}
