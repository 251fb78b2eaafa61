use super::*;

#[test]
fn the_lines_of_a_fleet_go_below_its_table_or_to_the_end() {
    let file = Path::new("/etc/bursar/fleet-url");
    let cases = [
        (
            "",
            None,
            "\n[fleet]\nurl_file = \"/etc/bursar/fleet-url\"\n",
        ),
        (
            "[listen]\nproxy = \"a\"",
            Some("build-7"),
            "[listen]\nproxy = \"a\"\n\n[fleet]\nurl_file = \"/etc/bursar/fleet-url\"\nhost_label = \"build-7\"\n",
        ),
        (
            "[fleet] # several\n# url_file = \"x\"\nship_people = true\n[log]\n",
            None,
            "[fleet] # several\nurl_file = \"/etc/bursar/fleet-url\"\n# url_file = \"x\"\nship_people = true\n[log]\n",
        ),
    ];
    for (before, label, wanted) in cases {
        let after = with_fleet(before, file, label);
        assert_eq!(after.as_deref(), Some(wanted), "{before}");
        let without = without_fleet(wanted).unwrap();
        assert!(
            !says_url_file(&without, Some("/etc/bursar/fleet-url")),
            "{without}"
        );
    }
}

#[test]
fn a_configuration_that_would_not_say_what_is_meant_is_not_written() {
    let file = Path::new("/etc/bursar/fleet-url");
    for before in [
        "fleet.ship_people = true\n",
        "fleet = { insecure = true }\n",
        "[fleet\n",
    ] {
        assert_eq!(with_fleet(before, file, None), None, "{before}");
    }
}
