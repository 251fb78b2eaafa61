//! Which shares are reached, and what becomes of notices that nobody sends.

use super::*;
use crate::apps::{Apps, Declared};
use crate::caps::Period;
use crate::clock::ManualClock;
use crate::config::{Env, Overrides};
use crate::ledger::entry::AttemptEnd;
use crate::ledger::fixtures::{self, START_MS, ended, intent};
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::{Ledger, LedgerOptions};
use crate::money::MicroUsd;

fn cap(spent: u128, held: u128, limit: u64) -> CapView {
    CapView {
        scope: "agent".to_owned(),
        period: Period::Day,
        limit: MicroUsd::new(limit),
        configured: MicroUsd::new(limit),
        spent: MicroUsdSum::from_micro_usd(spent),
        held: MicroUsdSum::from_micro_usd(held),
        reserved: MicroUsdSum::default(),
        under_way: 0,
        left: MicroUsdSum::default(),
        worst_case: None,
        since_ms: 1,
        resets_at_ms: 2,
        refusals: 0,
    }
}

fn shares() -> Vec<Share> {
    let shares = ["0.5", "0.8", "0.95"];
    shares
        .iter()
        .filter_map(|text| Share::parse(text))
        .collect()
}

#[test]
fn the_highest_share_that_is_billed_or_held_is_sent() {
    for (spent, held, limit, wanted) in [
        (49, 0, 100, None),
        (50, 0, 100, Some("0.5")),
        // What is held may be billed yet, and ends the app's spending as billed money does.
        (49, 1, 100, Some("0.5")),
        (79, 0, 100, Some("0.5")),
        (99, 0, 100, Some("0.95")),
        (0, 0, 0, None),
    ] {
        let view = CapsView {
            caps: vec![cap(spent, held, limit)],
            ..CapsView::default()
        };
        let share = reached(&view, &shares()).next();
        let share = share.map(|(_, share)| share.to_string());
        assert_eq!(share.as_deref(), wanted, "{spent} + {held} of {limit}");
    }
}

#[test]
fn a_notice_is_one_object_with_the_cap_and_its_figures() {
    let share = Share::parse("0.8").unwrap();
    let notice = Notice::of(&cap(4_000_000, 1, 5_000_000), share, Some("Europe/Berlin"));
    let object = serde_json::to_value(&notice).unwrap();
    let wanted = serde_json::json!({
        "event": "cap_warning",
        "id": "agent-day-1-5000000-8000",
        "app": "agent",
        "cap": "day",
        "window": {
            "since": "1970-01-01T00:00:00.001Z",
            "until": "1970-01-01T00:00:00.002Z",
            "time_zone": "Europe/Berlin",
        },
        "threshold": 0.8,
        "spent_micro_usd": 4_000_000,
        "held_micro_usd": 1,
        "limit_micro_usd": 5_000_000,
        "text": "bursar: 80 % of the cap of the app agent is used: $4.000000 spent and $0.000001 held of $5.000000 in \
                 the day. It begins anew at 1970-01-01 01:00:00.",
    });
    assert_eq!(object, wanted);
}

/// As a daemon has it, with what was billed.
async fn notices(
    folder: &tempfile::TempDir,
    lines: &str,
    billed: &[u64],
) -> (Arc<Notices>, Ledger) {
    let state_dir = folder.path().join("state");
    let file = folder.path().join("config.toml");
    std::fs::write(&file, lines).unwrap();
    let overrides = Overrides {
        config: Some(file),
        upstream: Some("http://127.0.0.1:8329".to_owned()),
        state_dir: Some(state_dir.clone()),
        ..Overrides::default()
    };
    let env = Env::from_pairs([("BURSAR_API_KEY", "key-of-the-test")]);
    let config = Arc::new(Config::load(&overrides, &env).unwrap());
    let clock: SharedClock = Arc::new(ManualClock::at(START_MS));
    let ledger = Ledger::open(LedgerOptions::new(&state_dir, Arc::clone(&clock))).unwrap();
    let apps = Apps::open(&state_dir, Declared::from(&*config)).unwrap();
    let rules = apps.cap_rules(&config.caps);
    let caps = Caps::new(&ledger, rules, &state_dir, Arc::clone(&clock));
    for amount in billed {
        let id = ledger.new_entry_id();
        ledger
            .intend(intent(id, START_MS, Some(&id.to_string())))
            .await
            .unwrap();
        let outcome = ended(id, AttemptEnd::Answered, fixtures::billed(*amount));
        ledger.settle(outcome).await.unwrap();
    }
    let metrics = Arc::new(Metrics::new().unwrap());
    (Notices::new(config, caps, metrics, clock), ledger)
}

#[tokio::test]
async fn what_finds_no_place_to_wait_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (notices, ledger) = notices(&folder, "[notify]\ncommand = [\"true\"]\n", &[]).await;
    let (to_send, _waiting) = mpsc::channel(WAITING_MAX);
    for _ in 0..WAITING_MAX + 3 {
        notices.hand_on(Notice::trial(1), &to_send);
    }
    let (totals, health) = ledger.totals_and_health();
    let page = notices.metrics.render(&totals, &health).unwrap();
    assert!(
        page.contains("bursar_cap_notices_total{result=\"dropped\"} 3\n"),
        "{page}"
    );
}

const DAY: &str = "[caps]\nday_micro_usd = 100\n";

#[tokio::test]
async fn a_share_is_sent_behind_its_mark_and_not_again() {
    let folder = tempfile::tempdir().unwrap();
    let (notices, _ledger) = notices(&folder, DAY, &[60, 25]).await;
    // A directory in its place can be neither read nor replaced.
    let place = notices.state_dir.join("notified");
    std::fs::create_dir_all(place.join("x")).unwrap();
    let none = Marks::default();
    notices.look(&none).await.expect_err("no mark, no notice");
    assert_eq!(notices.read_marks().await, notices.all_sent());
    let (_, sent) = notices.look(&notices.all_sent()).await.unwrap();
    assert_eq!(sent.len(), 0, "marks that are lost count as sent");

    std::fs::remove_dir_all(&place).unwrap();
    let (marks, sent) = notices.look(&none).await.unwrap();
    let shares: Vec<_> = sent.iter().map(|notice| notice.share.to_string()).collect();
    assert_eq!(shares, ["0.8"]);
    assert_eq!(notices.read_marks().await, marks, "as after a kill");
    let (_, sent) = notices.look(&marks).await.unwrap();
    assert_eq!(sent.len(), 0);
}

#[tokio::test]
async fn a_raise_arms_all_shares_again_and_its_end_none() {
    let folder = tempfile::tempdir().unwrap();
    let (notices, _ledger) = notices(&folder, DAY, &[60, 25]).await;
    let (marks, _) = notices.look(&Marks::default()).await.unwrap();
    let raise = |to| {
        notices
            .caps
            .raise(None, Period::Day, MicroUsd::new(to))
            .unwrap()
    };
    raise(1_000);
    let (marks, sent) = notices.look(&marks).await.unwrap();
    assert_eq!(sent.len(), 0, "8.5 % are used");
    raise(150);
    let (marks, sent) = notices.look(&marks).await.unwrap();
    assert_eq!(sent.len(), 1, "56 % are used");
    raise(100);
    let (_, sent) = notices.look(&marks).await.unwrap();
    assert_eq!(sent.len(), 0, "this was sent for this limit");
}

#[tokio::test]
async fn without_a_way_a_trial_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (notices, _ledger) = notices(&folder, "", &[]).await;
    let tried = notices.try_now().await;
    assert!(matches!(tried, Err(TryError::NoWay)), "{tried:?}");
}
