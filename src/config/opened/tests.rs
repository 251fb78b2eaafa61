use std::io::{Read, Write};
use std::os::fd::AsRawFd;

use rustix::fs::{CWD, mkfifoat};
use tempfile::TempDir;

use super::*;

fn refusal(path: &Path) -> String {
    open_to_read(path).expect_err("no file").to_string()
}

#[test]
fn what_is_no_file_is_refused_by_its_kind_and_not_waited_for() {
    let directory = TempDir::new().unwrap();
    let fifo = directory.path().join("fifo");
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
    assert_eq!(
        refusal(&fifo),
        "it is a named pipe (FIFO), and reading it may wait for ever; give a file, or a command's \
         output: <(COMMAND)"
    );
    assert!(refusal(directory.path()).starts_with("it is a directory; "));
    for device in ["/dev/zero", "/dev/null"] {
        assert!(refusal(Path::new(device)).starts_with("it is a device; "));
    }
    let socket = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    // The kernel opens none.
    assert!(open_to_read(&socket).is_err());
}

#[test]
fn a_commands_output_is_read_to_its_end() {
    let (output, mut input) = std::io::pipe().unwrap();
    let path = format!("/dev/fd/{}", output.as_raw_fd());
    let mut opened = open_to_read(Path::new(&path)).unwrap();
    drop(output);
    let writer = std::thread::spawn(move || input.write_all(b"the key"));
    let mut text = String::new();
    opened.read_to_string(&mut text).unwrap();
    assert_eq!(text, "the key");
    writer.join().unwrap().unwrap();
}

#[test]
fn the_systems_configuration_is_taken_where_the_user_has_none() {
    let directory = TempDir::new().unwrap();
    let home = directory.path().join("home");
    let own = home.join(".config/bursar/config.toml");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    let system = directory.path().join("config.toml");
    let users = Env::from_pairs([("HOME", home.to_str().unwrap())]);
    let nobodys = Env::from_pairs::<&str, &str>([]);
    let found = || [first_there(&users, &system), first_there(&nobodys, &system)];

    assert_eq!(found(), [None, None]);
    std::fs::write(&system, "").unwrap();
    assert_eq!(found(), [Some(system.clone()), Some(system.clone())]);
    std::fs::write(&own, "").unwrap();
    assert_eq!(found(), [Some(own), Some(system.clone())]);
    assert_eq!(SYSTEM_FILE, "/etc/bursar/config.toml");
}
