use super::*;
use serde_json::json;

#[test]
fn a_picture_is_described_by_its_own_bytes() {
    let mut png = Cursor::new(Vec::new());
    image::GrayImage::new(3, 2)
        .write_to(&mut png, ImageFormat::Png)
        .unwrap();
    let png = png.into_inner();
    let described = |bytes: &[u8]| {
        let url = format!("data:image/png;base64,{}", STANDARD.encode(bytes));
        super::described(&json!({"type": "image_url", "image_url": {"url": url}}))
    };

    assert_eq!(
        described(&png),
        format!("a wide PNG of 3 by 2 pixels ({} bytes)", png.len())
    );
    assert_eq!(described(b"\xff\xd8\xff\xe0"), "a JPEG of 4 bytes");
    assert_eq!(described(b"%PDF"), "a picture that cannot be read");
    for (url, expected) in [
        ("data:,x", "a picture that cannot be read"),
        (
            "https://a.example/b/cat.jpg?x=1",
            "a linked picture named cat.jpg",
        ),
        ("https://a.example/", "a linked picture"),
    ] {
        assert_eq!(super::described(&json!({"image_url": url})), expected);
    }
}
