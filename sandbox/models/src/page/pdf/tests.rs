use super::*;
use flate2::{Compression, write::ZlibEncoder};
use std::io::Write as _;

#[test]
fn lines_are_read_from_plain_and_from_packed_pages() {
    let shown =
        b"BT /F1 11 Tf 60 700 Td (Total \\(net\\): 5) Tj T* [(Gr) -20 (oss) -400 <36>] TJ ET";
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    packed.write_all(shown).unwrap();
    let packed = packed.finish().unwrap();
    let file = |dictionary: &str, body: &[u8]| {
        let mut file = format!("%PDF-1.4\n5 0 obj\n{dictionary}\nstream\n").into_bytes();
        file.extend_from_slice(body);
        file.extend_from_slice(b"\nendstream\nendobj");
        file
    };

    for file in [
        file("<< >>", shown),
        file("<< /Filter /FlateDecode >>", &packed),
    ] {
        assert_eq!(text(&file), "Total (net): 5\nGross 6\n");
    }
}

#[test]
fn what_unpacks_without_end_and_what_is_broken_ends() {
    let mut bomb = ZlibEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(b"BT (a) Tj ET ").unwrap();
    bomb.write_all(&vec![b' '; 20 * 1024 * 1024]).unwrap();
    let mut file = b"%PDF-1.4\n1 0 obj << /FlateDecode >>\nstream\n".to_vec();
    file.extend(bomb.finish().unwrap());
    file.extend(b"\nendstream");

    assert_eq!(text(&file).trim(), "a");
    assert_eq!(text(b"%PDF stream (((\\"), "");
    assert_eq!(text(b"stream BT ((( endstream").trim(), "");
}
