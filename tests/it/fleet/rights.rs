//! What a role may do in the fleet's database: a bursar calls its functions and reads or writes nothing that is not
//! its own.

use super::{DATABASE, connect, fleet, joined};

const OTHER: &str = "00000000-0000-4000-8000-000000000001";

/// Statements that a bursar's role must not get through with.
const FORBIDDEN: [&str; 96] = [
    "SELECT * FROM bursar_fleet.lines",
    "SELECT * FROM bursar_fleet.ledgers",
    "SELECT * FROM bursar_fleet.invites",
    "SELECT * FROM bursar_fleet.about",
    "SELECT * FROM bursar_fleet.fleet",
    "SELECT * FROM bursar_fleet.changes",
    "SELECT * FROM bursar_fleet.anomalies",
    "SELECT count(*) FROM bursar_fleet.lines",
    "TABLE bursar_fleet.ledgers",
    "COPY bursar_fleet.lines TO STDOUT",
    "COPY bursar_fleet.invites FROM '/etc/passwd'",
    "INSERT INTO bursar_fleet.lines (ledger, seq, last_seq, received, chain, kind) VALUES (gen_random_uuid(), 1, 1, now(), '', 'outcome')",
    "INSERT INTO bursar_fleet.invites (code_sha256, expires) VALUES (sha256('x'), now() + interval '1 day')",
    "INSERT INTO bursar_fleet.ledgers (id, secret_sha256, host_label, bursar) VALUES (gen_random_uuid(), sha256('x'), 'h', 'b')",
    "INSERT INTO bursar_fleet.about VALUES (true, 9)",
    "UPDATE bursar_fleet.lines SET billed_micro_usd = 0",
    "UPDATE bursar_fleet.ledgers SET mark_seq = 0",
    "UPDATE bursar_fleet.ledgers SET revoked = NULL",
    "UPDATE bursar_fleet.about SET version = 9",
    "UPDATE bursar_fleet.invites SET used_by = NULL",
    "DELETE FROM bursar_fleet.lines",
    "DELETE FROM bursar_fleet.ledgers",
    "TRUNCATE bursar_fleet.lines",
    "DROP TABLE bursar_fleet.lines",
    "DROP SCHEMA bursar_fleet CASCADE",
    "DROP FUNCTION bursar_fleet.leave",
    "ALTER TABLE bursar_fleet.lines ADD COLUMN mine text",
    "ALTER FUNCTION bursar_fleet.leave(uuid, bytea) OWNER TO bursar_node",
    "CREATE TABLE bursar_fleet.mine (a int)",
    "CREATE FUNCTION bursar_fleet.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'",
    "CREATE OR REPLACE VIEW bursar_fleet.fleet AS SELECT 1",
    "CREATE TRIGGER mine BEFORE INSERT ON bursar_fleet.lines EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "BEGIN; LOCK TABLE bursar_fleet.ledgers",
    "SELECT bursar_fleet.invite('a-code-of-my-own-making', NULL)",
    "SELECT bursar_fleet.revoke_ledger('00000000-0000-4000-8000-000000000001')",
    "SELECT bursar_fleet.caller('00000000-0000-4000-8000-000000000001', '')",
    "SELECT bursar_fleet.month_partition('2020-01-01')",
    "SELECT bursar_fleet.line_at('00000000-0000-4000-8000-000000000001', 9)",
    "SELECT bursar_fleet.hello('00000000-0000-4000-8000-000000000001', sha256('guess'), 'h', 'b', 0, 0)",
    "SELECT bursar_fleet.acknowledged('00000000-0000-4000-8000-000000000001', sha256('guess'), 9)",
    "SELECT bursar_fleet.begin_pause('00000000-0000-4000-8000-000000000001', 9)",
    "SELECT bursar_fleet.end_pause()",
    "SELECT bursar_fleet.chain_at('00000000-0000-4000-8000-000000000001', sha256('guess'), 1)",
    "SELECT bursar_fleet.ship('00000000-0000-4000-8000-000000000001', sha256('guess'), 0, '', '{}', '{}', '{}', '{}', 0)",
    "SELECT bursar_fleet.leave('00000000-0000-4000-8000-000000000001', sha256('guess'))",
    "SELECT bursar_fleet.family_has('00000000-0000-4000-8000-000000000001', sha256('guess'), ARRAY[1], ARRAY[sha256('x')])",
    "SELECT * FROM bursar_fleet.shared_line('00000000-0000-4000-8000-000000000001', ARRAY[1], ARRAY[sha256('x')])",
    "SELECT bursar_fleet.fork('00000000-0000-4000-8000-000000000001', sha256('guess'), 0, '', gen_random_uuid(), sha256('x'))",
    "SELECT * FROM bursar_fleet.freezes",
    "SELECT * FROM bursar_fleet.thaws",
    "INSERT INTO bursar_fleet.thaws (app, at) VALUES ('', now())",
    "SELECT * FROM bursar_fleet.orders",
    "INSERT INTO bursar_fleet.freezes (app, ordered_by) VALUES ('', 'me')",
    "DELETE FROM bursar_fleet.freezes",
    "SELECT bursar_fleet.order_freeze('')",
    "SELECT bursar_fleet.order_thaw('')",
    "SELECT * FROM bursar_fleet.kept_changes",
    "DELETE FROM bursar_fleet.kept_lines",
    "SELECT * FROM bursar_fleet.kept_under_way",
    "DELETE FROM bursar_fleet.kept_under_way",
    "SELECT * FROM bursar_fleet.line_changes",
    "INSERT INTO bursar_fleet.kept_anomalies VALUES ('key', 2, 1)",
    "SELECT bursar_fleet.detach_month('2020-01-01')",
    "SELECT bursar_fleet.call_listeners()",
    "SELECT * FROM bursar_fleet.caps",
    "SELECT * FROM bursar_fleet.shares",
    "SELECT * FROM bursar_fleet.leases",
    "SELECT * FROM bursar_fleet.caps_now",
    "SELECT * FROM bursar_fleet.leases_now",
    "SELECT * FROM bursar_fleet.over",
    "SELECT * FROM bursar_fleet.cap_windows",
    "SELECT * FROM bursar_fleet.open_invitations",
    "SELECT * FROM bursar_fleet.pause",
    "SELECT * FROM bursar_fleet.largest_shares",
    "INSERT INTO bursar_fleet.caps (name, period, zone, limit_micro_usd, ordered_by) VALUES ('mine', 'day', 'UTC', 9, 'me')",
    "INSERT INTO bursar_fleet.leases (ledger, cap, since, until, granted) VALUES (gen_random_uuid(), 'team', now(), now() + interval '1 day', 9)",
    "UPDATE bursar_fleet.caps SET limit_micro_usd = 1000000",
    "UPDATE bursar_fleet.leases SET granted = 1000000",
    "UPDATE bursar_fleet.shares SET largest_micro_usd = NULL",
    "UPDATE bursar_fleet.about SET paused_since = NULL",
    "DELETE FROM bursar_fleet.leases",
    "DELETE FROM bursar_fleet.shares",
    "SELECT bursar_fleet.order_cap('team', 'day', 'UTC', 1000000)",
    "SELECT bursar_fleet.order_cap('team', NULL, NULL, NULL)",
    "SELECT bursar_fleet.order_share('00000000-0000-4000-8000-000000000001', 'team', NULL, 7, 1000000)",
    "SELECT bursar_fleet.resume()",
    "SELECT bursar_fleet.put_back('00000000-0000-4000-8000-000000000001', NULL)",
    "SELECT bursar_fleet.hold('00000000-0000-4000-8000-000000000001', sha256('guess'), 'm', 0, '[]')",
    "SELECT bursar_fleet.lease('00000000-0000-4000-8000-000000000001', sha256('guess'), 'm', 'team', gen_random_uuid(), 1, 1, 0)",
    "SELECT bursar_fleet.give_back('00000000-0000-4000-8000-000000000001', sha256('guess'), gen_random_uuid(), 1, 1, 0)",
    "SELECT * FROM bursar_fleet.paces",
    "DELETE FROM bursar_fleet.paces",
    "SELECT bursar_fleet.pace('00000000-0000-4000-8000-000000000001', sha256('guess'), 8, 120, 8, 120)",
    "NOTIFY bursar_fleet; SELECT bursar_fleet.order_thaw('')",
    "SET ROLE bursar_fleet_owner",
    "SET ROLE bursar_operator",
];

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_bursars_role_gets_through_with_none_of_the_forbidden_statements() {
    let postgres = fleet();
    let database = connect(&postgres).await;
    let directory = tempfile::tempdir().expect("a directory");
    joined(&database, &super::state_in(&directory), 1).await;
    // Somebody else's ledger, whose secret is not known to the caller.
    postgres.sql(
        DATABASE,
        &format!("UPDATE bursar_fleet.ledgers SET id = '{OTHER}'"),
    );
    postgres.sql(
        DATABASE,
        "SELECT bursar_fleet.order_cap('team', 'day', 'UTC', 500)",
    );
    let everything = "SELECT md5(string_agg(t::text, '')) FROM bursar_fleet.ledgers t UNION ALL
        SELECT md5(string_agg(t::text, '')) FROM bursar_fleet.caps t UNION ALL
        SELECT count(*)::text FROM bursar_fleet.leases UNION ALL SELECT epoch::text FROM bursar_fleet.about";
    let before = postgres.sql(DATABASE, everything);
    for statement in FORBIDDEN {
        let tried = postgres.try_sql("node", DATABASE, statement);
        let why = String::from_utf8_lossy(&tried.stderr).into_owned();
        assert!(!tried.status.success(), "{statement}");
        let is_refused = [
            "permission denied",
            "must be owner",
            "does not know the ledger",
            "must be superuser",
        ];
        assert!(
            is_refused.iter().any(|words| why.contains(words)),
            "{statement}: {why}"
        );
    }
    assert_eq!(postgres.sql(DATABASE, everything), before);
    assert_eq!(
        postgres.sql(DATABASE, "SELECT count(*) FROM bursar_fleet.lines"),
        "0"
    );
}

/// Functions run with their owner's rights: what a caller puts in front of the names that they use changes nothing.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_callers_own_objects_are_not_used_by_the_functions() {
    let postgres = fleet();
    let shadow = "CREATE TEMP TABLE ledgers (id uuid, secret_sha256 bytea, mark_seq bigint, mark_chain bytea, revoked timestamptz);
        INSERT INTO ledgers VALUES ('00000000-0000-4000-8000-000000000001', sha256('x'), 0, '', NULL);
        SET search_path = pg_temp, bursar_fleet;
        SELECT bursar_fleet.leave('00000000-0000-4000-8000-000000000001', 'x');";
    let tried = postgres.try_sql("node", DATABASE, shadow);
    let why = String::from_utf8_lossy(&tried.stderr).into_owned();
    assert!(why.contains("does not know the ledger"), "{why}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_reader_sees_the_views_and_changes_nothing() {
    let postgres = fleet();
    postgres.sql(
        DATABASE,
        "SELECT bursar_fleet.order_cap('team', 'day', 'UTC', 500)",
    );
    let views = [
        "fleet",
        "changes",
        "anomalies",
        "losses",
        "under_way",
        "orders",
        "caps_now",
        "leases_now",
        "over",
        "cap_windows",
        "open_invitations",
        "pause",
        "largest_shares",
    ];
    for view in views {
        let read = postgres.try_sql(
            "reader",
            DATABASE,
            &format!("SELECT * FROM bursar_fleet.{view}"),
        );
        assert!(read.status.success(), "{view}");
    }
    let secrets = [
        "SELECT secret_sha256 FROM bursar_fleet.ledgers",
        "SELECT bursar_fleet.invite('a-code-of-my-own-making', NULL)",
        "SELECT bursar_fleet.leave(gen_random_uuid(), 'x')",
        "SELECT bursar_fleet.order_freeze('')",
        "SELECT bursar_fleet.order_cap('team', 'day', 'UTC', 1000000)",
        "SELECT bursar_fleet.resume()",
        "SELECT bursar_fleet.hold(gen_random_uuid(), 'x', 'm', 0, '[]')",
        "SELECT machine FROM bursar_fleet.ledgers",
        "UPDATE bursar_fleet.caps_now SET limit_micro_usd = 9",
        "UPDATE bursar_fleet.fleet SET host = 'x'",
    ];
    for statement in secrets {
        assert!(
            !postgres
                .try_sql("reader", DATABASE, statement)
                .status
                .success(),
            "{statement}"
        );
    }
}

/// By the catalog, so that what a later version adds is looked at, too.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn nothing_is_granted_to_everybody_and_no_function_runs_by_a_callers_search_path() {
    let postgres = fleet();
    // A partition as the months make it, and one that was taken out.
    let month = "SET ROLE bursar_fleet_owner; SELECT bursar_fleet.month_partition('2020-01-01')";
    postgres.sql(DATABASE, month);
    postgres.sql(DATABASE, "SELECT bursar_fleet.detach_month('2020-01-01')");
    let of_the_schema = [
        (
            "functions",
            "SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'bursar_fleet'::regnamespace",
            true,
        ),
        (
            "functions that everybody may call",
            "SELECT p.oid::regprocedure FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
                WHERE p.pronamespace = 'bursar_fleet'::regnamespace AND a.grantee = 0",
            false,
        ),
        (
            "tables that everybody may use",
            "SELECT c.oid::regclass, a.privilege_type
                FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
                WHERE c.relnamespace = 'bursar_fleet'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
                    AND a.grantee = 0",
            false,
        ),
        (
            "columns that anybody else may use",
            "SELECT c.oid::regclass, t.attname FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid
                WHERE c.relnamespace = 'bursar_fleet'::regnamespace AND t.attacl IS NOT NULL",
            false,
        ),
        (
            "the schema, for everybody",
            "SELECT a.privilege_type FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) AS a
                WHERE n.nspname = 'bursar_fleet' AND a.grantee = 0",
            false,
        ),
        (
            "functions without a search path of their own",
            "SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'bursar_fleet'::regnamespace
                AND NOT 'search_path=bursar_fleet, pg_temp' = ANY (coalesce(p.proconfig, '{}'))",
            false,
        ),
        (
            "functions with the rights of another than the owner",
            "SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'bursar_fleet'::regnamespace
                AND p.prosecdef AND p.proowner <> 'bursar_fleet_owner'::regrole",
            false,
        ),
    ];
    for (what, query, is_some) in of_the_schema {
        let found = postgres.sql(DATABASE, query);
        assert_eq!(!found.is_empty(), is_some, "{what}: {found}");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn an_operator_ships_nothing_and_reads_no_line_and_no_secret() {
    let postgres = fleet();
    for statement in [
        "SELECT bursar_fleet.ship(gen_random_uuid(), 'x', 0, '', '{}', '{}', '{}', '{}', 0)",
        "SELECT bursar_fleet.hello(gen_random_uuid(), 'x', 'h', 'b', 0, 0)",
        "SELECT bursar_fleet.lease(gen_random_uuid(), 'x', 'm', 'team', gen_random_uuid(), 1, 1, 0)",
        "SELECT * FROM bursar_fleet.lines",
        "SELECT * FROM bursar_fleet.kept_lines",
        "SELECT * FROM bursar_fleet.kept_under_way",
        "SELECT secret_sha256 FROM bursar_fleet.ledgers",
        "SELECT code_sha256 FROM bursar_fleet.invites",
        "UPDATE bursar_fleet.caps SET limit_micro_usd = 9",
        "DELETE FROM bursar_fleet.freezes",
    ] {
        let tried = postgres.try_sql("operator", DATABASE, statement);
        let why = String::from_utf8_lossy(&tried.stderr).into_owned();
        assert!(why.contains("permission denied"), "{statement}: {why}");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_revoked_ledger_is_refused_and_what_it_shipped_stays() {
    let postgres = fleet();
    let database = connect(&postgres).await;
    let origin = super::pricing(4).await;
    let bursar = crate::support::Bursar::before(&origin.url()).await;
    super::buy(&bursar, "one").await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    super::ship(&database, &mut shipping).await;
    let ledger = shipping.identity().ledger;
    let revoke = format!("SELECT bursar_fleet.revoke_ledger('{ledger}')");
    let done = postgres.try_sql("operator", DATABASE, &revoke);
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "t");
    super::buy(&bursar, "two").await;
    let refused = shipping
        .visit(&database, 0)
        .await
        .expect_err("it is revoked");
    assert!(refused.to_string().contains("revoked"), "{refused}");
    // Nor does it come back as a copy of itself, or with another code.
    let again = shipping.enrol(&database, "a-code-for-one-ledger-2").await;
    assert!(again.is_err());
    assert_eq!(super::summed(&postgres), (1, 4));
}
