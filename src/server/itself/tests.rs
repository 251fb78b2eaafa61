use super::check;
use crate::config::{BaseUrl, ListenAddr};

#[test]
fn a_base_url_that_leads_to_an_own_address_is_refused_however_it_is_spelled() {
    let rows = [
        ("127.0.0.1:8327", "http://127.0.0.1:8327", false),
        ("127.0.0.1:8327", "http://localhost:8327", false),
        ("127.0.0.1:8327", "http://LOCALHOST:8327/pre", false),
        ("127.0.0.1:8327", "http://[::ffff:127.0.0.1]:8327", false),
        ("127.0.0.1:8327", "https://127.0.0.1:8327", false),
        ("127.0.0.1:8327", "https://0.0.0.0:8327", false),
        ("[::1]:8327", "http://[::1]:8327", false),
        ("[::1]:8327", "http://localhost:8327", false),
        ("[::1]:8327", "https://[::]:8327", false),
        ("[::ffff:127.0.0.1]:8327", "http://127.0.0.1:8327", false),
        ("0.0.0.0:8327", "http://127.0.0.1:8327", false),
        ("0.0.0.0:8327", "http://127.0.0.9:8327", false),
        ("[::]:8327", "http://127.0.0.1:8327", false),
        ("[::]:8327", "http://[::1]:8327", false),
        ("127.0.0.9:443", "https://127.0.0.9", false),
        ("127.0.0.1:8327", "http://127.0.0.1:8326", true),
        ("127.0.0.1:8327", "http://127.0.0.9:8327", true),
        ("127.0.0.1:8327", "http://[::1]:8327", true),
        ("[::1]:8327", "http://127.0.0.1:8327", true),
        ("0.0.0.0:8327", "http://[::1]:8327", true),
        // Of no machine: the addresses of documents.
        ("0.0.0.0:8327", "https://192.0.2.1:8327", true),
        ("127.0.0.1:8327", "https://name.invalid:8327", true),
        ("127.0.0.1:8327", "https://api.example", true),
    ];
    for (own, base_url, passes) in rows {
        let listening = [
            ListenAddr::Unix("/run/bursar.sock".into()),
            ListenAddr::Tcp("127.0.0.2:1".parse().expect("an address")),
            ListenAddr::parse(own).expect("an address"),
        ];
        let checked = check(&BaseUrl::parse(base_url).expect("a URL"), &listening);
        assert_eq!(checked.is_ok(), passes, "{base_url} at {own}");
        if let Err(error) = checked {
            let text = error.to_string();
            assert!(text.contains(own), "{text}");
            assert!(text.contains("base_url"), "{text}");
        }
    }
}
