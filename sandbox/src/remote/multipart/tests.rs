use super::*;

#[test]
fn a_name_and_a_language_cannot_break_out_of_their_part() {
    let form = Form::of(b"RIFF", "a\"\r\nb.wav", "m", Some("en\r\n--x"));
    let text = String::from_utf8(form.body).unwrap();

    assert!(text.contains("filename=\"ab.wav\"\r\n"), "{text}");
    assert!(text.contains("\r\n\r\nen--x\r\n"), "{text}");
    let border = form.content_type.split_once("boundary=").unwrap().1;
    assert!(border.len() <= 70);
    assert!(text.ends_with(&format!("\r\nRIFF\r\n--{border}--\r\n")));
}
