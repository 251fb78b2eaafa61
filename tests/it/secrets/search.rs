//! Searching for secrets in bytes: as they are, and as they would look encoded.

use std::path::{Path, PathBuf};

/// A secret, and every form in which it could leak.
pub struct Needle {
    pub name: String,
    forms: Vec<(&'static str, Vec<u8>)>,
}

/// Bytes that must hold no secret.
pub struct Place {
    pub name: String,
    pub bytes: Vec<u8>,
}

// === impl Needle ===

impl Needle {
    pub fn new(name: &str, secret: &str) -> Self {
        let escaped: String = secret
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    char::from(byte).to_string()
                }
                _ => format!("%{byte:02X}"),
            })
            .collect();
        let mut needle = Self::of_bytes(name, secret.as_bytes());
        needle.forms.extend([
            ("in capitals", secret.to_uppercase().into_bytes()),
            ("in JSON", json_inside(secret)),
            ("percent-encoded", escaped.into_bytes()),
        ]);
        needle
    }

    /// One that need not be a text.
    pub fn of_bytes(name: &str, bytes: &[u8]) -> Self {
        let hex = |upper: bool, before: &str| -> Vec<u8> {
            let digits = bytes.iter().map(|byte| match upper {
                true => format!("{before}{byte:02X}"),
                false => format!("{before}{byte:02x}"),
            });
            digits.collect::<String>().into_bytes()
        };
        let wide = bytes.iter().flat_map(|byte| [*byte, 0]).collect();
        let decimals: Vec<String> = bytes.iter().map(ToString::to_string).collect();
        let mut forms = vec![
            ("as it is", bytes.to_vec()),
            ("percent-encoded whole", hex(true, "%")),
            ("percent-encoded whole, small", hex(false, "%")),
            ("in hex", hex(false, "")),
            ("in HEX", hex(true, "")),
            ("in UTF-16", wide),
            ("as a list of numbers", decimals.join(", ").into_bytes()),
            (
                "as a list of numbers, dense",
                decimals.join(",").into_bytes(),
            ),
            ("backwards", bytes.iter().rev().copied().collect()),
        ];
        // Where it begins in a longer text decides what its letters become.
        for (shift, name) in [
            "in base64",
            "in base64, shifted by 1",
            "in base64, shifted by 2",
        ]
        .into_iter()
        .enumerate()
        {
            forms.push((name, base64_inside(bytes, shift, b'+', b'/')));
            forms.push((name, base64_inside(bytes, shift, b'-', b'_')));
        }
        Self {
            name: name.to_owned(),
            forms,
        }
    }

    pub fn forms(&self) -> &[(&'static str, Vec<u8>)] {
        &self.forms
    }

    /// The form in which it occurs in `bytes`, if it does.
    pub fn in_bytes(&self, bytes: &[u8]) -> Option<&'static str> {
        let found = self
            .forms
            .iter()
            .find(|(_, form)| memchr::memmem::find(bytes, form).is_some());
        found.map(|(name, _)| *name)
    }
}

fn json_inside(secret: &str) -> Vec<u8> {
    let quoted = serde_json::to_string(secret).expect("a text");
    quoted.trim_matches('"').as_bytes().to_vec()
}

/// The letters of base64 that `bytes` alone decide, if `shift` other bytes precede them.
fn base64_inside(bytes: &[u8], shift: usize, plus: u8, slash: u8) -> Vec<u8> {
    let letter = |six: u8| match six {
        0..=25 => b'A' + six,
        26..=51 => b'a' + six - 26,
        52..=61 => b'0' + six - 52,
        62 => plus,
        _ => slash,
    };
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    // The first letter that no bit of the bytes before reaches into.
    let skipped = (6 - shift * 8 % 6) % 6;
    let bits: Vec<u8> = (skipped..bytes.len() * 8).map(bit).collect();
    bits.chunks_exact(6)
        .map(|six| letter(six.iter().fold(0, |value, bit| value << 1 | bit)))
        .collect()
}

// === impl Place ===

impl Place {
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.into(),
        }
    }

    pub fn file(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        Self::new(path.display().to_string(), bytes)
    }

    /// Every file below a directory, and the files' names.
    pub fn below(directory: &Path) -> Vec<Self> {
        let files = files(directory);
        let names: Vec<String> = files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let mut places: Vec<Self> = files.iter().map(|path| Self::file(path)).collect();
        places.push(Self::new("names of files", names.join("\n")));
        places
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let kind = std::fs::symlink_metadata(&path)
            .expect("its kind")
            .file_type();
        if kind.is_dir() {
            found.extend(files(&path));
        } else if kind.is_file() {
            found.push(path);
        }
    }
    found
}

/// Each secret found in a place: where, which, and how.
pub fn found(places: &[Place], needles: &[Needle]) -> Vec<String> {
    let mut found = Vec::new();
    for place in places {
        // The ledger's reserve: 8 MiB of nothing.
        if place.bytes.iter().all(|byte| *byte == 0) {
            continue;
        }
        for needle in needles {
            if let Some(form) = needle.in_bytes(&place.bytes) {
                found.push(format!("{} stands in {}, {form}", needle.name, place.name));
            }
        }
    }
    found
}

#[test]
fn the_search_finds_what_is_planted_in_every_form() {
    let secret = "sk-org/+~\"0815\"";
    let needle = Needle::new("the key", secret);
    let directory = tempfile::tempdir().expect("a directory");
    let deep = directory.path().join("journal/segments");
    std::fs::create_dir_all(&deep).expect("directories");
    let file = deep.join("00000001.jsonl");
    let escaped = "sk-org%2F%2B~%220815%22";
    let whole = "%73%6B%2D%6F%72%67%2F%2B%7E%22%30%38%31%35%22";
    let planted: [&[u8]; 12] = [
        secret.as_bytes(),
        b"SK-ORG/+~\"0815\"",
        b"sk-org/+~\\\"0815\\\"",
        escaped.as_bytes(),
        whole.as_bytes(),
        b"736b2d6f72672f2b7e223038313522",
        b"736B2D6F72672F2B7E223038313522",
        b"115, 107, 45, 111, 114, 103, 47, 43, 126, 34, 48, 56, 49, 53, 34",
        // base64 of the key, of "Bearer " before it, of " " before it, and URL-safe.
        b"c2stb3JnLyt+IjA4MTUi",
        b"QmVhcmVyIHNrLW9yZy8rfiIwODE1Ig==",
        b"ICBzay1vcmcvK34iMDgxNSI=",
        b"c2stb3JnLyt-IjA4MTUi",
    ];
    for bytes in planted {
        let text = [b"{\"seq\":1} ".as_slice(), bytes, b" and more"].concat();
        std::fs::write(&file, text).expect("a file");
        let found = found(
            &Place::below(directory.path()),
            &[Needle::new("the key", secret)],
        );
        assert_eq!(found.len(), 1, "{}", bytes.escape_ascii());
    }
    for (name, form) in needle.forms() {
        assert!(!form.is_empty(), "{name}");
    }
    std::fs::write(&file, "sk-org/+~0815").expect("a file");
    assert!(found(&Place::below(directory.path()), &[needle]).is_empty());
    std::fs::write(deep.join("sk-named-by-it"), "").expect("a file");
    let named = [Needle::new("the key", "sk-named-by-it")];
    assert_eq!(found(&Place::below(directory.path()), &named).len(), 1);
}
