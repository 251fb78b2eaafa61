use super::*;
use crate::store::Store;

/// A directory of this mode, made before the store opens it.
fn directory(name: &str, mode: u32) -> PathBuf {
    let path = std::env::temp_dir().join(format!("sandbox-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

fn mode_of_file(directory: &Path) -> u32 {
    fs::metadata(directory.join(FILE)).unwrap().mode() & 0o777
}

#[test]
fn the_file_is_this_users_alone_in_a_directory_that_others_may_read() {
    let path = directory("readable", 0o755);

    drop(Store::open(Some(&path)).unwrap());
    assert_eq!(mode_of_file(&path), 0o600);

    fs::set_permissions(path.join(FILE), Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(Some(&path)).unwrap());
    assert_eq!(mode_of_file(&path), 0o600, "of an earlier release");
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_directory_that_others_may_write_to_is_refused_in_words() {
    for mode in [0o777, 0o770, 0o1777, 0o702] {
        let path = directory("open", mode);

        let refused = Store::open(Some(&path)).unwrap_err().to_string();

        assert!(
            refused.contains(&format!("its mode is {mode:04o}")) && refused.contains("chmod 700"),
            "{refused}"
        );
        assert!(!path.join(FILE).exists());
        fs::remove_dir_all(path).unwrap();
    }
}
