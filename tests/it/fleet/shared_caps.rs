//! The commands about shared caps, as an operator and a reader give them.

use serde_json::{Value, json};

use super::commands::Person;
use super::holder::{Holder, granted};
use super::{DATABASE, fleet};

/// What of a row a test looks at.
fn members(row: &Value, names: &[&str]) -> Value {
    let named = names
        .iter()
        .map(|name| ((*name).to_owned(), row[*name].clone()));
    Value::Object(named.collect())
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_cap_is_set_changed_shared_and_removed() {
    let postgres = fleet();
    let operator = Person::new(&postgres, "operator");
    let none = operator.gives(&["fleet", "caps"]).await;
    assert!(
        none.out.contains("fleet caps set"),
        "{}{}",
        none.out,
        none.err
    );
    let unset = operator
        .gives(&["fleet", "caps", "set", "team", "--limit-usd", "25"])
        .await;
    assert_eq!(unset.code, Some(2), "of which period? {}", unset.err);

    let set = |limit: &'static str| {
        let zone = ["--period", "day", "--time-zone", "Europe/Berlin"];
        [
            &["fleet", "caps", "set", "team", "--limit-usd", limit][..],
            &zone,
        ]
        .concat()
    };
    let made = operator.document(&set("25")).await;
    assert_eq!(made, json!({"cap": "team", "outcome": "made"}));
    let same = operator.document(&set("25.00")).await;
    assert_eq!(same["outcome"], "same");
    // Period and zone stay as they are.
    let changed = operator
        .document(&["fleet", "caps", "set", "team", "--limit", "30"])
        .await;
    assert_eq!(changed["outcome"], "changed");
    let wrong = operator
        .gives(&[
            "fleet",
            "caps",
            "set",
            "team",
            "--limit",
            "30",
            "--time-zone",
            "Mars/Olympus",
        ])
        .await;
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.err.contains("Mars/Olympus"), "{}", wrong.err);

    // What the database refuses of an order is said in its own words.
    postgres.sql(
        DATABASE,
        "ALTER TABLE bursar_fleet.caps ADD CONSTRAINT below_40 CHECK (limit_micro_usd < 40000000)",
    );
    let wrong = operator.gives(&set("50")).await;
    assert_eq!(wrong.code, Some(1));
    let said = "the fleet's database refused: new row";
    assert!(wrong.err.contains(said), "{}", wrong.err);

    let holder = Holder::new(&postgres, 1).await;
    granted(holder.wants(4_000_000).await);
    let ledger = holder.identity.ledger.to_string();
    let end = &ledger[24..];
    let share = ["fleet", "caps", "share", end, "team"];
    let bounds = ["--largest-usd", "5", "--ahead", "3", "--ahead-usd", "2"];
    let shared = operator.document(&[&share[..], &bounds].concat()).await;
    assert_eq!(shared, json!({"cap": "team", "outcome": "set"}));
    let without = operator
        .gives(&[&share[..], &["--ahead", "3"]].concat())
        .await;
    assert_eq!(without.code, Some(2), "{}", without.err);
    let unknown = ["fleet", "caps", "share", end, "other", "--largest-usd", "5"];
    let unknown = operator.gives(&unknown).await;
    assert!(unknown.err.contains("no cap \"other\""), "{}", unknown.err);

    let reader = Person::new(&postgres, "reader");
    let seen = reader.document(&["fleet", "caps"]).await;
    let names = [
        "cap",
        "period",
        "time_zone",
        "limit_micro_usd",
        "charged_micro_usd",
        "open_micro_usd",
        "holders",
        "over_micro_usd",
    ];
    assert_eq!(
        members(&seen["caps"][0], &names),
        json!({"cap": "team", "period": "day", "time_zone": "Europe/Berlin", "limit_micro_usd": 30_000_000,
            "charged_micro_usd": 4_000_000, "open_micro_usd": 4_000_000, "holders": 1, "over_micro_usd": 0})
    );
    let names = [
        "cap",
        "host",
        "ledger",
        "granted_micro_usd",
        "given_back_micro_usd",
    ];
    assert_eq!(
        members(&seen["leases"][0], &names),
        json!({"cap": "team", "host": "host-1", "ledger": ledger, "granted_micro_usd": 4_000_000,
            "given_back_micro_usd": 0})
    );
    let names = ["ledger", "largest_micro_usd", "ahead", "ahead_micro_usd"];
    assert_eq!(
        members(&seen["shares"][0], &names),
        json!({"ledger": ledger, "largest_micro_usd": 5_000_000, "ahead": 3, "ahead_micro_usd": 2_000_000})
    );
    assert_eq!(seen["pause"], Value::Null);
    let text = reader.gives(&["fleet", "caps"]).await.out;
    for word in ["team", "$30.000000", "$26.000000", "host-1", "$5.000000"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(seen["leases"][0]["open_micro_usd"], 4_000_000);
    // Of a machine that is not heard nobody knows what it has spent of its lease.
    let away = "UPDATE bursar_fleet.ledgers SET heard = heard - interval '6 minutes'";
    postgres.sql(DATABASE, away);
    let of_away = reader.document(&["fleet", "caps"]).await;
    assert_eq!(of_away["leases"][0]["open_micro_usd"], Value::Null);
    let text = reader.gives(&["fleet", "caps"]).await.out;
    assert!(text.contains("not known"), "{text}");
    let csv = reader.gives(&["fleet", "caps", "--csv"]).await.out;
    assert!(
        csv.starts_with("cap,period,time_zone,since,until,limit_micro_usd,"),
        "{csv}"
    );
    assert!(csv.contains("\nteam,day,Europe/Berlin,"), "{csv}");
    let refused = reader.gives(&set("99")).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("bursar_operator"), "{}", refused.err);

    let status = reader.document(&["fleet", "status"]).await;
    let lease = &status["ledgers"][0]["leases"][0];
    assert_eq!(lease["granted_micro_usd"], 4_000_000, "{status}");
    let removed = ["fleet", "caps", "remove", "team"];
    assert_eq!(operator.document(&removed).await["outcome"], "removed");
    let again = operator.gives(&removed).await;
    assert_eq!(again.code, Some(1), "{}", again.out);
    assert!(again.err.contains("no cap \"team\""), "{}", again.err);
    let left = reader.document(&["fleet", "caps"]).await;
    assert_eq!((&left["caps"], &left["shares"]), (&json!([]), &json!([])));
    assert_eq!(left["leases"][0]["cap"], "team", "it may still be spent");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_restored_database_shows_until_when_it_grants_nothing_and_how_much_may_be_spent() {
    let postgres = fleet();
    let operator = Person::new(&postgres, "operator");
    let set = [
        "fleet",
        "caps",
        "set",
        "team",
        "--period",
        "month",
        "--limit-usd",
        "1",
    ];
    operator
        .document(&[&set[..], &["--time-zone", "UTC"]].concat())
        .await;
    let one = Holder::new(&postgres, 1).await;
    let _other = Holder::new(&postgres, 2).await;
    let lease = granted(one.wants(300_000).await).lease.lease;
    postgres.sql(DATABASE, "DELETE FROM bursar_fleet.leases");
    assert!(one.hold(&[lease]).await.is_paused);

    let status = operator.document(&["fleet", "status"]).await;
    assert_eq!(
        members(&status["pause"], &["host", "awaited"]),
        json!({"host": "host-1", "awaited": 1})
    );
    let awaited: Vec<&Value> = status["ledgers"]
        .as_array()
        .expect("rows")
        .iter()
        .filter(|ledger| ledger["awaited"] == true)
        .map(|ledger| &ledger["host"])
        .collect();
    assert_eq!(awaited, ["host-2"]);
    for command in ["status", "caps"] {
        let text = operator.gives(&["fleet", command]).await.out;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let bound = "team: until all have been heard, at most $1.000000 and what was leased since the backup, of which \
                     $0.300000 is put back";
        for words in [
            "PAUSED since",
            "1 ledger has not been heard since",
            "bursar fleet resume",
            bound,
        ] {
            assert!(text.contains(words), "{command}: {words}: {text}");
        }
    }
    for changed in [true, false] {
        let resumed = operator.document(&["fleet", "resume"]).await;
        assert_eq!(resumed, json!({"changed": changed}));
    }
    let status = operator.document(&["fleet", "status"]).await;
    assert_eq!(status["pause"], Value::Null);
}
