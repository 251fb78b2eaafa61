use super::*;

#[test]
fn events_are_the_same_however_the_bytes_are_cut() {
    let text =
        b": comment\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nevent: x\ndata:two\n\ndata: [DONE]\n\n";
    let wanted = [b"{\"a\":\n1}".to_vec(), b"two".to_vec(), b"[DONE]".to_vec()];

    for size in 1..text.len() {
        let mut lines = Lines::default();
        let events: Vec<Vec<u8>> = text
            .chunks(size)
            .flat_map(|bytes| lines.events(bytes))
            .collect();
        assert_eq!(events, wanted, "cut every {size} bytes");
    }
}
