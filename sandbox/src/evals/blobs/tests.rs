use super::*;

#[tokio::test]
async fn a_blob_survives_in_the_directory_and_a_sweep_removes_the_others() {
    let state_dir = std::env::temp_dir().join(format!("sandbox-blobs-{}", std::process::id()));
    for blobs in [
        Blobs::open(None).unwrap(),
        Blobs::open(Some(&state_dir)).unwrap(),
    ] {
        for name in ["a", "b"] {
            blobs.put(name, Bytes::from_static(b"bytes")).await.unwrap();
        }
        blobs.put("a", Bytes::from_static(b"newer")).await.unwrap();
        blobs.sweep(&BTreeSet::from(["a".to_owned()])).unwrap();

        assert_eq!(blobs.get("a").await.unwrap().unwrap(), "newer");
        assert_eq!(blobs.get("b").await.unwrap(), None);
    }
    let again = Blobs::open(Some(&state_dir)).unwrap();
    assert_eq!(again.get("a").await.unwrap().unwrap(), "newer");
    again.remove("a").unwrap();
    again.remove("a").unwrap();
    assert_eq!(again.get("a").await.unwrap(), None);
    fs::remove_dir_all(state_dir).unwrap();
}
