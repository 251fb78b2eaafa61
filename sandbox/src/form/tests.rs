use super::*;
use http::HeaderValue;

async fn read(content_type: &'static str, body: &'static str) -> Result<Form, String> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    Form::read(&headers, Bytes::from_static(body.as_bytes()), "eval-form")
        .await
        .map_err(|error| error.to_string())
}

const PART: &str = "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n hi \r\n";

#[tokio::test]
async fn a_form_is_whole_or_refused() {
    let form = "multipart/form-data; boundary=b";
    let whole = "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n hi \r\n--b--\r\n";

    let good = read(form, whole).await.unwrap();

    assert_eq!(good.trimmed("prompt").unwrap().as_deref(), Some("hi"));
    assert_eq!(good.trimmed("name").unwrap(), None);
    assert!(good.file("items").is_err());
    for (content_type, body) in [
        ("application/json", "{}"),
        ("multipart/form-data", whole),
        (
            form,
            "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nhi",
        ),
        (form, PART),
    ] {
        assert!(read(content_type, body).await.is_err(), "{body}");
    }
}

#[tokio::test]
async fn a_part_that_came_twice_is_refused_by_its_name() {
    let body = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n2\r\n--b--\r\n";

    let form = read("multipart/form-data; boundary=b", body).await.unwrap();

    let error = form.text("a").unwrap_err().to_string();
    assert_eq!(error, "a came more than once");
}
