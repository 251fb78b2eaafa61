use super::*;

fn url(text: &str) -> BaseUrl {
    BaseUrl::parse(text).unwrap()
}

#[test]
fn a_base_url_is_taken_apart() {
    // Text; tls; host; port; prefix; Host header; in print.
    let table = [
        (
            "https://a.example",
            true,
            "a.example",
            443,
            "",
            "a.example",
            "https://a.example",
        ),
        (
            "https://a.example/",
            true,
            "a.example",
            443,
            "",
            "a.example",
            "https://a.example",
        ),
        (
            "HTTPS://A.Example.:443//",
            true,
            "a.example",
            443,
            "",
            "a.example",
            "https://a.example",
        ),
        (
            "https://a:8443/x/y/",
            true,
            "a",
            8443,
            "/x/y",
            "a:8443",
            "https://a:8443/x/y",
        ),
        (
            "http://127.0.0.1:8329",
            false,
            "127.0.0.1",
            8329,
            "",
            "127.0.0.1:8329",
            "http://127.0.0.1:8329",
        ),
        (
            "http://localhost",
            false,
            "localhost",
            80,
            "",
            "localhost",
            "http://localhost",
        ),
        (
            "http://[::1]:81",
            false,
            "::1",
            81,
            "",
            "[::1]:81",
            "http://[::1]:81",
        ),
        (
            "https://[2001:DB8::1]",
            true,
            "2001:db8::1",
            443,
            "",
            "[2001:db8::1]",
            "https://[2001:db8::1]",
        ),
        (
            "https://10.0.0.7:443",
            true,
            "10.0.0.7",
            443,
            "",
            "10.0.0.7",
            "https://10.0.0.7",
        ),
        (
            "http://127.9.9.9:",
            false,
            "127.9.9.9",
            80,
            "",
            "127.9.9.9",
            "http://127.9.9.9",
        ),
    ];
    for (text, tls, host, port, path_prefix, authority, printed) in table {
        let url = url(text);
        let expected = BaseUrl {
            tls,
            host: host.to_owned(),
            port,
            path_prefix: path_prefix.to_owned(),
        };
        assert_eq!(url, expected, "{text}");
        assert_eq!(url.authority(), authority, "{text}");
        assert_eq!(url.to_string(), printed, "{text}");
    }
}

#[test]
fn a_base_url_that_is_no_place_for_the_key_is_refused() {
    let table = [
        ("", "is not a URL; write https://HOST"),
        ("api.example.com", "is not a URL; write https://HOST"),
        (
            "ftp://a.example",
            "\"ftp://a.example\" is neither https nor http",
        ),
        ("https://", "\"https://\" has no host"),
        ("https:///x", "\"https:///x\" has no host"),
        ("https://:443", "\"https://:443\" has no host"),
        ("https://.", "\"https://.\" has no host"),
        (
            "https://user:pw@a.example",
            "holds a user name or password; the key goes into api_key_file",
        ),
        (
            "https://a.example?x=1",
            "holds a query or fragment; leave it out",
        ),
        (
            "https://a.example/#x",
            "holds a query or fragment; leave it out",
        ),
        (
            "http://a.example",
            "\"http://a.example\" would send the key unencrypted; plain http is for loopback hosts only, write https",
        ),
        (
            "http://localhost.example",
            "\"http://localhost.example\" would send the key unencrypted; plain http is for loopback hosts only, write https",
        ),
        (
            "http://0.0.0.0",
            "\"http://0.0.0.0\" would send the key unencrypted; plain http is for loopback hosts only, write https",
        ),
        (
            "https://a.example:0",
            "\"https://a.example:0\" has no valid port",
        ),
        (
            "https://a.example:65536",
            "\"https://a.example:65536\" has no valid port",
        ),
        (
            "https://a.example:+1",
            "\"https://a.example:+1\" has no valid port",
        ),
        (
            "https://a.example:8x",
            "\"https://a.example:8x\" has no valid port",
        ),
        ("https://[::1", "\"https://[::1\" has no closing bracket"),
        (
            "https://[a]",
            "\"https://[a]\" has no IPv6 address between its brackets",
        ),
        ("https://::1", "\"https://::1\" has no valid port"),
        (
            "https://a b",
            "\"https://a b\" has no valid host name (letters, digits, hyphens; punycode for others)",
        ),
        (
            "https://1.2.3",
            "\"https://1.2.3\" has no valid host name (letters, digits, hyphens; punycode for others)",
        ),
        (
            "https://é.example",
            "\"https://é.example\" has no valid host name (letters, digits, hyphens; punycode for others)",
        ),
        (
            "https://a.example/x/../y",
            "\"https://a.example/x/../y\" has a path with empty, dotted or encoded parts",
        ),
        (
            "https://a.example/x//y",
            "\"https://a.example/x//y\" has a path with empty, dotted or encoded parts",
        ),
        (
            "https://a.example/%2e",
            "\"https://a.example/%2e\" has a path with empty, dotted or encoded parts",
        ),
        (
            "https://a.example/agent/v1",
            "\"https://a.example/agent/v1\" ends in /agent/v1; leave that out, each route brings its own",
        ),
        (
            "https://a.example\r\nX: y",
            "\"https://a.example\\r\\nX: y\" has no valid port",
        ),
    ];
    for (text, message) in table {
        assert_eq!(BaseUrl::parse(text), Err(message.to_owned()));
    }
}

#[test]
fn the_v1_that_clients_have_in_their_base_url_is_taken_for_what_it_is() {
    for (text, wanted) in [
        ("https://a.example/v1", "https://a.example"),
        ("https://a.example/v1/", "https://a.example"),
        ("https://a.example/api/v1", "https://a.example/api"),
        ("https://a.example/av1", "https://a.example/av1"),
    ] {
        assert_eq!(
            BaseUrl::parse(text).map(|url| url.to_string()),
            Ok(wanted.to_owned())
        );
    }
}

#[test]
fn only_loopback_is_listened_on() {
    for text in [
        "127.0.0.1:8327",
        "[::1]:0",
        "127.1.2.3:1",
        "[::ffff:127.0.0.1]:9",
    ] {
        assert!(
            matches!(ListenAddr::parse(text), Ok(ListenAddr::Tcp(_))),
            "{text}"
        );
        assert_eq!(ListenAddr::parse(text).unwrap().to_string(), text);
    }
    let socket = ListenAddr::parse("unix:/run/b.sock").unwrap();
    assert_eq!(socket, ListenAddr::Unix(PathBuf::from("/run/b.sock")));
    assert_eq!(socket.to_string(), "unix:/run/b.sock");

    for text in [
        "0.0.0.0:1",
        "[::]:1",
        "10.0.0.1:1",
        "[fe80::1]:1",
        "[::ffff:10.0.0.1]:1",
    ] {
        assert!(!ListenAddr::parse(text).unwrap().is_local(), "{text}");
    }
    for text in ["127.0.0.1:1", "127.9.9.9:0", "[::1]:1", "unix:/run/x"] {
        assert!(ListenAddr::parse(text).unwrap().is_local(), "{text}");
    }
    for text in [
        "",
        "8327",
        ":8327",
        "localhost:8327",
        "127.0.0.1",
        "http://127.0.0.1:1",
        "unix",
    ] {
        assert_eq!(
            ListenAddr::parse(text).unwrap_err(),
            format!(
                "{text:?} is neither \"IP:PORT\" (127.0.0.1:8327, [::1]:8327) nor \"unix:/path\""
            )
        );
    }
    assert!(
        ListenAddr::parse("unix:b.sock")
            .unwrap_err()
            .contains("from the root")
    );
    let longest = format!("unix:/{}", "s".repeat(106));
    assert!(ListenAddr::parse(&longest).is_ok());
    assert!(
        ListenAddr::parse(&format!("{longest}s"))
            .unwrap_err()
            .contains("107 bytes")
    );
}

#[test]
fn an_extra_route_is_an_exact_method_and_path() {
    let route = extra_route("POST /v1/x").unwrap();
    assert_eq!(
        (route.method.as_str(), route.path.as_str()),
        ("POST", "/v1/x")
    );

    for text in [
        "",
        "/v1/x",
        "POST",
        "POST v1/x",
        "POST  /v1/x",
        "POST /v1/x ",
        "POST /",
        "POST /v1/../x",
        "POST /v1/%2e",
        "POST /v1/x?y",
        "POST /v1//x",
        "POST /v1/x/",
        "post /v1/x",
        "CONNECT /v1/x",
        "TRACE /v1/x",
        "HEAD /v1/x",
        "* /v1/x",
    ] {
        assert!(extra_route(text).is_err(), "{text:?}");
    }
}

#[test]
fn an_alias_is_looked_up_once_and_exactly() {
    let mut aliases = Aliases::default();
    assert!(aliases.is_empty());
    assert_eq!(aliases.target("gpt-4o"), None);

    aliases.add("gpt-4o".to_owned(), "auto".to_owned()).unwrap();
    assert_eq!(aliases.target("gpt-4o"), Some("auto"));
    assert_eq!(aliases.target("GPT-4o"), None);
    assert_eq!(aliases.target("auto"), None);

    aliases.add("auto".to_owned(), "gpt-4o".to_owned()).unwrap();
    assert_eq!(aliases.target("auto"), Some("gpt-4o"), "not back to auto");

    aliases.add("*".to_owned(), "other".to_owned()).unwrap();
    assert_eq!(aliases.target("anything"), Some("other"));
    assert_eq!(aliases.target("other"), None, "equal: the bytes stay");
    assert_eq!(aliases.target("gpt-4o"), Some("auto"));

    for (asked, sent) in [("", "a"), ("a", ""), ("a", "*"), ("a", "b\n"), ("é", "a")] {
        assert!(aliases.add(asked.to_owned(), sent.to_owned()).is_err());
    }
    assert!(aliases.add("a".to_owned(), "x".repeat(129)).is_err());
}

#[test]
fn an_allowed_host_is_one_exact_name() {
    for (text, host) in [
        ("Box.Lan", "box.lan"),
        ("box.lan.", "box.lan"),
        ("10.0.0.7", "10.0.0.7"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("host.docker.internal", "host.docker.internal"),
    ] {
        assert_eq!(allowed_host(text).as_deref(), Ok(host));
    }
    for (text, why) in [
        (
            "box:8327",
            "\"box:8327\" has a port; every port is allowed, leave it out",
        ),
        (
            "http://box",
            "\"http://box\" is a URL; write the host name alone",
        ),
        (
            "*.lan",
            "\"*.lan\": host names are matched exactly; list each",
        ),
        ("", "\"\" has no host"),
    ] {
        assert_eq!(allowed_host(text), Err(why.to_owned()));
    }
}

#[test]
fn an_allowed_origin_is_one_exact_origin() {
    for text in [
        "http://localhost:3000",
        "https://app.example",
        "chrome-extension://abc",
        "http://[::1]:1",
    ] {
        assert_eq!(allowed_origin(text).as_deref(), Ok(text));
    }
    assert_eq!(allowed_origin("HTTP://Box").as_deref(), Ok("http://box"));
    for text in ["*", "null"] {
        let why = format!("{text:?} would let any web page spend; list each origin");
        assert_eq!(allowed_origin(text), Err(why));
    }
    for text in [
        "",
        "localhost",
        "http://",
        "://a",
        "http://a/",
        "http://a/b",
        "http://u@a",
        "http://*.a",
        "http://a b",
    ] {
        let why = format!("{text:?} is not an origin: scheme://host[:port], without a path");
        assert_eq!(allowed_origin(text), Err(why));
    }
}
