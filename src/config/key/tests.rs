use std::fs;
use std::fs::{File, Permissions};
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const SECRET: &str = "sk-test-0123456789abcdef";

fn key_file(text: &[u8], mode: u32) -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("key");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    (directory, path)
}

fn refusal(text: &[u8]) -> String {
    ApiKey::from_text(text).unwrap_err().to_string()
}

#[test]
fn the_key_is_the_bearer_of_a_sensitive_header() {
    let header = ApiKey::from_text(SECRET.as_bytes()).unwrap().header_value();

    assert_eq!(header.as_bytes(), format!("Bearer {SECRET}").as_bytes());
    assert!(header.is_sensitive());
    assert!(header.clone().is_sensitive());
}

#[test]
fn one_line_end_is_no_part_of_the_key() {
    let expected = ApiKey::from_text(b"abc").unwrap();
    for text in [&b"abc\n"[..], b"abc\r\n"] {
        assert_eq!(ApiKey::from_text(text).unwrap(), expected);
    }
    for text in [
        &b"abc\n\n"[..],
        b"abc \n",
        b" abc",
        b"\nabc",
        b"a\rb",
        b"abc\r",
    ] {
        assert!(
            matches!(ApiKey::from_text(text), Err(KeyError::Characters)),
            "{text:?}"
        );
    }
}

#[test]
fn what_is_no_key_is_refused_without_being_shown() {
    assert_eq!(refusal(b""), "the key is empty");
    assert_eq!(refusal(b"\n"), "the key is empty");
    assert_eq!(
        refusal(&[b'k'; 513]),
        "the key is longer than 512 characters"
    );
    assert!(ApiKey::from_text(&[b'k'; 512]).is_ok());
    for text in [
        "Bearer sk-secret",
        "sk-secret\u{e9}",
        "sk-secret\0",
        "sk-secret\nX-Evil: 1",
    ] {
        let message = refusal(text.as_bytes());
        assert!(
            message.starts_with("the key holds a space, a line break or"),
            "{message}"
        );
        assert!(!message.contains("sk-secret"));
    }
}

#[test]
fn no_output_shows_the_key() {
    let key = ApiKey::from_text(SECRET.as_bytes()).unwrap();

    for shown in [
        format!("{key}"),
        format!("{key:?}"),
        format!("{key:#?}"),
        format!("{:?}", Some(key.clone())),
    ] {
        assert!(!shown.contains("0123456789"), "{shown}");
    }
    assert_eq!(format!("{key:?}"), "ApiKey(***)");
    assert!(!format!("{:?}", key.header_value()).contains("0123456789"));
}

#[test]
fn the_key_is_found_wherever_it_stands() {
    let key = ApiKey::from_text(b"abc").unwrap();

    for bytes in [
        &b"abc"[..],
        b"xxabc",
        b"ababcx",
        b"{\"detail\":\"bad key abc\"}",
    ] {
        assert!(key.occurs_in(bytes));
    }
    for bytes in [&b""[..], b"ab", b"abxc", b"ABC", b"Bearer "] {
        assert!(!key.occurs_in(bytes));
    }
}

#[test]
fn a_file_that_others_can_reach_is_refused_with_the_command_to_run() {
    for mode in [0o400, 0o600, 0o640, 0o660] {
        let (_directory, path) = key_file(b"abc\n", mode);
        assert!(ApiKey::from_file(&path, KeyFile::Plain).is_ok(), "{mode:o}");
    }
    for mode in [0o644, 0o604, 0o602, 0o666] {
        let (_directory, path) = key_file(b"abc\n", mode);
        let shown = path.display();
        assert_eq!(
            ApiKey::from_file(&path, KeyFile::Plain)
                .unwrap_err()
                .to_string(),
            format!(
                "every user of this machine can read or replace the key file {shown} (mode {mode:04o}); run: chmod o-rwx {shown}"
            )
        );
        assert!(
            ApiKey::from_file(&path, KeyFile::Credential).is_ok(),
            "{mode:o}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = ApiKey::from_file(Path::new("/nowhere/key"), KeyFile::Plain).unwrap_err();
    assert_eq!(missing.to_string(), "the file /nowhere/key does not exist");
    let directory = ApiKey::from_file(Path::new("/"), KeyFile::Credential).unwrap_err();
    assert!(directory.to_string().contains("it is a directory"));
}

#[test]
fn a_key_given_as_the_path_of_its_file_is_not_shown() {
    for secret in [
        SECRET,
        "sk-live-Zq8/Xy_73+ab9876543210==/Q",
        "/Zq8Xy73ab9876543210abcdef/QQ==",
        "sk-abcdefghijklmnopqrstuvwxyzABCDEF",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
        "/etc/sk-test-0123456789abcdef",
    ] {
        let error = ApiKey::from_file(Path::new(secret), KeyFile::Plain).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains("it looks like a key"), "{text}");
        for piece in secret.split('/').filter(|piece| piece.len() > 4) {
            assert!(!text.contains(piece) || piece == "etc", "{text}");
        }
    }
}

#[test]
fn a_path_that_is_mistyped_is_shown() {
    for path in [
        "/etc/bursar-of-nobody/api-key",
        "organization-key-2026-11.txt",
        "the-key-of-our-organization",
        "key7",
    ] {
        let error = ApiKey::from_file(Path::new(path), KeyFile::Plain).unwrap_err();
        assert!(error.to_string().contains(path), "{error}");
    }
}

#[test]
fn only_a_credential_is_a_copy() {
    let (_directory, path) = key_file(SECRET.as_bytes(), 0o600);
    for (kind, is_a_copy) in [(KeyFile::Plain, false), (KeyFile::Credential, true)] {
        let key = ApiKey::from_file(&path, kind).unwrap();
        assert_eq!(key.is_a_copy(), is_a_copy);
    }
    assert!(!ApiKey::from_text(SECRET.as_bytes()).unwrap().is_a_copy());
}

#[test]
fn a_large_file_is_refused_and_not_read_whole() {
    let (_directory, path) = key_file(&vec![b'k'; 10 * 1024 * 1024], 0o600);
    assert!(matches!(
        ApiKey::from_file(&path, KeyFile::Plain),
        Err(KeyError::TooLong)
    ));

    let longest = [vec![b'k'; 512].as_slice(), b"\r\n"].concat();
    let (_directory, path) = key_file(&longest, 0o600);
    assert!(ApiKey::from_file(&path, KeyFile::Plain).is_ok());
}

/// Reads what stands where the key stood, after its last user has let go of it.
#[test]
fn the_buffer_of_a_key_is_wiped_with_its_last_user() {
    use std::os::unix::fs::FileExt;
    let secret = "sk-wiped-0123456789-abcdefghijklmnop";
    let memory = File::open("/proc/self/mem").unwrap();
    let key = ApiKey::from_text(secret.as_bytes()).unwrap();
    let user = key.header_value();
    let address = u64::try_from(user.as_bytes().as_ptr().addr()).unwrap();
    let end_stands_there = || {
        // On the stack: another block could be laid where the key was. Its end: an allocator keeps notes
        // of its own at the beginning of a block that is free.
        let mut bytes = [0; 43];
        memory.read_exact_at(&mut bytes, address).unwrap();
        bytes.ends_with(b"abcdefghijklmnop")
    };

    drop(key);
    assert!(end_stands_there(), "a request still uses it");
    drop(user);

    assert!(!end_stands_there());
}
