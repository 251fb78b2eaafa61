//! The attack corpus: what a program on this machine, or a page in its browser, can send. Each case
//! is a name, the row of the threat model that it belongs to, raw bytes, and their permitted results.
//!
//! Promise: every case runs against the real daemon before an origin that keeps all bytes it gets.
//! For every case the origin gets nothing, or exactly one well-formed request with the organization's
//! key; a request that hides behind another never reaches it; and the daemon continues.

mod admin;
mod browsers;
mod case;
mod chunks;
mod coding;
mod dialects;
mod floods;
mod framing;
mod fuzz;
mod headers;
mod memory;
mod slow;
mod stage;
mod targets;
mod witness;

use case::Case;
use stage::Stage;

/// Rows of the threat model that a request can trigger: 1 to 5 pages in a browser; 9 to 16 programs
/// of this machine; 26 callers of the admin listener. The others need no request (files, the
/// network, systemd) or another part of bursar (apps and caps), and have their tests there.
const ROWS: [(u8, &str); 14] = [
    (1, "a page sends what needs no preflight"),
    (2, "a page sends a form"),
    (3, "a page's own name points at this machine"),
    (4, "a page asks 0.0.0.0"),
    (5, "a page asks for leave"),
    (9, "a program wants the key sent elsewhere"),
    (10, "a program wants another upstream route"),
    (11, "a program hides a request in another"),
    (12, "a program nominates our headers away"),
    (13, "a program breaks out of a header"),
    (14, "a program makes the answer unreadable"),
    (15, "a program sends too much"),
    (16, "a program sends or reads too slowly"),
    (26, "somebody changes or reads what the admin listener has"),
];

/// Attacks that take time or many connections are tests of their own.
const SCENARIOS: [(u8, &str, &str); 19] = [
    (
        16,
        "floods",
        "bodies_that_never_come_keep_no_app_out_and_an_upload_that_goes_on_ends",
    ),
    (15, "memory", "bodies_that_grow_together_are_all_served"),
    (
        15,
        "memory",
        "a_body_that_waits_in_vain_for_memory_is_asked_to_come_again",
    ),
    (15, "floods", "the_daemon_raises_its_limit_on_descriptors"),
    (
        15,
        "memory",
        "bodies_of_30_mb_from_many_clients_wait_or_are_refused_and_memory_is_bounded",
    ),
    (15, "floods", "a_flood_of_tiny_chunks_is_read_as_one_body"),
    (
        15,
        "floods",
        "connections_above_the_limit_take_a_bounded_number_of_descriptors",
    ),
    (16, "slow", "a_head_that_drips_is_refused_at_its_deadline"),
    (16, "slow", "a_body_that_stands_still_is_refused"),
    (
        16,
        "slow",
        "a_body_that_drips_is_refused_although_it_never_stands_still",
    ),
    (
        16,
        "slow",
        "a_body_without_end_is_refused_after_ten_minutes",
    ),
    (16, "slow", "an_idle_connection_is_closed_after_its_time"),
    (
        16,
        "slow",
        "a_reader_that_stands_still_is_left_and_its_receipt_is_still_recorded",
    ),
    (
        16,
        "floods",
        "silent_connections_on_all_places_keep_no_app_out",
    ),
    (
        16,
        "floods",
        "slow_heads_and_idle_connections_give_way_and_the_silent_before_them",
    ),
    (
        16,
        "floods",
        "a_connection_in_a_request_never_gives_way_and_unix_sockets_have_their_own_room",
    ),
    (16, "memory", "uploads_that_drip_keep_no_other_body_out"),
    (
        16,
        "memory",
        "an_app_that_holds_its_share_of_memory_keeps_no_other_app_out",
    ),
    (
        26,
        "floods",
        "the_admin_listener_outlives_heads_and_connections_without_end",
    ),
];

/// All cases for the proxy's port.
fn cases() -> Vec<Case> {
    let of_chat = [
        browsers::cases(),
        targets::cases(),
        framing::cases(),
        chunks::cases(),
        headers::cases(),
        coding::cases(),
        floods::cases(),
        slow::cases(),
    ]
    .concat();
    let translated = dialects::cases(&of_chat);
    [of_chat, translated].concat()
}

/// Row and name of every case, the admin listener's among them.
pub fn named() -> Vec<(u8, String)> {
    let all = [cases(), admin::as_cases()].concat();
    all.into_iter().map(|case| (case.row, case.name)).collect()
}

#[tokio::test]
async fn no_request_of_the_corpus_does_what_it_wants() {
    let cases = cases();
    let stage = Stage::open().await;
    let mut relayed = 0;
    let mut failures = Vec::new();
    for case in &cases {
        match stage.judge(case).await {
            Ok(entries) => relayed += entries,
            Err(why) => failures.push(format!("row {} {}: {why}", case.row, case.name)),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} cases:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
    stage.close(relayed).await;
}

#[tokio::test]
async fn no_request_to_the_admin_listener_changes_or_shows_more_than_it_may() {
    let stage = Stage::open().await;
    let mut failures = Vec::new();
    for case in admin::cases() {
        if let Err(why) = stage.judge_admin(&case).await {
            failures.push(format!("row {} {}: {why}", case.row, case.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    stage.close(0).await;
}

#[test]
fn every_row_of_the_threat_model_that_a_request_triggers_has_three_cases() {
    let cases = [cases(), admin::as_cases()].concat();
    for (row, what) in ROWS {
        let of_row = cases.iter().filter(|case| case.row == row).count();
        let scenarios = SCENARIOS.iter().filter(|(of, _, _)| *of == row).count();
        assert!(
            of_row + scenarios >= 3,
            "row {row} ({what}): {of_row} cases"
        );
    }
    for case in &cases {
        let known = ROWS.iter().any(|(row, _)| *row == case.row);
        assert!(known, "{}: row {} is not in the table", case.name, case.row);
    }
    let mut names: Vec<_> = cases.iter().map(|case| (case.row, &case.name)).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "two cases have one name");
}

#[test]
fn every_scenario_of_the_table_is_a_test() {
    for (_, module, name) in SCENARIOS {
        let source = match module {
            "floods" => include_str!("attack/floods.rs"),
            "memory" => include_str!("attack/memory.rs"),
            _ => include_str!("attack/slow.rs"),
        };
        let head = format!("#[tokio::test]\nasync fn {name}()");
        assert!(source.contains(&head), "{module}::{name}");
    }
}
