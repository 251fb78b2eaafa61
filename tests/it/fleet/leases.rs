//! Leases of shared caps in a real PostgreSQL: no more is leased than the cap, whatever is asked, repeated, given back or copied.

use bursar::caps::leases::{GiveBackAnswer, Lease, LeaseAnswer, LeaseTotals};
use bursar::fleet::FleetError;
use tokio::task::JoinSet;

use super::holder::{Holder, capped, charged, granted, part, share, usd, wish};
use super::{DATABASE, connect};

/// Asks and gives back, round by round; answers what it has at the end.
async fn trades(holder: Holder, rounds: u32) -> u64 {
    let mut had = LeaseTotals::default();
    for round in 0..rounds {
        let want = u64::from(round * 7 % 90 + 10);
        match holder.wants(want).await {
            LeaseAnswer::Granted(grant) => {
                assert!(grant.amount <= usd(want.max(10)), "{grant:?}");
                had = grant.lease.lease.totals;
                if round % 3 == 0 {
                    let amount = grant.amount.get() / 2;
                    let part = part(&grant.lease.lease, had.give_back_number + 1, amount, 0);
                    match holder.gives_back(part).await {
                        GiveBackAnswer::Taken(totals) => had = totals,
                        other => panic!("{other:?}"),
                    }
                }
            }
            LeaseAnswer::Empty { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    had.granted.get() - had.given_back.get()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_cap_is_not_leased_beyond_its_limit_whoever_asks_at_once() {
    const LIMIT: u64 = 3_000;
    let postgres = capped(LIMIT);
    let watched = "CREATE FUNCTION bursar_fleet.too_much() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
            IF (SELECT sum(charged) FROM bursar_fleet.leases) > 3000 THEN RAISE 'beyond the cap'; END IF;
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER too_much AFTER INSERT OR UPDATE ON bursar_fleet.leases
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION bursar_fleet.too_much()";
    let mut trading = JoinSet::new();
    let mut holders = Vec::new();
    for number in 1..10 {
        holders.push(Holder::new(&postgres, number).await);
    }
    // Each commit is looked at, too.
    postgres.sql(DATABASE, watched);
    for holder in holders {
        trading.spawn(trades(holder, 30));
    }
    let mut sum = 0;
    while let Some(had) = trading.join_next().await {
        sum += had.expect("it traded");
    }
    assert_eq!(charged(&postgres), sum);
    assert!(sum <= LIMIT, "{sum}");
    assert!(sum > LIMIT / 2, "they wanted more than there is: {sum}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_request_whose_answer_was_lost_is_granted_once() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    let ask = wish(300, 10, 0);
    let first = granted(holder.ask(&ask).await);
    assert_eq!((first.amount, first.left), (usd(300), usd(700)));
    // By another connection, as behind a pooler.
    let again = holder.copied(&postgres).await;
    let second = granted(again.ask(&ask).await);
    assert_eq!(second.amount, first.amount);
    assert_eq!(second.lease.lease, first.lease.lease);
    assert_eq!(charged(&postgres), 300);
    let more = granted(holder.wants(200).await);
    assert_eq!(more.lease.lease.lease, first.lease.lease.lease, "it grows");
    assert_eq!(more.lease.lease.totals.granted, usd(500));
    assert_eq!(charged(&postgres), 500);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn what_is_given_back_counts_once_and_is_leased_again() {
    let postgres = capped(1_000);
    let one = Holder::new(&postgres, 1).await;
    let two = Holder::new(&postgres, 2).await;
    let lease = granted(one.wants(1_000).await).lease.lease;
    let limit = usd(1_000);
    let empty = |may_return| LeaseAnswer::Empty { may_return, limit };
    assert_eq!(two.wants(100).await, empty(true));
    one.bills(lease.lease, &[150]).await;

    // The lines have to be there, and what they bill is not given back.
    assert_eq!(
        one.gives_back(part(&lease, 1, 100, 2)).await,
        GiveBackAnswer::Behind
    );
    for (number, amount) in [(1, 851), (2, 100)] {
        let answer = one.gives_back(part(&lease, number, amount, 1)).await;
        assert_eq!(answer, GiveBackAnswer::TooMuch(lease.totals));
    }
    let totals = LeaseTotals {
        granted: limit,
        given_back: usd(600),
        give_back_number: 1,
    };
    assert_eq!(
        one.gives_back(part(&lease, 1, 600, 1)).await,
        GiveBackAnswer::Taken(totals)
    );
    for amount in [600, 1] {
        let again = one.gives_back(part(&lease, 1, amount, 1)).await;
        assert_eq!(again, GiveBackAnswer::Known(totals), "the number decides");
    }
    assert_eq!(charged(&postgres), 400);
    // Nobody gives back what is another's.
    assert_eq!(
        two.gives_back(part(&lease, 2, 100, 0)).await,
        GiveBackAnswer::Unknown
    );

    let rest = granted(two.wants(900).await);
    assert_eq!(
        (rest.amount, rest.left),
        (usd(300), usd(300)),
        "a half each"
    );
    let answer = one.gives_back(part(&lease, 2, 250, 1)).await;
    assert!(matches!(answer, GiveBackAnswer::Taken(_)), "{answer:?}");
    assert_eq!(charged(&postgres), 150 + 300);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn near_the_end_holders_get_equal_parts_then_single_requests_then_nothing() {
    let postgres = capped(1_000);
    let one = Holder::new(&postgres, 1).await;
    let two = Holder::new(&postgres, 2).await;
    assert_eq!(granted(one.wants(600).await).amount, usd(600));
    assert_eq!(
        granted(two.wants(300).await).amount,
        usd(200),
        "400 for two"
    );
    assert_eq!(
        granted(one.wants(300).await).amount,
        usd(100),
        "200 for two"
    );
    // A half is less than a request.
    assert_eq!(granted(two.ask(&wish(300, 80, 0)).await).amount, usd(80));
    assert_eq!(
        granted(two.ask(&wish(300, 80, 0)).await).amount,
        usd(20),
        "the last"
    );
    let limit = usd(1_000);
    let empty = |may_return| LeaseAnswer::Empty { may_return, limit };
    assert_eq!(one.wants(10).await, empty(true));
    // What a machine that is not heard has open does not come back soon.
    let away = format!(
        "UPDATE bursar_fleet.ledgers SET heard = now() - interval '6 minutes' WHERE id = '{}'",
        two.identity.ledger
    );
    postgres.sql(DATABASE, &away);
    assert_eq!(one.wants(10).await, empty(false));
    assert_eq!(charged(&postgres), 1_000, "and stays counted");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_lease_counts_what_its_lines_bill_where_that_is_more() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    let lease = granted(holder.wants(100).await).lease.lease;
    holder.bills(lease.lease, &[40, 30]).await;
    assert_eq!(charged(&postgres), 100);
    holder.bills(lease.lease, &[50]).await;
    assert_eq!(
        charged(&postgres),
        120,
        "the last request cost more than was left"
    );
    let over = "SELECT leased_micro_usd, billed_micro_usd, over_micro_usd FROM bursar_fleet.over";
    assert_eq!(postgres.sql(DATABASE, over), "100|120|20");
    let held = holder.hold(&[]).await;
    assert_eq!(held.leases[0].billed.get(), 120);
    assert_eq!(held.caps[0].charged.get(), 120);
    // A lease of another ledger is not the caller's to bill.
    let other = Holder::new(&postgres, 2).await;
    other.bills(lease.lease, &[500]).await;
    assert_eq!(charged(&postgres), 120);
    assert_eq!(
        super::summed(&postgres).1,
        620,
        "the sums have it all the same"
    );
}

/// A copy spends the leases of the ledger that it was until it notices that it is one: that counts in them.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn what_a_copy_spends_of_its_originals_lease_counts_in_it() {
    let postgres = capped(1_000);
    let original = Holder::new(&postgres, 1).await;
    let lease = granted(original.wants(100).await).lease.lease;
    original.bills(lease.lease, &[60]).await;
    let common = original.hello().await.chain;
    let mut copy = original.copied(&postgres).await;
    copy.identity = copy.identity.becoming(1).expect("a name");
    let fork = copy.fleet.fork(&copy.identity, &common);
    fork.await.expect("a name of its own");
    copy.identity = copy.identity.become_it().expect("a name");
    copy.bills(lease.lease, &[70]).await;
    assert_eq!(charged(&postgres), 130);
    assert!(
        copy.leases().await.is_empty(),
        "under its own name it has none"
    );
    assert_eq!(granted(copy.wants(50).await).amount, usd(50));
    assert_eq!(charged(&postgres), 180);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_ledger_leases_no_more_than_its_share_and_ahead_only_what_it_may() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    let limit = usd(1_000);
    let refused = LeaseAnswer::Share { limit };
    assert_eq!(holder.ask(&wish(50, 10, 1)).await, refused, "nothing ahead");
    share(&postgres, &holder, "300", 2, 120);
    assert_eq!(granted(holder.wants(900).await).amount, usd(300));
    assert_eq!(holder.wants(10).await, refused);
    for ahead in 1..=2 {
        let grant = granted(holder.ask(&wish(900, 10, ahead)).await);
        assert_eq!((grant.amount, grant.left), (usd(120), usd(880)));
        assert!(grant.lease.begins_in_ms > 0);
        let window = grant.lease.lease.window;
        let length_ms = grant.lease.ends_in_ms - grant.lease.begins_in_ms;
        let rounded_ms = window.until_ms - window.since_ms - length_ms;
        assert!(rounded_ms <= 1, "never longer: {grant:?}");
        assert_eq!(holder.ask(&wish(10, 10, ahead)).await, refused);
    }
    assert_eq!(holder.ask(&wish(10, 10, 3)).await, refused);
    let leases = holder.leases().await;
    let windows: Vec<(u64, u64)> = leases
        .iter()
        .map(|lease| (lease.window.since_ms, lease.window.until_ms))
        .collect();
    assert_eq!(windows.len(), 3);
    assert!(
        windows.windows(2).all(|pair| pair[0].1 == pair[1].0),
        "{windows:?}"
    );
    assert_eq!(charged(&postgres), 300, "of now");
    let caps = holder.hold(&[]).await.caps;
    assert_eq!(
        (caps[0].largest, caps[0].ahead_windows, caps[0].ahead),
        (Some(usd(300)), 2, usd(120))
    );
}

/// Names for copies cost nothing: one that has a ledger's secret makes them.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_ledger_and_all_its_copies_have_one_share_together() {
    let postgres = capped(1_000);
    let one = Holder::new(&postgres, 1).await;
    let before = one.forked(&postgres).await;
    share(&postgres, &one, "300", 1, 120);
    let copy_of_copy = before.forked(&postgres).await;
    assert_eq!(granted(one.wants(100).await).amount, usd(100));
    assert_eq!(granted(before.wants(1_000).await).amount, usd(200));
    let refused = LeaseAnswer::Share { limit: usd(1_000) };
    for holder in [&one, &before, &copy_of_copy] {
        assert_eq!(holder.wants(10).await, refused);
    }
    // Ahead, too, and as a restored database has it stated.
    let ahead = granted(copy_of_copy.ask(&wish(1_000, 10, 1)).await);
    assert_eq!(ahead.amount, usd(120));
    assert_eq!(one.ask(&wish(10, 10, 1)).await, refused);
    let lease = one.leases().await.remove(0);
    let made_up = Lease {
        lease: copy_of_copy.identity.ledger,
        ..lease
    };
    copy_of_copy.hold(&[made_up]).await;
    assert_eq!(charged(&postgres), 300);

    // Whoever shuts one out may shut out what came of it.
    let revoke = format!(
        "SELECT bursar_fleet.revoke_ledger('{}', true)",
        before.identity.ledger
    );
    let done = postgres.try_sql("operator", DATABASE, &revoke);
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "t");
    let left = "SELECT ledger FROM bursar_fleet.fleet WHERE revoked IS NULL";
    assert_eq!(
        postgres.sql(DATABASE, left),
        one.identity.ledger.to_string()
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_revoked_ledger_gets_nothing_and_its_lease_stays_counted() {
    let postgres = capped(1_000);
    let stolen = Holder::new(&postgres, 1).await;
    let other = Holder::new(&postgres, 2).await;
    let lease = granted(stolen.wants(700).await).lease.lease;
    let revoke = format!(
        "SELECT bursar_fleet.revoke_ledger('{}')",
        stolen.identity.ledger
    );
    postgres.sql(DATABASE, &revoke);
    let ask = wish(10, 10, 0);
    let leased = stolen.fleet.lease(&stolen.identity, &stolen.machine, &ask);
    assert!(matches!(leased.await, Err(FleetError::Revoked)));
    let held = stolen.fleet.hold(&stolen.identity, &stolen.machine, 0, &[]);
    assert!(matches!(held.await, Err(FleetError::Revoked)));
    let part = part(&lease, 1, 100, 0);
    let given_back = stolen.fleet.give_back(&stolen.identity, &part);
    assert!(matches!(given_back.await, Err(FleetError::Revoked)));
    assert_eq!(charged(&postgres), 700);
    assert_eq!(granted(other.wants(900).await).amount, usd(300));
    let limit = usd(1_000);
    assert_eq!(
        other.wants(10).await,
        LeaseAnswer::Empty {
            may_return: false,
            limit
        }
    );
}

/// Another machine, another start of it, or another run of the database: the leases are presented first.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_lease_is_of_the_machine_that_presented_it_last() {
    let postgres = capped(1_000);
    let mut holder = Holder::new(&postgres, 1).await;
    let ask = wish(100, 10, 0);
    let lease = granted(holder.ask(&ask).await).lease.lease;
    holder.machine = "machine-1, boot 2".to_owned();
    assert_eq!(holder.ask(&ask).await, LeaseAnswer::Elsewhere);
    assert_eq!(holder.wants(10).await, LeaseAnswer::Elsewhere);
    let held = holder.hold(std::slice::from_ref(&lease)).await;
    assert!(!held.is_paused);
    assert_eq!(
        held.leases[0].lease, lease,
        "it is the same, for the rest of its time"
    );
    assert_eq!(granted(holder.ask(&ask).await).amount, usd(100));

    // The server starts anew: it may be another one.
    postgres.end();
    postgres.begin();
    holder.fleet = connect(&postgres).await;
    assert_eq!(holder.wants(10).await, LeaseAnswer::Elsewhere);
    assert!(!holder.hold(&[lease]).await.is_paused);
    assert_eq!(granted(holder.wants(10).await).amount, usd(10));
}

/// A transaction that saw the sums before it got the lock would lease what others have.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_caller_with_a_snapshot_of_its_own_is_refused() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    let secret = holder.secret();
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let call = format!(
            "BEGIN ISOLATION LEVEL {level}; SELECT bursar_fleet.lease('{}', '\\x{secret}', '{}', 'team', \
             gen_random_uuid(), 10, 10, 0); COMMIT",
            holder.identity.ledger, holder.machine
        );
        let tried = postgres.try_sql("node", DATABASE, &call);
        let why = String::from_utf8_lossy(&tried.stderr).into_owned();
        assert!(why.contains("read committed"), "{level}: {why}");
    }
    assert_eq!(charged(&postgres), 0);
}

/// They are the sums by window. What is shown as over is bounded.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn leases_of_windows_that_are_long_over_stay_whatever_is_granted() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    let old = "INSERT INTO bursar_fleet.leases (ledger, cap, since, until, granted, given_back, billed)
        SELECT ledger, 'team', now() - days * interval '1 day', now() - (days - 1) * interval '1 day', 100, 40, 70
        FROM bursar_fleet.fleet, unnest(ARRAY[90, 200]) AS days";
    postgres.sql(DATABASE, old);

    granted(holder.wants(100).await);

    let windows = "SELECT leased_micro_usd, billed_micro_usd, charged_micro_usd FROM bursar_fleet.cap_windows ORDER BY since";
    assert_eq!(
        postgres.sql(DATABASE, windows),
        "60|70|70\n60|70|70\n100|0|100"
    );
    let over = "SELECT count(*), sum(over_micro_usd) FROM bursar_fleet.over";
    assert_eq!(postgres.sql(DATABASE, over), "1|10");
}
