//! Every code of [`super::Code`], as `docs/errors.md` shows it to the people who get it.

use std::fmt::Write as _;

use super::Code;
use crate::generated::{cell, must_be};

const HEAD: &str = "\
# Errors that bursar makes

Written from the code (`src/proxy/refuse.rs`) by `make docs`; a test holds the two equal.

bursar answers by itself where it cannot or must not send a request. Such an answer has the header `X-Bursar-Error` with
one of these codes, and the same code in the JSON body (`error.code`), in the log and in
`bursar_refusals_total{error}`. All other errors are the service's own, passed on as they are; the text after `detail` in
them is the service's. `should retry` is the header `X-Should-Retry`, which the OpenAI SDKs follow: `no` where a retry of the
same request gets the same answer, `-` where it is left to the app because waiting helps, or because bursar recognises
the retry and bills it once ([shaping.md](shaping.md)). The text may begin with what exactly was wrong.

| code | status | Retry-After, s | should retry | text |
|---|---|---|---|---|
";

#[test]
fn the_page_of_errors_lists_each_code_with_its_status_and_text() {
    let mut page = HEAD.to_owned();
    for code in Code::ALL {
        let wait = code.retry_after_s();
        let wait = wait.map_or_else(|| "-".to_owned(), |wait| wait.to_string());
        let retry = match code.should_retry() {
            None => "-",
            Some(true) => "yes",
            Some(false) => "no",
        };
        let (status, text) = (code.status().as_u16(), cell(code.text()));
        let _ = writeln!(page, "| `{code}` | {status} | {wait} | {retry} | {text} |");
    }
    must_be("errors.md", &page);
}
