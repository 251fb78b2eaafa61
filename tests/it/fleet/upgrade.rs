//! The schema of an older bursar, with what it holds, becomes that of this one.

use super::DATABASE;
use super::holder::{Holder, cap, charged, granted, usd};
use crate::support::postgres::Postgres;

/// As `bursar fleet schema` printed it while its version was 1.
pub(super) const VERSION_1: &str = include_str!("../../rig/fleet-schema-1.sql");

/// A ledger, a copy of it and a copy of that; one with a code of its own and the first line of that ledger; lines with and
/// without a price, a loss, codes, a freeze.
const CONTENTS: &str = r#"
    SELECT bursar_fleet.invite('a-code-for-one-ledger-1', 'a laptop'), bursar_fleet.invite('a-code-for-one-ledger-2', NULL);
    SELECT bursar_fleet.enrol('a-code-for-one-ledger-1', '00000000-0000-4000-8000-000000000001', sha256('one'), 'host-1', '0.1');
    SELECT bursar_fleet.hello('00000000-0000-4000-8000-000000000001', sha256('one'), 'host-1', '0.1', 4, 0);
    SELECT bursar_fleet.ship('00000000-0000-4000-8000-000000000001', sha256('one'), 0, '', ARRAY[1, 2, 4], ARRAY[1, 3, 4],
        ARRAY['{"seq":1,"kind":"outcome","id":"00000000-0000-4000-8000-0000000000a1","started_ms":5,"adds_micro_usd":70,"state":"settled"}',
            'lost', '{"seq":4,"kind":"outcome","id":"00000000-0000-4000-8000-0000000000a4","started_ms":5,"state":"unreported"}'],
        ARRAY[sha256('x'), NULL, sha256('y')], 4);
    SELECT bursar_fleet.fork('00000000-0000-4000-8000-000000000001', sha256('one'), 4,
        (SELECT mark_chain FROM bursar_fleet.ledgers), '00000000-0000-4000-8000-000000000002', sha256('two'));
    SELECT bursar_fleet.fork('00000000-0000-4000-8000-000000000002', sha256('two'), 4,
        (SELECT DISTINCT mark_chain FROM bursar_fleet.ledgers), '00000000-0000-4000-8000-000000000003', sha256('three'));
    SELECT bursar_fleet.ship('00000000-0000-4000-8000-000000000002', sha256('two'), 4,
        (SELECT DISTINCT mark_chain FROM bursar_fleet.ledgers), ARRAY[5], ARRAY[5],
        ARRAY['{"seq":5,"kind":"outcome","id":"00000000-0000-4000-8000-0000000000a5","started_ms":5,"adds_micro_usd":9,"state":"settled"}'],
        ARRAY[sha256('z')], 5);
    SELECT bursar_fleet.invite('a-code-for-one-ledger-3', NULL);
    SELECT bursar_fleet.enrol('a-code-for-one-ledger-3', '00000000-0000-4000-8000-000000000009', sha256('nine'), 'host-9', '0.1');
    SELECT bursar_fleet.ship('00000000-0000-4000-8000-000000000009', sha256('nine'), 0, '', ARRAY[1], ARRAY[1],
        ARRAY['{"seq":1,"kind":"outcome","id":"00000000-0000-4000-8000-0000000000a1","started_ms":5,"adds_micro_usd":70,"state":"settled"}'],
        ARRAY[sha256('x')], 1);
    SELECT bursar_fleet.revoke_ledger('00000000-0000-4000-8000-000000000003'), bursar_fleet.order_freeze('an-app');
"#;

/// What version 1 had, as text.
fn contents(postgres: &Postgres) -> Vec<String> {
    let queries = [
        "SELECT id, secret_sha256, host_label, joined, copy_of, copied_up_to, mark_seq, mark_chain, heard, bursar,
            journal_seq, clock_ahead_ms, revoked, gone FROM bursar_fleet.ledgers ORDER BY id",
        "SELECT * FROM bursar_fleet.lines ORDER BY ledger, seq",
        "SELECT * FROM bursar_fleet.invites ORDER BY code_sha256",
        "SELECT * FROM bursar_fleet.freezes",
        "SELECT * FROM bursar_fleet.changes ORDER BY ledger, billed_micro_usd",
        "SELECT ledger, losses FROM bursar_fleet.fleet ORDER BY ledger",
        "SELECT made FROM bursar_fleet.about",
    ];
    let answers = queries.iter().map(|query| postgres.sql(DATABASE, query));
    answers.collect()
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_fleet_of_version_1_keeps_what_it_has_and_gets_shared_caps() {
    let postgres = Postgres::start();
    postgres.sql("postgres", &format!("CREATE DATABASE {DATABASE}"));
    postgres.sql(DATABASE, VERSION_1);
    postgres.sql(DATABASE, CONTENTS);
    let before = contents(&postgres);
    assert!(before.iter().all(|answer| !answer.is_empty()), "{before:?}");

    for _ in 0..2 {
        postgres.sql(DATABASE, bursar::fleet::schema::SQL);
        assert_eq!(contents(&postgres), before);
    }

    let version = "SELECT version FROM bursar_fleet.about";
    assert_eq!(postgres.sql(DATABASE, version), "2");
    let families = "SELECT count(*) FROM bursar_fleet.ledgers WHERE family = '00000000-0000-4000-8000-000000000001'";
    assert_eq!(
        postgres.sql(DATABASE, families),
        "3",
        "copies of copies, too"
    );
    let kin = "SELECT count(DISTINCT kin), count(*) FROM bursar_fleet.ledgers";
    assert_eq!(
        postgres.sql(DATABASE, kin),
        "1|4",
        "whose journals begin alike are compared"
    );
    postgres.sql("postgres", "CREATE ROLE node LOGIN IN ROLE bursar_node");
    cap(&postgres, 1_000);
    let holder = Holder::new(&postgres, 2).await;
    assert_eq!(granted(holder.wants(300).await).amount, usd(300));
    // A ledger of version 1 ships on where it was, and holds leases.
    let goes_on = r#"
        SELECT verdict FROM bursar_fleet.ship('00000000-0000-4000-8000-000000000001', sha256('one'), 4,
            (SELECT mark_chain FROM bursar_fleet.ledgers WHERE id = '00000000-0000-4000-8000-000000000001'), ARRAY[5], ARRAY[5],
            ARRAY['{"seq":5,"kind":"outcome","id":"00000000-0000-4000-8000-0000000000b5","started_ms":5,"adds_micro_usd":1,"state":"settled"}'],
            ARRAY[sha256('w')], 5);
        SELECT bursar_fleet.hold('00000000-0000-4000-8000-000000000001', sha256('one'), 'm', 5, '[]')::json ->> 'paused';
        SELECT verdict, amount FROM bursar_fleet.lease('00000000-0000-4000-8000-000000000001', sha256('one'), 'm', 'team',
            gen_random_uuid(), 200, 10, 0);
    "#;
    assert_eq!(postgres.sql(DATABASE, goes_on), "taken\nfalse\ngranted|200");
    assert_eq!(charged(&postgres), 500);
    assert_eq!(super::summed(&postgres), (5, 150));

    // The older file is not put over it.
    let refused = postgres.try_sql("admin", DATABASE, VERSION_1);
    assert!(!refused.status.success());
    assert_eq!(postgres.sql(DATABASE, version), "2");
    assert_eq!(granted(holder.wants(100).await).amount, usd(100));
}
