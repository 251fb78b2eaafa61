use super::*;

#[test]
fn the_address_for_apps_is_one_that_this_machine_reaches() {
    for (listened, wanted) in [
        (&["127.0.0.1:8327"][..], "http://127.0.0.1:8327/v1"),
        (&["0.0.0.0:8327"], "http://127.0.0.1:8327/v1"),
        (&["[::]:8327"], "http://[::1]:8327/v1"),
        (&["192.0.2.7:9"], "http://192.0.2.7:9/v1"),
        (
            &["unix:/run/bursar.sock", "0.0.0.0:1"],
            "http://127.0.0.1:1/v1",
        ),
        (
            &["unix:/run/a.sock", "unix:/run/b.sock"],
            "unix:/run/a.sock, unix:/run/b.sock",
        ),
    ] {
        let parsed = listened.iter().map(|text| ListenAddr::parse(text));
        let proxy: Vec<ListenAddr> = parsed.collect::<Result<_, _>>().expect("addresses");
        assert_eq!(for_apps(&proxy), wanted, "{listened:?}");
    }
}
