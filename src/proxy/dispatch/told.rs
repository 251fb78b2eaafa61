//! What an attempt's head told of its price, as it came: kept with the attempt, so that the ledger
//! shows the receipt that it believed and the ones that it did not.
//!
//! Promise: the organization's key is struck out (rule I9); free routes keep nothing.

use pingora::http::ResponseHeader;

use super::Dispatch;
use crate::protocol::receipt::lines::ReceiptLines;

impl Dispatch<'_> {
    pub(super) fn receipt_lines(&self, head: Option<&ResponseHeader>) -> Vec<String> {
        let Some(head) = head.filter(|_| self.route.metered) else {
            return Vec::new();
        };
        let settings = &self.settings;
        let clean = |line: &[u8]| settings.key.struck_out(line);
        ReceiptLines::of_headers(&settings.names, &head.headers, clean).into_vec()
    }
}
