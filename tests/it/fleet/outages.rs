//! What may happen in the middle: the answer is lost on its way, the server dies behind its commit, its disk is full,
//! it is away for a week.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bursar::clock::{Clock, ManualClock, SystemClock};
use bursar::ledger::{Durability, Ledger, LedgerOptions};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::serving::{Member, billed, is_shipped, metric};
use super::{DATABASE, buy, connect, connect_to, fleet, joined, pricing, ship, summed};
use crate::ledger_care;
use crate::support::postgres::Postgres;
use crate::support::{Bursar, Sandbox, within};

/// The last message of an answer, outside of a transaction: what was asked has been committed.
const READY: &[u8] = b"Z\0\0\0\x05I";

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A way to the database on which an answer can be lost.
struct Way {
    directory: TempDir,
    /// The answer to the next batch does not arrive, and the connection ends.
    swallows: Arc<AtomicBool>,
}

/// A small disk. Dropping it takes it away.
struct SmallDisk(TempDir);

// === impl Way ===

impl Way {
    fn to(postgres: &Postgres) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let name = ".s.PGSQL.5432";
        let near = UnixListener::bind(directory.path().join(name)).expect("a socket");
        let far = postgres.data().join(name);
        let swallows = Arc::<AtomicBool>::default();
        let armed = Arc::clone(&swallows);
        tokio::spawn(async move {
            while let Ok((client, _)) = near.accept().await {
                tokio::spawn(carry(client, far.clone(), Arc::clone(&armed)));
            }
        });
        Self {
            directory,
            swallows,
        }
    }

    fn url(&self) -> String {
        let host = self.directory.path().display().to_string();
        format!("postgresql://node@{}/{DATABASE}", host.replace('/', "%2F"))
    }

    fn swallow_next(&self) {
        self.swallows.store(true, Ordering::SeqCst);
    }

    fn has_swallowed(&self) -> bool {
        !self.swallows.load(Ordering::SeqCst)
    }
}

async fn carry(mut client: UnixStream, far: PathBuf, swallows: Arc<AtomicBool>) {
    let Ok(mut server) = UnixStream::connect(far).await else {
        return;
    };
    let (mut asked, mut answered) = ([0; 65_536], [0; 65_536]);
    let mut swallowed: Option<Vec<u8>> = None;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let bytes = &asked[..read.unwrap_or(0)];
                let is_batch = bytes.windows(18).any(|part| part == b"bursar_fleet.ship(");
                if is_batch && swallows.load(Ordering::SeqCst) {
                    swallowed = Some(Vec::new());
                }
                if bytes.is_empty() || server.write_all(bytes).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let bytes = &answered[..read.unwrap_or(0)];
                match &mut swallowed {
                    Some(swallowed) => swallowed.extend(bytes),
                    None if client.write_all(bytes).await.is_err() => return,
                    None => {}
                }
                if swallowed.as_ref().is_some_and(|answer| answer.ends_with(READY)) {
                    swallows.store(false, Ordering::SeqCst);
                    return;
                }
                if bytes.is_empty() {
                    return;
                }
            }
        }
    }
}

// === impl SmallDisk ===

impl SmallDisk {
    /// For the user that the server runs as. `None`: this user may not mount one, which was printed.
    fn mount(mebibytes: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("a small disk is mounted by root alone");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let options = format!("size={mebibytes}m,uid=65534,gid=65534,mode=700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(directory.path())
            .status();
        if !mounted.expect("mount runs").success() {
            skipped("this user may mount no small disk");
            return None;
        }
        Some(Self(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all the room that is left, to the last byte.
    fn fill(&self) -> PathBuf {
        let path = self.path().join("filler");
        let mut file = std::fs::File::create(&path).expect("a file");
        for size in [65_536, 4_096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: the server may still run.
        Command::new("umount")
            .arg("-l")
            .arg(self.path())
            .status()
            .ok();
    }
}

#[expect(clippy::disallowed_methods, reason = "in CI nothing may be left out")]
fn skipped(why: &str) {
    println!("SKIPPED: {why}");
    let in_ci = std::env::var_os("CI").is_some();
    assert!(!in_ci, "in CI nothing may be left out: {why}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_batch_whose_answer_is_lost_counts_once_also_where_the_server_dies_behind_its_commit() {
    let postgres = fleet();
    let origin = pricing(7).await;
    let bursar = Bursar::before(&origin.url()).await;
    let way = Way::to(&postgres);
    let mut requests = 0;
    for server_dies in [false, true] {
        let database = connect_to(&way.url()).await;
        let mut shipping = joined(&database, &bursar.state_dir(), 1).await;
        buy(&bursar, &format!("lost, {server_dies}")).await;
        requests += 1;
        way.swallow_next();
        let lost = shipping.visit(&database, 0).await.expect_err("no answer");
        assert!(way.has_swallowed(), "{lost}");
        assert!(lost.to_string().contains("cannot be reached"), "{lost}");
        if server_dies {
            postgres.end();
            postgres.begin();
        }
        assert_eq!(summed(&postgres).0, requests, "it was committed");
        let database = connect(&postgres).await;
        buy(&bursar, &format!("after it, {server_dies}")).await;
        requests += 1;
        let shipped = ship(&database, &mut shipping).await;
        assert_eq!((shipped.lines, shipped.forked), (2, false));
        assert_eq!(shipped.mark_seq, shipped.journal_seq);
        let billed = u64::try_from(7 * requests).expect("a sum");
        assert_eq!(summed(&postgres), (requests, billed));
    }
}

/// The whole database lies on a disk of its own, the server's log of changes does not: without room for that, the
/// server ends.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_database_whose_disk_is_full_stops_nothing_and_is_caught_up_with() {
    const VISITS: u64 = 8;
    let Some(disk) = SmallDisk::mount(64) else {
        return;
    };
    let postgres = fleet();
    let small = format!(
        "CREATE TABLESPACE small LOCATION '{}'",
        disk.path().display()
    );
    postgres.sql("postgres", &small);
    let moved = format!("ALTER DATABASE {DATABASE} SET TABLESPACE small");
    postgres.sql("postgres", &moved);
    let sandbox = Sandbox::start().await;
    let mut member = Member::start(&sandbox.url(), &postgres, 1).await;
    member.buy("with room").await;
    is_shipped(&postgres, 1).await;

    let filler = disk.fill();
    let mut requests = 1;
    // The last pages have some room left.
    let status = within(Duration::from_secs(60), "no room", || {
        requests += 1;
        let (member, number) = (&member, requests);
        async move {
            member.buy(&format!("{number}")).await;
            let status = member.daemon().admin_page("/api/status").await.text();
            status.contains("(53100)").then_some(status)
        }
    })
    .await;
    assert!(status.contains("No space left on device"), "{status}");
    for round in 0..3 {
        member.buy(&format!("without room, {round}")).await;
        requests += 1;
    }
    assert!(summed(&postgres).0 < requests, "lines are missing");
    let failed = || metric(&member, "bursar_fleet_visits_total{result=\"failed\"} ");
    within(Duration::from_secs(60), "visits to fail", || async {
        (failed().await? >= VISITS).then_some(())
    })
    .await;
    // A file that has some room left when the first visit fails is a reason of its own.
    let logged = member.logged("(53100)");
    assert!((1..5).contains(&logged), "{logged} lines");

    std::fs::remove_file(filler).expect("it was there");
    is_shipped(&postgres, requests).await;
    member.stop().await;
    let journal = billed(&member.state_dir());
    assert_eq!(summed(&postgres), (requests, journal));
    assert_eq!(journal, sandbox.debited().await);
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn a_week_without_the_database_is_caught_up_with_in_bounded_memory() {
    const REQUESTS: u32 = 20_000;
    /// Lines of a batch, to and fro, in several forms.
    const GROWTH_KIB_MAX: u64 = 16 << 10;
    let postgres = fleet();
    let sandbox = Sandbox::start().await;
    let mut member = Member::start(&sandbox.url(), &postgres, 1).await;
    member.stop().await;
    postgres.end();

    let clock = ManualClock::at(SystemClock::shared().wall_ms());
    let week_ms = u64::try_from(WEEK.as_millis()).expect("a week");
    clock.set_wall_ms(clock.wall_ms() - week_ms);
    let ledger = Ledger::open(LedgerOptions {
        durability: Durability::Process,
        ..LedgerOptions::new(member.state_dir(), Arc::new(clock.clone()))
    });
    let ledger = ledger.expect("a ledger");
    for _ in 0..REQUESTS {
        ledger_care::buy(&ledger, clock.wall_ms(), "notes", Some(3)).await;
        clock.advance(WEEK / (REQUESTS + 1));
    }
    ledger.close().await;

    member.begin().await;
    member.buy("without the database").await;
    let before_kib = member.daemon().peak_kib();
    let pid = member.daemon().child.id().expect("it runs");
    // The peak counts from here on (proc(5)).
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("its own child");
    let before_kib = member.daemon().peak_kib().min(before_kib);
    postgres.begin();
    let requests = i64::from(REQUESTS) + 1;
    within(Duration::from_secs(240), "all of it", || async {
        (summed(&postgres).0 == requests).then_some(())
    })
    .await;
    let grown_kib = member.daemon().peak_kib().saturating_sub(before_kib);
    assert!(grown_kib < GROWTH_KIB_MAX, "{grown_kib} KiB more");
    member.stop().await;
    let journal = u64::from(REQUESTS) * 3 + sandbox.debited().await;
    assert_eq!(billed(&member.state_dir()), journal);
    assert_eq!(summed(&postgres), (requests, journal));
    let counted = "SELECT count(*) FROM bursar_fleet.lines";
    assert_eq!(postgres.sql(DATABASE, counted), (2 * requests).to_string());
}
