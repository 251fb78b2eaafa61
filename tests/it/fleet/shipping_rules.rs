//! What `bursar_fleet.ship` takes of a caller, whatever program it is: a line once, behind the one before, with an amount
//! that is one.

use super::holder::{Holder, capped, granted};
use super::{DATABASE, fleet};
use crate::support::postgres::Postgres;

const LEDGER: &str = "00000000-0000-4000-8000-000000000001";
const SECRET: &str = "sha256('one')";

/// A line of a journal, or a range that is not there, as it is sent.
struct Sent {
    first: u64,
    last: u64,
    /// Of a range why it is not there.
    text: String,
    is_range: bool,
}

/// A call, and what it comes to.
struct Rule {
    what: &'static str,
    after: Vec<Sent>,
    sent: Vec<Sent>,
    /// Verdict and mark, or the error's code.
    answer: &'static str,
    /// Then: lines, rows of changes and their sum.
    counted: &'static str,
}

impl Sent {
    /// The hash that the running one is made with.
    fn sha256(&self) -> String {
        let (first, last, text) = (self.first, self.last, &self.text);
        match self.is_range {
            true => format!("sha256('{text} {first} {last}')"),
            false => format!("sha256('{text}')"),
        }
    }
}

/// An outcome of this many micro-dollars.
fn line(seq: u64, amount: &str) -> Sent {
    said(
        seq,
        "outcome",
        &format!(r#""state":"settled","adds_micro_usd":{amount}"#),
    )
}

fn said(seq: u64, kind: &str, members: &str) -> Sent {
    let text = format!(
        r#"{{"seq":{seq},"kind":"{kind}","id":"00000000-0000-4000-8000-00000000000a","started_ms":5,{members}}}"#
    );
    Sent {
        first: seq,
        last: seq,
        text,
        is_range: false,
    }
}

fn range(why: &str, first: u64, last: u64) -> Sent {
    Sent {
        first,
        last,
        text: why.to_owned(),
        is_range: true,
    }
}

/// The running hash behind these lines, as an expression.
fn chain(lines: &[Sent]) -> String {
    lines.iter().fold("''::bytea".to_owned(), |before, sent| {
        format!("sha256({before} || {})", sent.sha256())
    })
}

/// The call that sends lines behind others.
fn call(ledger: &str, secret: &str, after: &[Sent], sent: &[Sent]) -> String {
    let list = |part: &dyn Fn(&Sent) -> String| {
        let parts: Vec<String> = sent.iter().map(part).collect();
        parts.join(", ")
    };
    let hashes = list(&|sent| match sent.is_range {
        true => "NULL".to_owned(),
        false => sent.sha256(),
    });
    let last = |lines: &[Sent]| lines.last().map_or(0, |sent| sent.last);
    format!(
        "SELECT verdict, mark_seq FROM bursar_fleet.ship('{ledger}', {secret}, {}, {}, ARRAY[{}]::bigint[],
            ARRAY[{}]::bigint[], ARRAY[{}]::text[], ARRAY[{hashes}]::bytea[], {})",
        last(after),
        chain(after),
        list(&|sent| sent.first.to_string()),
        list(&|sent| sent.last.to_string()),
        list(&|sent| format!("'{}'", sent.text)),
        last(sent),
    )
}

/// As a bursar's role: what the statement answers, or the code of the error.
fn answer(postgres: &Postgres, statement: &str) -> String {
    let statement = format!("\\set VERBOSITY sqlstate\n{statement};\n");
    let tried = postgres.try_sql("node", DATABASE, &statement);
    let (out, why) = (
        String::from_utf8_lossy(&tried.stdout).trim().to_owned(),
        String::from_utf8_lossy(&tried.stderr).trim().to_owned(),
    );
    match tried.status.success() {
        true => out,
        false => why
            .rsplit_once("ERROR:")
            .map_or(why.clone(), |(_, code)| code.trim().to_owned()),
    }
}

/// A fleet with the ledger.
fn enrolled() -> Postgres {
    let postgres = fleet();
    let enrol = format!(
        "SELECT bursar_fleet.enrol('{}1', '{LEDGER}', {SECRET}, 'host-1', '0.1')",
        super::CODE
    );
    postgres.sql(DATABASE, &enrol);
    postgres
}

fn rules() -> Vec<Rule> {
    let one = || line(1, "70");
    let two = || line(2, "5");
    let three = || line(3, "9");
    let known = || vec![one(), two(), three()];
    let rule = |what, after, sent, answer, counted| Rule {
        what,
        after,
        sent,
        answer,
        counted,
    };
    let none = Vec::new;
    let mut rules = vec![
        rule("two lines", none(), vec![one(), two()], "taken|2", "2|2|75"),
        rule(
            "the same again",
            none(),
            vec![one(), two()],
            "taken|2",
            "2|2|75",
        ),
        rule("nothing", vec![one(), two()], none(), "taken|2", "2|2|75"),
        rule(
            "one that is here and one that is not",
            vec![one()],
            vec![two(), three()],
            "taken|3",
            "3|3|84",
        ),
        rule(
            "a known number with another amount",
            vec![one()],
            vec![line(2, "6")],
            "fork|3",
            "3|3|84",
        ),
        rule(
            "the same with a new line behind it",
            none(),
            vec![one(), line(2, "6"), three(), line(4, "1")],
            "fork|3",
            "3|3|84",
        ),
        rule(
            "a new line behind another line than the last one here",
            vec![one(), two(), line(3, "8")],
            vec![line(4, "1")],
            "fork|3",
            "3|3|84",
        ),
        rule(
            "lines behind one that is not here",
            vec![one(), two(), three(), line(4, "1")],
            vec![line(5, "1")],
            "behind|3",
            "3|3|84",
        ),
        rule("a hole", known(), vec![line(5, "1")], "BF005", "3|3|84"),
        rule(
            "a hole behind a line that follows",
            known(),
            vec![line(4, "1"), line(6, "1")],
            "BF005",
            "3|3|84",
        ),
        rule(
            "a range that ends before it begins",
            known(),
            vec![range("lost", 4, 3)],
            "BF005",
            "3|3|84",
        ),
        rule(
            "sums behind lines that they may stand for",
            known(),
            vec![range("compacted", 4, 9)],
            "BF006",
            "3|3|84",
        ),
    ];
    for amount in [
        "\"NaN\"",
        "\"Infinity\"",
        "-1",
        "0.5",
        "10000000000000000000",
    ] {
        // The good line in front is not taken either.
        let sent = vec![line(4, "1"), line(5, amount)];
        rules.push(rule(
            "an amount that is none",
            known(),
            sent,
            "BF007",
            "3|3|84",
        ));
    }
    let rollup = said(4, "rollup", r#""row":{"billed":1,"requests":-1}"#);
    let leases = said(4, "outcome", r#""adds_micro_usd":1,"leases":"all""#);
    rules.extend([
        rule("a count below 0", known(), vec![rollup], "BF007", "3|3|84"),
        rule(
            "leases that are no list",
            known(),
            vec![leases],
            "BF007",
            "3|3|84",
        ),
        rule(
            "a range that was lost",
            known(),
            vec![range("lost", 4, 6), line(7, "2.0")],
            "taken|7",
            "5|4|86",
        ),
    ]);
    rules
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn ship_takes_a_line_once_and_nothing_of_a_batch_that_breaks_a_rule() {
    let postgres = enrolled();
    let counted = "SELECT (SELECT count(*) FROM bursar_fleet.lines), count(*), sum(billed_micro_usd) FROM bursar_fleet.changes";
    for rule in rules() {
        let what = rule.what;
        let said = answer(&postgres, &call(LEDGER, SECRET, &rule.after, &rule.sent));
        assert_eq!(said, rule.answer, "{what}");
        assert_eq!(postgres.sql(DATABASE, counted), rule.counted, "{what}");
    }
    let losses = "SELECT seq, last_seq, why FROM bursar_fleet.losses";
    assert_eq!(postgres.sql(DATABASE, losses), "4|6|lost");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn evidence_of_more_than_the_lease_is_for_shows_by_how_much() {
    let postgres = capped(1_000);
    let holder = Holder::new(&postgres, 1).await;
    let lease = granted(holder.wants(300).await).lease.lease;
    let (name, leased) = (lease.lease, lease.totals.granted.get());
    let above = 70;
    let members = format!(
        r#""was":{{"in_doubt":"lost"}},"adds_micro_usd":{},"leases":["{name}"]"#,
        leased + above
    );
    let doubt = r#""state":{"in_doubt":"lost"}"#;
    let sent = vec![said(1, "outcome", doubt), said(2, "reconciled", &members)];
    let ledger = holder.identity.ledger.to_string();
    let secret = format!("'\\x{}'::bytea", holder.secret());
    let over = "SELECT cap, lease, leased_micro_usd, billed_micro_usd, over_micro_usd FROM bursar_fleet.over";
    let shown = format!("team|{name}|{leased}|{}|{above}", leased + above);
    let counted = "SELECT count(*), sum(requests), sum(billed_micro_usd),
        sum(billed_micro_usd) FILTER (WHERE state = 'reconciled') FROM bursar_fleet.changes";
    let billed = leased + above;
    // The second time it is known.
    for _ in 0..2 {
        let said = answer(&postgres, &call(&ledger, &secret, &[], &sent));
        assert_eq!(said, "taken|2");
        assert_eq!(postgres.sql(DATABASE, over), shown);
        let sums = postgres.sql(DATABASE, counted);
        assert_eq!(sums, format!("3|1|{billed}|{billed}"));
    }
}

/// As `bursar fleet join` asks, which has not read the journal.
#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_hello_that_states_no_line_leaves_what_the_ledger_said_before() {
    let postgres = enrolled();
    let hello = |journal_seq: &str| {
        let call = format!("'{LEDGER}', {SECRET}, 'host-1', '0.1', {journal_seq}, 0");
        let call = format!("SELECT mark_seq FROM bursar_fleet.hello({call})");
        assert_eq!(answer(&postgres, &call), "0");
        let said = "SELECT journal_seq, caught_up IS NULL, gone IS NULL FROM bursar_fleet.ledgers";
        postgres.sql(DATABASE, said)
    };
    assert_eq!(hello("7"), "7|t|t");
    let leave = format!("SELECT bursar_fleet.leave('{LEDGER}', {SECRET})");
    assert_eq!(answer(&postgres, &leave), "");
    assert_eq!(hello("NULL"), "7|t|f");
    assert_eq!(hello("0"), "0|f|t");
}
