//! Copies of a ledger's directory, and copies of the database: nothing is counted twice, and nothing is lost.

use super::{
    Fleet, Shipping, buy, connect, copied, fleet, joined, left_alone, lose_lines, pricing,
    pricing_always, ship, summed,
};
use crate::support::postgres::Postgres;
use crate::support::{Bursar, Origin};

/// How many ledgers the fleet has, and how many of them are copies.
fn ledgers(postgres: &Postgres) -> String {
    postgres.sql(
        super::DATABASE,
        "SELECT count(*), count(copy_of) FROM bursar_fleet.ledgers",
    )
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_clone_counts_what_it_bought_itself_whichever_of_the_two_comes_first() {
    for clone_first in [false, true] {
        let postgres = fleet();
        let origin = pricing(10).await;
        let bursar = Bursar::before(&origin.url()).await;
        let database = connect(&postgres).await;
        let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
        buy(&bursar, "before").await;
        ship(&database, &mut shipping).await;
        // Both have this one; only one of them ships it.
        buy(&bursar, "unshipped").await;
        let clone = Bursar::on(copied(&bursar.state_dir()), &origin.url()).await;
        let path = clone.state_dir();
        buy(&bursar, "the original's").await;
        for prompt in ["the clone's", "another of the clone's"] {
            buy(&clone, prompt).await;
        }
        let mut cloned = joined(&database, &path, 2).await;
        let mut forks = 0;
        for is_clone in [clone_first, !clone_first, clone_first, !clone_first] {
            let shipped = match is_clone {
                true => ship(&database, &mut cloned).await,
                false => ship(&database, &mut shipping).await,
            };
            forks += u32::from(shipped.forked);
        }
        // 2 in common, 1 of the original, 2 of the clone.
        assert_eq!(summed(&postgres), (5, 50), "clone first: {clone_first}");
        assert_eq!(forks, 1, "the second one takes another name");
        assert_eq!(ledgers(&postgres), "2|1");
        let sums = [bursar.billed(), clone.billed()];
        assert_eq!(sums, [30, 40], "no local sum changes");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_clone_of_a_clone_shares_what_each_of_its_ancestors_shipped() {
    let postgres = fleet();
    let origin = pricing(1).await;
    let first = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut one = joined(&database, &first.state_dir(), 1).await;
    buy(&first, "1").await;
    ship(&database, &mut one).await;
    let second = Bursar::on(copied(&first.state_dir()), &origin.url()).await;
    let path = second.state_dir();
    buy(&first, "2").await;
    ship(&database, &mut one).await;
    buy(&second, "3").await;
    let mut two = joined(&database, &path, 2).await;
    assert!(ship(&database, &mut two).await.forked);
    // Of the clone, twice: one that has lines of the clone's own, and one that is brought back to before them.
    let third = Bursar::on(copied(&path), &origin.url()).await;
    let path = third.state_dir();
    buy(&second, "4").await;
    ship(&database, &mut two).await;
    buy(&third, "5").await;
    let mut three = joined(&database, &path, 3).await;
    assert!(ship(&database, &mut three).await.forked);
    assert_eq!(summed(&postgres), (5, 5));
    assert_eq!(ledgers(&postgres), "3|2");
    assert_eq!([first.billed(), second.billed(), third.billed()], [2, 3, 3]);
}

/// Else the original were gone, and its leases ahead were given to others.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_copy_that_leaves_before_it_ever_shipped_leaves_under_a_name_of_its_own() {
    let postgres = fleet();
    let origin = pricing(1).await;
    let original = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &original.state_dir(), 1).await;
    buy(&original, "before").await;
    ship(&database, &mut shipping).await;
    let clone = Bursar::on(copied(&original.state_dir()), &origin.url()).await;
    buy(&original, "the original's").await;
    buy(&clone, "the clone's").await;
    ship(&database, &mut shipping).await;

    let mut cloned = joined(&database, &clone.state_dir(), 2).await;
    cloned.leave(&database, 0, 0).await.expect("it leaves");

    let gone = "SELECT count(copy_of), count(*) FROM bursar_fleet.ledgers WHERE gone IS NOT NULL";
    assert_eq!(postgres.sql(super::DATABASE, gone), "1|1");
}

/// Two copies of a copy, with a line that none of the three had shipped.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn what_copies_have_in_common_counts_once_though_the_original_never_had_it() {
    let postgres = fleet();
    let origin = pricing(1).await;
    let original = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut of_original = joined(&database, &original.state_dir(), 1).await;
    buy(&original, "before").await;
    ship(&database, &mut of_original).await;
    let copy = Bursar::on(copied(&original.state_dir()), &origin.url()).await;
    buy(&copy, "of the copies").await;
    let other = Bursar::on(copied(&copy.state_dir()), &origin.url()).await;
    for (bursar, prompt) in [(&original, "a"), (&copy, "b"), (&other, "c")] {
        buy(bursar, prompt).await;
    }
    for bursar in [&original, &copy, &other] {
        let mut shipping = joined(&database, &bursar.state_dir(), 2).await;
        let shipped = ship(&database, &mut shipping).await;
        assert_eq!(shipped.mark_seq, shipped.journal_seq);
    }
    assert_eq!(summed(&postgres), (5, 5));
    assert_eq!(ledgers(&postgres), "3|2");
}

/// An original, and two copies that have four batches and more in common which nobody has shipped. All three have bought
/// since, the original has shipped, and each copy has compared itself with the fleet and taken a name before either ships.
async fn named_at_the_same_moment(database: &Fleet) -> (Origin, [Bursar; 2], [Shipping; 2]) {
    let origin = pricing_always(1).await;
    let original = Bursar::before(&origin.url()).await;
    let mut of_original = joined(database, &original.state_dir(), 1).await;
    buy(&original, "before").await;
    ship(database, &mut of_original).await;
    let copy = Bursar::on(copied(&original.state_dir()), &origin.url()).await;
    for number in 0..1_100 {
        buy(&copy, &format!("of the copies, {number}")).await;
    }
    let other = Bursar::on(copied(&copy.state_dir()), &origin.url()).await;
    for (bursar, prompt) in [(&original, "a"), (&copy, "b"), (&other, "c")] {
        buy(bursar, prompt).await;
    }
    ship(database, &mut of_original).await;
    let mut of_copy = joined(database, &copy.state_dir(), 2).await;
    let mut of_other = joined(database, &other.state_dir(), 3).await;
    for shipping in [&mut of_copy, &mut of_other] {
        shipping.agree(database, 0).await.expect("a name");
    }
    (origin, [copy, other], [of_copy, of_other])
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn copies_that_look_at_the_same_moment_count_what_both_have_once_and_keep_their_names() {
    let postgres = fleet();
    let database = connect(&postgres).await;
    let (_origin, _bursars, shippings) = named_at_the_same_moment(&database).await;
    for mut shipping in shippings {
        let shipped = ship(&database, &mut shipping).await;
        assert_eq!(shipped.mark_seq, shipped.journal_seq);
        assert!(!shipped.forked);
    }
    assert_eq!(summed(&postgres), (1_104, 1_104));
    assert_eq!(ledgers(&postgres), "3|2");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn copies_that_ship_at_the_same_moment_count_what_both_have_once() {
    let postgres = fleet();
    let [database, another] = [connect(&postgres).await, connect(&postgres).await];
    let (_origin, _bursars, [mut of_copy, mut of_other]) =
        named_at_the_same_moment(&database).await;
    // Where one takes another name for what the other was quicker to ship, a visit may end before all is there.
    for _ in 0..20 {
        let (one, two) = tokio::join!(of_copy.visit(&database, 0), of_other.visit(&another, 0));
        for shipped in [one, two].into_iter().flatten() {
            assert_eq!(shipped.mark_seq, shipped.journal_seq);
        }
        if summed(&postgres).0 >= 1_104 {
            break;
        }
    }
    assert_eq!(summed(&postgres), (1_104, 1_104));
}

/// What it asks the database about is a batch, whose last place the loss has.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_copy_that_lost_lines_at_the_end_of_a_batch_takes_a_name_and_ships_the_rest() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let original = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut of_original = joined(&database, &original.state_dir(), 1).await;
    buy(&original, "before").await;
    ship(&database, &mut of_original).await;
    let copy = Bursar::on(copied(&original.state_dir()), &origin.url()).await;
    for number in 0..300 {
        buy(&copy, &format!("of the copy, {number}")).await;
    }
    buy(&original, "the original's").await;
    ship(&database, &mut of_original).await;
    // Behind the two that both have there are 499 lines before them.
    lose_lines(&copy, 502..=503);

    let mut of_copy = joined(&database, &copy.state_dir(), 2).await;
    let shipped = ship(&database, &mut of_copy).await;

    assert!(shipped.forked);
    assert_eq!(shipped.mark_seq, shipped.journal_seq);
    assert_eq!(summed(&postgres), (301, 301), "an outcome is lost");
    assert_eq!(ledgers(&postgres), "2|1");
}

/// The database is restored between the moment at which a copy notes another name and that at which it is confirmed.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_copy_whose_last_common_line_was_forgotten_looks_anew() {
    let postgres = fleet();
    let origin = pricing(1).await;
    let original = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut of_original = joined(&database, &original.state_dir(), 1).await;
    buy(&original, "before the backup").await;
    ship(&database, &mut of_original).await;
    let backup = postgres.backup(super::DATABASE);
    buy(&original, "in common").await;
    ship(&database, &mut of_original).await;
    let copy = Bursar::on(copied(&original.state_dir()), &origin.url()).await;
    buy(&original, "a").await;
    ship(&database, &mut of_original).await;
    buy(&copy, "b").await;
    let forbidden = "REVOKE EXECUTE ON FUNCTION bursar_fleet.fork FROM bursar_node";
    postgres.sql(super::DATABASE, forbidden);
    let mut of_copy = joined(&database, &copy.state_dir(), 2).await;
    let unconfirmed = of_copy.visit(&database, 0).await;
    assert!(unconfirmed.is_err() && of_copy.identity().becomes.is_some());
    drop(database);
    left_alone(&postgres).await;

    postgres.restore(super::DATABASE, &backup);
    let database = connect(&postgres).await;
    for shipping in [&mut of_copy, &mut of_original] {
        let shipped = ship(&database, shipping).await;
        assert_eq!(shipped.mark_seq, shipped.journal_seq);
    }
    assert_eq!(summed(&postgres), (4, 4));
    assert_eq!(ledgers(&postgres), "2|1");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_golden_image_may_be_started_two_hundred_times() {
    let postgres = fleet();
    let origin = pricing_always(2).await;
    let image = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &image.state_dir(), 1).await;
    buy(&image, "of the image").await;
    ship(&database, &mut shipping).await;
    let mut forks = 0;
    for number in 0..200 {
        let started = Bursar::on(copied(&image.state_dir()), &origin.url()).await;
        let path = started.state_dir();
        let mut shipping: Shipping = joined(&database, &path, 2).await;
        buy(&started, &format!("of {number}")).await;
        forks += u32::from(ship(&database, &mut shipping).await.forked);
    }
    assert_eq!(summed(&postgres), (201, 402));
    assert_eq!(forks, 199, "the first goes on under the image's name");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_directory_restored_from_a_backup_ships_what_it_buys_from_then_on() {
    let postgres = fleet();
    let origin = pricing(5).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    buy(&bursar, "1").await;
    let backup = copied(&bursar.state_dir());
    buy(&bursar, "2").await;
    ship(&database, &mut shipping).await;
    drop(bursar);
    let restored = Bursar::on(backup, &origin.url()).await;
    let path = restored.state_dir();
    let mut shipping = joined(&database, &path, 1).await;
    // Before it has bought anything, the fleet has more than it: its number is not reached.
    assert!(ship(&database, &mut shipping).await.forked);
    assert_eq!(summed(&postgres), (2, 10), "what was bought was bought");
    buy(&restored, "3").await;
    assert!(!ship(&database, &mut shipping).await.forked);
    assert_eq!(summed(&postgres), (3, 15));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_database_restored_from_a_backup_is_given_what_it_forgot() {
    let postgres = fleet();
    let origin = pricing(5).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    buy(&bursar, "1").await;
    ship(&database, &mut shipping).await;
    drop(database);
    left_alone(&postgres).await;
    postgres.sql("postgres", "CREATE DATABASE backup TEMPLATE fleet");
    let database = connect(&postgres).await;
    for prompt in ["2", "3"] {
        buy(&bursar, prompt).await;
        ship(&database, &mut shipping).await;
    }
    assert_eq!(summed(&postgres), (3, 15));
    drop(database);
    left_alone(&postgres).await;
    postgres.sql("postgres", "DROP DATABASE fleet");
    postgres.sql("postgres", "ALTER DATABASE backup RENAME TO fleet");
    assert_eq!(summed(&postgres), (1, 5), "it forgot two");
    let database = connect(&postgres).await;
    let shipped = ship(&database, &mut shipping).await;
    assert_eq!((shipped.lines, shipped.forked), (4, false));
    assert_eq!(summed(&postgres), (3, 15));
}

/// As docs/runbook.md has it.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_database_that_moved_has_all_lines_and_takes_the_next_ones() {
    let postgres = fleet();
    let origin = pricing(5).await;
    let bursar = Bursar::before(&origin.url()).await;
    let old = connect(&postgres).await;
    let mut shipping = joined(&old, &bursar.state_dir(), 1).await;
    buy(&bursar, "1").await;
    ship(&old, &mut shipping).await;
    drop(old);

    let dump = postgres.backup(super::DATABASE);
    postgres.restore_new("moved", &dump, &["--no-acl"]);
    postgres.sql("moved", bursar::fleet::schema::SQL);

    let new = super::connect_to(&postgres.url("node", "moved")).await;
    buy(&bursar, "2").await;
    let shipped = ship(&new, &mut shipping).await;
    assert_eq!((shipped.lines, shipped.forked), (2, false));
    let sums = "SELECT sum(requests), sum(billed_micro_usd) FROM bursar_fleet.changes";
    assert_eq!(postgres.sql("moved", sums), "2|10");
    assert_eq!(summed(&postgres), (1, 5), "the old one is as it was");
    let read = postgres.try_sql("reader", "moved", "TABLE bursar_fleet.fleet");
    assert!(read.status.success());
    let forbidden = postgres.try_sql("node", "moved", "TABLE bursar_fleet.fleet");
    assert!(!forbidden.status.success());
}

/// What has one ledger's name and secret makes names without end, were it not for a bound.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_thousand_copies_a_day_take_names_of_their_own() {
    let postgres = fleet();
    let origin = pricing(5).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    buy(&bursar, "1").await;
    let clone = Bursar::on(copied(&bursar.state_dir()), &origin.url()).await;
    buy(&bursar, "2").await;
    ship(&database, &mut shipping).await;
    buy(&clone, "3").await;
    // Copies of copies count, too.
    let others = "INSERT INTO bursar_fleet.ledgers (id, secret_sha256, host_label, bursar, copy_of, copied_up_to, family)
        SELECT gen_random_uuid(), sha256('x'), 'h', 'b', id, 0, family FROM bursar_fleet.ledgers, generate_series(1, 1000)";
    postgres.sql(super::DATABASE, others);
    let mut cloned = joined(&database, &clone.state_dir(), 2).await;
    let refused = cloned.visit(&database, 0).await.expect_err("one too many");
    assert!(refused.to_string().contains("1000 copies"), "{refused}");
    assert_eq!(summed(&postgres), (2, 10));
    let later = "UPDATE bursar_fleet.ledgers SET joined = now() - interval '25 hours'";
    postgres.sql(super::DATABASE, later);
    assert!(ship(&database, &mut cloned).await.forked);
    assert_eq!(summed(&postgres), (3, 15));
}

/// What the fleet acknowledged is beside it, of numbers that other lines have now.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_journal_that_was_restored_by_itself_ships_what_it_has_written_since() {
    let postgres = fleet();
    let origin = pricing(10).await;
    let bursar = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
    buy(&bursar, "one").await;
    ship(&database, &mut shipping).await;
    let image = copied(&bursar.state_dir());
    for prompt in ["two", "three"] {
        buy(&bursar, prompt).await;
        ship(&database, &mut shipping).await;
    }
    let marks = bursar.state_dir().join("fleet-marks");
    std::fs::copy(marks, image.path().join("state/fleet-marks")).expect("a copy");

    let restored = Bursar::on(image, &origin.url()).await;
    let mut shipping = joined(&database, &restored.state_dir(), 1).await;
    // Up to the number that the fleet has, and beyond it.
    for count in 1..4_u32 {
        buy(&restored, &format!("since, {count}")).await;
        ship(&database, &mut shipping).await;
        let all = 3 + count;
        assert_eq!(summed(&postgres), (i64::from(all), u64::from(10 * all)));
    }
    assert_eq!(ledgers(&postgres), "2|1");
    let behind = "SELECT sum(lines_behind) FROM bursar_fleet.fleet";
    assert_eq!(postgres.sql(super::DATABASE, behind), "0");
}

/// The state directory of a ledger that has no name in a fleet.
fn nameless(bursar: &Bursar) -> tempfile::TempDir {
    let copy = copied(&bursar.state_dir());
    std::fs::remove_file(copy.path().join("state/fleet.json")).expect("it was there");
    copy
}

/// Its disk was copied before it joined, or the file of its name was lost.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn what_another_ledger_has_shipped_counts_once_though_a_code_of_its_own_let_the_copy_in() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let original = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut of_original = joined(&database, &original.state_dir(), 1).await;
    for number in 0..300 {
        buy(&original, &format!("of both, {number}")).await;
    }
    ship(&database, &mut of_original).await;
    let copy = Bursar::on(nameless(&original), &origin.url()).await;
    buy(&original, "the original's").await;
    buy(&copy, "the copy's").await;
    let mut of_copy = joined(&database, &copy.state_dir(), 2).await;
    for _ in 0..2 {
        let shipped = ship(&database, &mut of_copy).await;
        assert_eq!(shipped.mark_seq, shipped.journal_seq);
        ship(&database, &mut of_original).await;
    }
    assert_eq!(summed(&postgres), (302, 302));
    assert_eq!(ledgers(&postgres), "2|1");
    // Two codes were given, and neither ledger is another's in what it buys from here on.
    buy(&copy, "later").await;
    ship(&database, &mut of_copy).await;
    assert_eq!(summed(&postgres), (303, 303));

    // The original's name was shut out, and it comes by another one.
    let revoke = format!(
        "SELECT bursar_fleet.revoke_ledger('{}')",
        of_original.identity().ledger
    );
    postgres.sql(super::DATABASE, &revoke);
    buy(&original, "behind it").await;
    let renamed = Bursar::on(nameless(&original), &origin.url()).await;
    let mut of_renamed = joined(&database, &renamed.state_dir(), 3).await;
    ship(&database, &mut of_renamed).await;
    assert_eq!(summed(&postgres), (304, 304));
    let epoch = "SELECT epoch FROM bursar_fleet.about";
    let epoch = postgres.sql(super::DATABASE, epoch);
    assert_eq!(epoch, "0", "what was acknowledged was so to other names");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn two_copies_with_codes_of_their_own_that_ship_at_the_same_moment_count_what_both_have_once()
{
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let original = Bursar::before(&origin.url()).await;
    for number in 0..300 {
        buy(&original, &format!("of both, {number}")).await;
    }
    let copy = Bursar::on(copied(&original.state_dir()), &origin.url()).await;
    buy(&original, "the original's").await;
    buy(&copy, "the copy's").await;
    let databases = (connect(&postgres).await, connect(&postgres).await);
    let mut of_original = joined(&databases.0, &original.state_dir(), 1).await;
    let mut of_copy = joined(&databases.1, &copy.state_dir(), 2).await;
    tokio::join!(
        ship(&databases.0, &mut of_original),
        ship(&databases.1, &mut of_copy)
    );
    assert_eq!(summed(&postgres), (302, 302));
    assert_eq!(ledgers(&postgres), "2|1");
}

/// An image of a machine that joined before it had bought anything: its copies take names before their first line.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_copy_with_a_first_line_of_its_own_is_known_by_it_too() {
    let postgres = fleet();
    let origin = pricing_always(1).await;
    let original = Bursar::before(&origin.url()).await;
    let database = connect(&postgres).await;
    let mut of_original = joined(&database, &original.state_dir(), 1).await;
    let copy = Bursar::on(copied(&original.state_dir()), &origin.url()).await;
    buy(&original, "the original's").await;
    ship(&database, &mut of_original).await;
    buy(&copy, "the copy's").await;
    let mut of_copy = joined(&database, &copy.state_dir(), 2).await;
    assert!(ship(&database, &mut of_copy).await.forked);

    let renamed = Bursar::on(nameless(&copy), &origin.url()).await;
    buy(&renamed, "by another name").await;
    let mut of_renamed = joined(&database, &renamed.state_dir(), 3).await;
    ship(&database, &mut of_renamed).await;
    assert_eq!(summed(&postgres), (3, 3));
}

/// The copy took its name behind the backup: a code lets it in again, by that name.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_copy_that_a_restored_database_does_not_know_counts_what_it_has_in_common_once() {
    for copy_first in [false, true] {
        let postgres = fleet();
        let origin = pricing_always(1).await;
        let original = Bursar::before(&origin.url()).await;
        let database = connect(&postgres).await;
        let mut of_original = joined(&database, &original.state_dir(), 1).await;
        buy(&original, "before").await;
        ship(&database, &mut of_original).await;
        let backup = postgres.backup(super::DATABASE);
        buy(&original, "of both").await;
        ship(&database, &mut of_original).await;
        let copy = Bursar::on(copied(&original.state_dir()), &origin.url()).await;
        buy(&original, "the original's").await;
        buy(&copy, "the copy's").await;
        ship(&database, &mut of_original).await;
        let mut of_copy = joined(&database, &copy.state_dir(), 2).await;
        assert!(ship(&database, &mut of_copy).await.forked);
        postgres.restore(super::DATABASE, &backup);

        let database = connect(&postgres).await;
        let unknown = of_copy.visit(&database, 0).await;
        assert!(unknown.is_err(), "{unknown:?}");
        let code = format!("{}3", super::CODE);
        of_copy.enrol(&database, &code).await.expect("it is let in");
        for is_copy in [copy_first, !copy_first, copy_first, !copy_first] {
            match is_copy {
                true => ship(&database, &mut of_copy).await,
                false => ship(&database, &mut of_original).await,
            };
        }
        assert_eq!(summed(&postgres), (4, 4), "copy first: {copy_first}");
        assert_eq!([original.billed(), copy.billed()], [3, 3]);
    }
}
