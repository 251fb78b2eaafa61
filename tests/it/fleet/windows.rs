//! The windows of shared caps: the calendar of their zone, and what becomes of leases when a cap is changed.

use bursar::caps::leases::LeaseAnswer;

use super::holder::{Holder, cap, capped, charged, granted, share, usd};
use super::{DATABASE, fleet};

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn windows_follow_each_other_in_the_calendar_of_their_zone() {
    let postgres = fleet();
    let hours = |zone: &str, at: &str| {
        let sql = format!(
            "SELECT (extract(epoch FROM until - since) / 3600)::int, since \
             FROM bursar_fleet.window_of('day', '{zone}', '{at}', 0)"
        );
        let answer = postgres.sql(DATABASE, &format!("SET TIME ZONE 'UTC'; {sql}"));
        let (hours, since) = answer.split_once('|').expect("two columns");
        (hours.parse::<u8>().expect("a number"), since.to_owned())
    };
    let cases = [
        (
            "Europe/Berlin",
            "2026-03-29 12:00+00",
            23,
            "2026-03-28 23:00:00+00",
        ),
        (
            "Europe/Berlin",
            "2026-10-25 12:00+00",
            25,
            "2026-10-24 22:00:00+00",
        ),
        (
            "Europe/Berlin",
            "2026-11-25 23:00+00",
            24,
            "2026-11-25 23:00:00+00",
        ),
        // In autumn midnight comes twice, in spring not at all.
        (
            "America/Havana",
            "2026-11-01 04:30+00",
            25,
            "2026-11-01 04:00:00+00",
        ),
        (
            "America/Havana",
            "2026-11-01 05:30+00",
            25,
            "2026-11-01 04:00:00+00",
        ),
        (
            "America/Havana",
            "2026-03-08 12:00+00",
            23,
            "2026-03-08 05:00:00+00",
        ),
    ];
    for (zone, at, length, since) in cases {
        assert_eq!(hours(zone, at), (length, since.to_owned()), "{zone} {at}");
    }
    let gaps = "SELECT count(*), count(*) FILTER (WHERE t < w.since OR t >= w.until OR n.since <> w.until
            OR o.since <> w.until OR o.until <> n.until)
        FROM unnest(ARRAY['UTC', 'Europe/Berlin', 'America/Havana', 'Asia/Beirut', 'Asia/Kolkata', 'Africa/Cairo',
                'Australia/Lord_Howe', 'Antarctica/Troll', 'Pacific/Chatham']) AS z,
            unnest(ARRAY['hour', 'day', 'month']) AS p,
            generate_series('2026-01-01 00:00+00', '2027-01-10 00:00+00', interval '5 hours 7 minutes') AS t,
            bursar_fleet.window_of(p, z, t, 0) AS w, bursar_fleet.window_of(p, z, w.until, 0) AS n,
            bursar_fleet.window_of(p, z, t, 1) AS o";
    let answer = postgres.sql(DATABASE, gaps);
    let (count, gaps) = answer.split_once('|').expect("two columns");
    assert!(count.parse::<u64>().expect("a count") > 40_000, "{count}");
    assert_eq!(gaps, "0");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_cap_that_is_changed_or_removed_still_counts_what_was_leased() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    granted(holder.wants(400).await);
    let order =
        |order: &str| postgres.sql(DATABASE, &format!("SELECT bursar_fleet.order_cap({order})"));
    assert_eq!(order("'team', 'month', 'Asia/Tokyo', 600"), "changed");
    assert_eq!(
        charged(&postgres),
        400,
        "by another calendar it is today, too"
    );
    let more = granted(holder.wants(900).await);
    assert_eq!(more.amount, usd(200));
    assert_eq!(holder.leases().await.len(), 2);
    assert_eq!(order("'team', NULL, NULL, NULL"), "removed");
    assert_eq!(order("'team', NULL, NULL, NULL"), "none");
    assert_eq!(holder.wants(10).await, LeaseAnswer::NoCap);
    assert_eq!(holder.leases().await.len(), 2, "they last until their end");
    assert_eq!(order("'team', 'day', 'UTC', 600"), "made");
    assert_eq!(charged(&postgres), 600);
    // What is no zone or no cap is none here either.
    for order in [
        "'team', 'day', 'Mars/Olympus', 1",
        "'team', 'year', 'UTC', 1",
        "'Team!', 'day', 'UTC', 1",
        "'team', 'day', 'UTC', -1",
    ] {
        let order = format!("SELECT bursar_fleet.order_cap({order})");
        assert!(
            !postgres
                .try_sql("operator", DATABASE, &order)
                .status
                .success(),
            "{order}"
        );
    }
    // An abbreviation is one offset all year there, and a zone with summer time here.
    for zone in ["CET", "EST"] {
        let set = format!("SELECT bursar_fleet.order_cap('team', 'day', '{zone}', 1)");
        let refused = postgres.try_sql("operator", DATABASE, &set);
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(why.contains("such as Europe/Paris"), "{zone}: {why}");
    }
    assert_eq!(order("'team', 'day', 'GMT', 600"), "changed");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_share_is_the_ledgers_again_when_its_cap_was_removed_and_set_anew() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    share(&postgres, &holder, "300", 0, 0);
    let remove = "SELECT bursar_fleet.order_cap('team', NULL, NULL, NULL)";
    assert_eq!(postgres.sql(DATABASE, remove), "removed");
    cap(&postgres, 1_000);
    assert_eq!(granted(holder.wants(900).await).amount, usd(300));
}
