//! Each check on facts that are well, and on those in which one thing is wrong.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::admin::documents::{FleetStatus, LedgerStatus, StatusDocument, sample};
use crate::cli::doctor::facts::Commits;

/// What makes one thing wrong, or unknown.
type Change = fn(&mut Facts);

const NOW_MS: u64 = 1_778_284_900_000;

fn address() -> ListenAddr {
    ListenAddr::parse("127.0.0.1:8327").unwrap()
}

/// A stream whose first byte came after so long, of 3 s.
fn stream(first_byte_ms: u64) -> EntryView {
    sample::entry(&json!({
        "receipt": "told",
        "receipt_source": "sse",
        "attempts": [{"end": "answered", "status": 200, "wait_ms": 0, "took_ms": 3000}],
        "timings": {
            "queue_ms": 60_000, "first_byte_ms": 60_000 + first_byte_ms, "total_ms": 63_000, "own_us": 900
        },
    }))
}

fn refused_for_balance() -> EntryView {
    sample::entry(&json!({
        "attempts": [{"end": "refused", "status": 402, "wait_ms": 0, "took_ms": 5}],
    }))
}

fn status() -> StatusDocument {
    StatusDocument {
        version: "0.1.0".to_owned(),
        pid: 7,
        ledger: LedgerStatus {
            writable: true,
            ..LedgerStatus::default()
        },
        ..StatusDocument::default()
    }
}

/// Of a daemon that is well.
fn sound() -> Facts {
    let service = ServiceUnit {
        is_installed: true,
        active: "active".to_owned(),
        has_key: true,
        ..ServiceUnit::default()
    };
    Facts {
        now_ms: NOW_MS,
        daemon: Daemon::Runs(Box::new(status()), address()),
        configuration: Configuration::Sound(None),
        base_url: Some(BaseUrl::parse("https://service.example").unwrap()),
        ports: vec![(address(), Port::Answers)],
        itself: None,
        service: ServiceProbe::Took(Some(Clocks {
            service_ms: NOW_MS,
            own_ms: NOW_MS + 1000,
        })),
        state_dir: PathBuf::from("/var/lib/bursar"),
        place: StateDirectory::Sound,
        free_bytes: Ok(1 << 40),
        commits: Some(Commits {
            count: 10,
            took: Duration::from_millis(20),
        }),
        units: Units::Known {
            service,
            is_socket_open: true,
        },
        entries: Ok(vec![stream(100)]),
    }
}

fn verdict(name: &str, facts: &Facts) -> CheckVerdict {
    let check = CHECKS.iter().find(|check| check.name == name);
    check.expect(name).look(facts)
}

fn change_status(facts: &mut Facts, change: fn(&mut StatusDocument)) {
    let Daemon::Runs(status, _) = &mut facts.daemon else {
        panic!("it runs");
    };
    change(status);
}

fn change_unit(facts: &mut Facts, change: fn(&mut ServiceUnit)) {
    let Units::Known { service, .. } = &mut facts.units else {
        panic!("it is known");
    };
    change(service);
}

#[test]
fn where_all_is_well_every_check_passes() {
    let facts = sound();
    for check in &CHECKS {
        let verdict = check.look(&facts);
        assert!(
            matches!(verdict, CheckVerdict::Pass(_)),
            "{}: {verdict:?}",
            check.name
        );
    }
}

#[test]
fn each_thing_that_is_wrong_fails_its_check_and_no_other() {
    let table: [(&str, Change, &str); 29] = [
        (
            "configuration",
            |facts| {
                change_status(facts, |status| {
                    status.waits_for_restart = vec!["[log] format".to_owned()];
                });
            },
            "changed in the file and not in force: [log] format",
        ),
        (
            "daemon",
            |facts| change_status(facts, |status| status.draining = true),
            "is stopping",
        ),
        (
            "daemon",
            |facts| facts.daemon = Daemon::Silent("no connection".to_owned()),
            "no connection",
        ),
        (
            "daemon",
            |facts| facts.daemon = Daemon::Hangs(7),
            "process 7 has the ledger",
        ),
        (
            "configuration",
            |facts| {
                let lines = ["a.toml:1: x", "y"].map(str::to_owned);
                facts.configuration = Configuration::Mistaken(lines.to_vec());
            },
            "a.toml:1: x (and 1 more)",
        ),
        (
            "state directory",
            |facts| facts.place = StateDirectory::Unsound("chmod 700".to_owned()),
            "chmod 700",
        ),
        (
            "port",
            |facts| facts.ports[0].1 = Port::Foreign,
            "is not bursar",
        ),
        (
            "port",
            |facts| facts.ports[0].1 = Port::Silent("no connection".to_owned()),
            "no connection",
        ),
        (
            "port",
            |facts| facts.ports[0].1 = Port::Missing,
            "no address 127.0.0.1:8327",
        ),
        (
            "unit",
            |facts| change_unit(facts, |unit| unit.active = "failed".to_owned()),
            "has failed",
        ),
        (
            "unit",
            |facts| change_unit(facts, |unit| unit.needs_reload = true),
            "newer than",
        ),
        (
            "unit",
            |facts| {
                change_unit(facts, |unit| {
                    unit.active = "activating".to_owned();
                    unit.sub = "auto-restart".to_owned();
                })
            },
            "in vain",
        ),
        (
            "self-reference",
            |facts| facts.itself = Some("its own".to_owned()),
            "its own",
        ),
        (
            "key",
            |facts| facts.service = ServiceProbe::Refuses("401".to_owned()),
            "401",
        ),
        (
            "key",
            |facts| facts.service = ServiceProbe::NoKey("no API key".to_owned()),
            "no API key",
        ),
        (
            "key",
            |facts| {
                change_status(facts, |status| {
                    status.traffic.held_back_by = vec!["key".to_owned()]
                })
            },
            "holds paid requests back",
        ),
        (
            "balance",
            |facts| {
                change_status(facts, |status| {
                    status.key.balance_empty = Some("2026-05-08T12:00:00.000Z".to_owned())
                })
            },
            "empty (402), at 2026-05-08T12:00:00.000Z",
        ),
        (
            "balance",
            |facts| facts.entries = Ok(vec![stream(100), refused_for_balance()]),
            "empty (402), at ",
        ),
        (
            "clock",
            |facts| {
                facts.service = ServiceProbe::Took(Some(Clocks {
                    service_ms: 0,
                    own_ms: 61_000,
                }))
            },
            "61 s apart",
        ),
        (
            "clock",
            |facts| {
                change_status(facts, |status| {
                    status.fleet = Some(FleetStatus {
                        clock_ahead_ms: Some(-6_000),
                        ..FleetStatus::default()
                    })
                })
            },
            "6 s behind that of the fleet's database",
        ),
        (
            "clock",
            |facts| facts.now_ms -= 1_000_000,
            "900 s in the future",
        ),
        (
            "disk",
            |facts| facts.free_bytes = Ok(3 << 20),
            "3 MiB are free",
        ),
        (
            "disk",
            |facts| {
                change_status(facts, |status| {
                    status.ledger.unavailable = Some("full".to_owned())
                })
            },
            "cannot be written: full",
        ),
        (
            "fsync",
            |facts| {
                facts.commits = Some(Commits {
                    count: 2,
                    took: Duration::from_millis(102),
                })
            },
            "51.000 ms on average of 2 commits",
        ),
        (
            "streaming",
            |facts| facts.entries = Ok(vec![stream(2701), stream(2999), stream(100)]),
            "in 2 of the last 3 streams",
        ),
        (
            "receipts",
            |facts| facts.entries = Ok(vec![sample::entry(&json!({"receipt": "absent"}))]),
            "a price in 0 of the last 1 answer",
        ),
        (
            "upstream",
            |facts| facts.service = ServiceProbe::Unreached("a:1 speaks no TLS: x".to_owned()),
            "speaks no TLS",
        ),
        (
            "upstream",
            |facts| {
                facts.service =
                    ServiceProbe::Unreached("TLS with a failed: unknown issuer".to_owned())
            },
            "unknown issuer",
        ),
        (
            "upstream",
            |facts| facts.service = ServiceProbe::Unreached("a does not resolve".to_owned()),
            "does not resolve",
        ),
    ];
    for (name, change, part) in table {
        let mut facts = sound();
        change(&mut facts);
        let found = match verdict(name, &facts) {
            CheckVerdict::Fail(found) | CheckVerdict::Treatable { found, .. } => found,
            other => panic!("{name}, {part}: {other:?}"),
        };
        assert!(found.contains(part), "{name}: {found}");
        for check in CHECKS.iter().filter(|check| check.name != name) {
            let verdict = check.look(&facts);
            assert_ne!(
                verdict.word(),
                CheckVerdict::FAIL,
                "{name}: {}: {verdict:?}",
                check.name
            );
        }
    }
}

#[test]
fn what_does_not_apply_is_skipped() {
    let table: [(&str, Change); 17] = [
        ("daemon", |facts| facts.daemon = Daemon::None),
        ("configuration", |facts| {
            facts.configuration = Configuration::Unknown;
        }),
        ("state directory", |facts| {
            facts.place = StateDirectory::Hidden
        }),
        ("state directory", |facts| facts.state_dir = PathBuf::new()),
        ("port", |facts| facts.ports.clear()),
        ("port", |facts| {
            facts.daemon = Daemon::Hangs(7);
            facts.ports[0].1 = Port::Taken("process 7 (bursar)".to_owned());
        }),
        ("clock", |facts| facts.service = ServiceProbe::Took(None)),
        ("unit", |facts| facts.units = Units::NoSystemd),
        ("unit", |facts| {
            change_unit(facts, |unit| unit.is_installed = false)
        }),
        ("unit", |facts| {
            change_unit(facts, |unit| unit.active = "inactive".to_owned())
        }),
        ("upstream", |facts| {
            facts.service = ServiceProbe::Unasked("busy".to_owned())
        }),
        ("self-reference", |facts| facts.base_url = None),
        ("key", |facts| {
            facts.service = ServiceProbe::Answered("404".to_owned())
        }),
        ("disk", |facts| facts.free_bytes = Err("hidden".to_owned())),
        ("fsync", |facts| facts.commits = None),
        ("fsync", |facts| {
            facts.commits = Some(Commits {
                count: 0,
                took: Duration::ZERO,
            })
        }),
        ("streaming", |facts| {
            facts.entries = Ok(vec![sample::entry(&json!({}))])
        }),
    ];
    for (name, change) in table {
        let mut facts = sound();
        change(&mut facts);
        let verdict = verdict(name, &facts);
        assert!(
            matches!(verdict, CheckVerdict::Skip(_)),
            "{name}: {verdict:?}"
        );
    }
}

#[test]
fn a_stopped_service_is_told_how_to_start_by_its_own_systemd() {
    let (system, own) = (Manager::System, Manager::Own);
    for (manager, active, has_key, wanted) in [
        (system, "inactive", false, "sudo bursar key set"),
        (system, "inactive", true, "systemctl enable --now"),
        (system, "failed", true, "journalctl -u bursar"),
        (own, "inactive", false, "bursar key set"),
        (own, "inactive", true, "systemctl --user enable --now"),
        (own, "failed", true, "journalctl --user -u bursar"),
    ] {
        let stopped = ServiceUnit {
            manager,
            is_installed: true,
            active: active.to_owned(),
            has_key,
            ..ServiceUnit::default()
        };
        let CheckVerdict::Treatable { remedy, .. } = judge_unit(&stopped, false) else {
            panic!("it fails");
        };
        assert!(remedy.contains(wanted), "{remedy}");
        assert_eq!(remedy.contains("sudo"), manager == system && !has_key);
    }
}

#[test]
fn an_address_that_systemd_holds_is_not_taken() {
    let mut facts = sound();
    facts.daemon = Daemon::None;
    facts.ports[0].1 = Port::Taken("process 1 (systemd)".to_owned());
    assert!(matches!(verdict("port", &facts), CheckVerdict::Pass(_)));
    facts.units = Units::NoSystemd;
    let CheckVerdict::Fail(found) = verdict("port", &facts) else {
        panic!("it is taken");
    };
    assert!(
        found.contains("127.0.0.1:8327 is taken by process 1 (systemd)"),
        "{found}"
    );
}

/// Waits of bursar's own and turns that were bought whole say nothing of a hop.
#[test]
fn a_stream_is_judged_from_its_own_beginning_and_only_where_it_was_one() {
    let judged = |entry: &EntryView| StreamTiming::of(entry).map(|stream| stream.is_late());
    assert_eq!(judged(&stream(2600)), Some(false));
    assert_eq!(judged(&stream(2800)), Some(true));
    let others = |members: serde_json::Value| {
        let mut entry = stream(2900);
        let changed = sample::entry(&members);
        entry.lane = changed.lane;
        entry.stream = changed.stream;
        entry.receipt_source = changed.receipt_source;
        entry
    };
    let bought_whole = json!({"lane": "agent", "receipt_source": "header"});
    assert_eq!(judged(&others(bought_whole)), None);
    assert_eq!(judged(&others(json!({"stream": false}))), None);
    let mut short = stream(2900);
    short.attempts[0].took_ms = 1999;
    assert_eq!(judged(&short), None);
}

/// Beside a daemon and without one, also after a restart: the ledger remembers.
#[test]
fn an_empty_balance_counts_until_a_paid_request_succeeds() {
    let verdict_of = |entries: Vec<EntryView>| {
        let facts = Facts {
            daemon: Daemon::None,
            entries: Ok(entries),
            ..sound()
        };
        verdict("balance", &facts)
    };
    let rows = [
        (vec![], CheckVerdict::SKIP),
        (vec![stream(1), refused_for_balance()], CheckVerdict::FAIL),
        (vec![refused_for_balance(), stream(1)], CheckVerdict::PASS),
    ];
    for (entries, wanted) in rows {
        let verdict = verdict_of(entries);
        assert_eq!(verdict.word(), wanted, "{verdict:?}");
    }
}
