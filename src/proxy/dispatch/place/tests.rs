use super::*;

#[test]
fn the_words_of_a_429_name_the_ceiling_that_was_reached() {
    let rows: [(&[u8], bool); 7] = [
        (br#"{"detail":"rate ceiling exceeded"}"#, true),
        (br#"{"detail":"120 requests per minute"}"#, true),
        (br#"{"detail":"concurrency ceiling exceeded"}"#, false),
        (
            br#"{"detail":"at this rate 8 requests are in flight"}"#,
            false,
        ),
        (br#"{"detail":"could not generate"}"#, false),
        (b"", false),
        (b"\xff\xfe rate", true),
    ];
    for (body, wanted) in rows {
        let shown = String::from_utf8_lossy(body);
        assert_eq!(names_rate(body), wanted, "{shown}");
    }
    let late = [vec![b' '; WORDS_BYTES_MAX], b"rate".to_vec()].concat();
    assert!(!names_rate(&late), "words are looked for at the beginning");
}
