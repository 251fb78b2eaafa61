use super::*;

const URL_FILE: &str = "url_file = \"/etc/bursar/fleet-url\"\n";

#[test]
fn the_lines_of_a_fleet_go_below_its_table_or_to_the_end() {
    let label = "host_label = \"build-7\"\n";
    let cases = [
        ("", None, format!("\n[fleet]\n{URL_FILE}"), "\n[fleet]\n"),
        (
            "[listen]\nproxy = \"a\"",
            Some("build-7"),
            format!("[listen]\nproxy = \"a\"\n\n[fleet]\n{URL_FILE}{label}"),
            "[listen]\nproxy = \"a\"\n\n[fleet]\nhost_label = \"build-7\"\n",
        ),
        (
            "# below [fleet]\n[ fleet ] # several\n# url_file = \"x\"\nhost_label = \"old\"\nship_people = true\n[log]\n",
            Some("build-7"),
            format!(
                "# below [fleet]\n[ fleet ] # several\n{URL_FILE}{label}# url_file = \"x\"\nship_people = true\n[log]\n"
            ),
            "# below [fleet]\n[ fleet ] # several\nhost_label = \"build-7\"\n# url_file = \"x\"\nship_people = true\n[log]\n",
        ),
    ];
    for (before, label, with, without) in cases {
        let file = Path::new("/etc/bursar/fleet-url");
        assert_eq!(
            with_fleet(before, file, label).as_deref(),
            Some(&*with),
            "{before}"
        );
        assert_eq!(without_fleet(&with).as_deref(), Some(without), "{with}");
    }
}

/// They are refused in a configuration without the URL's file.
#[test]
fn a_machine_that_leaves_shares_no_caps_any_more() {
    let one = format!("[fleet]\n{URL_FILE}shared_caps = [\"team\"] # ours\nship_people = true\n");
    let left = without_fleet(&one).unwrap();
    assert_eq!(
        left,
        "[fleet]\n# shared_caps = [\"team\"] # ours\nship_people = true\n"
    );
    // What is on several lines, or under another spelling, would stay.
    for other in [
        "shared_caps = [\n  \"team\",\n]",
        "\"shared_caps\" = [\"team\"]",
    ] {
        let other = format!("[fleet]\n{URL_FILE}{other}\n");
        assert_eq!(without_fleet(&other), None, "{other}");
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
