//! The dashboard and the alerts that are shipped: they ask for what there is, and each alert says what to do.
//!
//! Promise: a metric that is renamed, an alert without its page, and a path that the package does not have are
//! seen here, without a Prometheus. `scripts/test-prometheus.sh` runs them in a real one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The values of all lines `KEY: …` of a YAML file.
fn values<'a>(yaml: &'a str, key: &str) -> Vec<&'a str> {
    let lines = yaml.lines().map(|line| line.trim_start_matches([' ', '-']));
    let values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    values.collect()
}

/// The families that a text of queries names. A label's value is none.
fn families(queries: &str) -> BTreeSet<String> {
    let is_part = |of: char| of.is_ascii_alphanumeric() || of == '_';
    let words = queries.split(|of| !is_part(of));
    let words = words.filter(|word| word.starts_with("bursar_") || word.starts_with("process_"));
    let of_histogram = |word: &str| {
        let ends = ["_bucket", "_sum", "_count"];
        let base = ends.iter().find_map(|end| word.strip_suffix(end));
        base.unwrap_or(word).to_owned()
    };
    words.map(of_histogram).collect()
}

/// What `docs/metrics.md` lists; a test beside the code holds it equal to `/metrics`.
fn listed() -> BTreeSet<String> {
    let page = read("docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split_once('`'));
    let names = names.map(|(name, _)| name.to_owned());
    names.filter(|name| name.contains('_')).collect()
}

/// The queries of the dashboard: of its panels and of its variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let panels = dashboard["panels"].as_array().expect("panels");
    for panel in panels {
        let targets = panel["targets"].as_array().into_iter().flatten();
        found.extend(targets.map(|target| target["expr"].as_str().expect("a query").to_owned()));
    }
    let variables = dashboard["templating"]["list"]
        .as_array()
        .expect("variables");
    let of_variables = variables
        .iter()
        .filter_map(|of| of["query"]["query"].as_str());
    found.extend(of_variables.map(str::to_owned));
    found
}

#[test]
fn every_alert_has_its_heading_in_the_runbook_and_a_case_where_it_fires() {
    let (alerts, cases) = (read("grafana/alerts.yml"), read("grafana/alerts-tests.yml"));
    let runbook = read("docs/runbook.md");
    let headings_of = |page: &str| {
        let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
        headings.map(str::to_owned).collect::<Vec<_>>()
    };
    let (for_alerts, _) = runbook.split_once("\n# ").expect("a second part");
    let headings = headings_of(for_alerts);
    let names = values(&alerts, "alert");
    let anchors = values(&alerts, "runbook");

    assert_eq!(headings, names, "each alert once, in their order");
    let wanted: Vec<_> = names
        .iter()
        .map(|name| format!("docs/runbook.md#{}", name.to_lowercase()))
        .collect();
    assert_eq!(anchors, wanted);
    let tested: BTreeSet<_> = values(&cases, "name").into_iter().collect();
    for name in &names {
        assert!(tested.contains(name), "{name} has no case");
    }
    for link in runbook.split("](#").skip(1) {
        let (anchor, _) = link.split_once(')').expect("a link");
        assert!(
            headings_of(&runbook)
                .iter()
                .any(|heading| heading.to_lowercase().replace(' ', "-") == anchor),
            "#{anchor} leads nowhere"
        );
    }
    let count = format!("| {} alerts,", names.len());
    assert!(read("grafana/README.md").contains(&count), "{count}");
}

#[test]
fn dashboard_alerts_and_runbook_name_only_metrics_that_there_are() {
    let dashboard: Value = serde_json::from_str(&read("grafana/bursar.json")).expect("JSON");
    let listed = listed();
    assert!(listed.len() > 70, "{listed:?}");
    let alerts = read("grafana/alerts.yml");

    for (place, text) in [
        ("the dashboard", queries(&dashboard).join("\n")),
        ("the alerts", alerts),
        ("the cases of alerts", read("grafana/alerts-tests.yml")),
        // Beside metrics it names tables of the fleet's schema.
        (
            "the runbook",
            read("docs/runbook.md").replace("bursar_fleet.", ""),
        ),
    ] {
        for family in families(&text) {
            assert!(listed.contains(&family), "{place}: there is no {family}");
        }
    }
}

/// A query without it shows other machines' figures beside the one that was chosen.
#[test]
fn every_query_of_the_dashboard_heeds_the_chosen_instance() {
    let dashboard: Value = serde_json::from_str(&read("grafana/bursar.json")).expect("JSON");

    for query in queries(&dashboard) {
        let is_variable = query.starts_with("label_values(bursar_build_info");
        assert!(
            is_variable || query.contains("instance=~\"$instance\""),
            "{query}"
        );
        for series in query.split("bursar_").skip(1).filter(|_| !is_variable) {
            let (_, labels) = series.split_once('{').expect("labels");
            assert!(labels.starts_with("instance=~\"$instance\""), "{query}");
        }
    }
}

/// No series says `escalated="true"` before the first one: the share is 0 then, and not "no data".
#[test]
fn the_share_of_what_never_happened_is_zero() {
    let dashboard: Value = serde_json::from_str(&read("grafana/bursar.json")).expect("JSON");

    let queries = queries(&dashboard);
    let shares = queries
        .iter()
        .filter(|query| query.contains("escalated=\"true\""));
    let shares: Vec<_> = shares.collect();
    assert_eq!(shares.len(), 2);
    for query in shares {
        let (share, _) = query.split_once(") / sum").expect("a share");
        assert!(
            share.ends_with("or vector(0)") || share.contains(") or 0 * sum by (app) ("),
            "{query}"
        );
    }
}

#[test]
fn the_package_has_the_dashboard_where_its_provisioning_looks() {
    let manifest = read("Cargo.toml");
    let provider = read("grafana/provisioning/dashboards/bursar.yml");
    let places = values(&provider, "path");

    assert_eq!(places, ["/usr/share/bursar/grafana"]);
    let asset = "[\"grafana/*.json\", \"usr/share/bursar/grafana/\", \"644\"]";
    assert!(manifest.contains(asset), "{asset}");
}
