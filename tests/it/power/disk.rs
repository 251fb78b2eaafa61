//! A disk as a power cut leaves it, built from a recording of everything that reached it.
//!
//! The model is harsher than most file systems: only what a sync covered is safe. A file's bytes need
//! a sync of the file, its name one of the directory. Of the rest a random part is there: nothing, a
//! beginning, or any writes in any order, the last of them torn at 512 bytes.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::crash::Random;

const SECTOR: usize = 512;

/// A change, as the shim recorded it.
#[derive(Debug)]
enum Event {
    Create {
        inode: u64,
        path: String,
    },
    MakeDir {
        inode: u64,
        path: String,
    },
    Write {
        inode: u64,
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        inode: u64,
        length: usize,
    },
    Rename {
        from: String,
        to: String,
    },
    Unlink {
        path: String,
    },
    Sync {
        inode: u64,
    },
}

/// All changes, in the order in which they took effect.
pub struct Recording {
    events: Vec<Event>,
    /// The watched directory.
    root: String,
}

/// What a name refers to.
#[derive(Clone, Copy, Debug)]
enum Node {
    Dir,
    /// Which of the files.
    File(usize),
}

#[derive(Debug)]
enum NameChange {
    Put { path: String, node: Node },
    Rename { from: String, to: String },
    Remove { path: String },
}

#[derive(Clone, Debug)]
enum ByteChange {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate { length: usize },
}

#[derive(Debug, Default)]
struct Contents {
    synced: Vec<u8>,
    unsynced: Vec<ByteChange>,
}

#[derive(Debug, Default)]
struct Disk {
    files: Vec<Contents>,
    /// What an inode number means now.
    by_inode: HashMap<u64, usize>,
    dirs: HashMap<u64, String>,
    synced_names: BTreeMap<String, Node>,
    /// By directory.
    unsynced_names: BTreeMap<String, Vec<NameChange>>,
}

// === impl Recording ===

impl Recording {
    /// Reads the shim's log.
    pub fn read(log: &Path, root: &Path) -> Self {
        let log = std::fs::read(log).expect("the log");
        let mut rest = log.as_slice();
        let mut take = |length: usize| {
            let (taken, left) = rest.split_at_checked(length)?;
            rest = left;
            Some(taken)
        };
        let mut events = Vec::new();
        // A record that the kill cut off was never counted.
        while let Some(head) = take(48) {
            let word = |at: usize| {
                let bytes = head[at * 8..at * 8 + 8].try_into().expect("8 bytes");
                u64::from_le_bytes(bytes)
            };
            let size = |at: usize| usize::try_from(word(at)).expect("a size");
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("a path");
            let (Some(path), Some(other)) = (take(size(4)), take(size(5))) else {
                break;
            };
            let (inode, path, other) = (word(1), text(path), text(other));
            events.push(match word(0) {
                1 => Event::Create { inode, path },
                2 => Event::MakeDir { inode, path },
                3 => {
                    let Some(bytes) = take(size(3)) else { break };
                    Event::Write {
                        inode,
                        offset: size(2),
                        bytes: bytes.to_vec(),
                    }
                }
                4 => Event::Truncate {
                    inode,
                    length: size(2),
                },
                5 => Event::Rename {
                    from: path,
                    to: other,
                },
                6 => Event::Unlink { path },
                7 => Event::Sync { inode },
                other => panic!("no such record: {other}"),
            });
        }
        Self {
            events,
            root: root.to_str().expect("a UTF-8 path").to_owned(),
        }
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Writes the disk after a cut that follows the first `events` changes to `target`, which must
    /// not exist.
    pub fn cut(&self, events: usize, random: &mut Random, target: &Path) {
        let mut disk = Disk::default();
        disk.synced_names.insert(self.root.clone(), Node::Dir);
        for event in &self.events[..events] {
            disk.apply(event);
        }
        let names = disk.names_after(random);
        let contents: Vec<Vec<u8>> = disk
            .files
            .iter()
            .map(|contents| contents.after(random))
            .collect();
        // Sorted: a directory comes before what is in it.
        for (path, node) in names {
            let below = path.strip_prefix(&self.root).expect("below the root");
            let path = target.join(below.trim_start_matches('/'));
            // A directory's own name may be lost.
            if path != target && !path.parent().expect("a parent").exists() {
                continue;
            }
            match node {
                Node::Dir => std::fs::DirBuilder::new()
                    .mode(0o700)
                    .create(&path)
                    .expect("a directory"),
                Node::File(file) => {
                    let mut open = std::fs::OpenOptions::new();
                    let mut written = open
                        .mode(0o600)
                        .write(true)
                        .create_new(true)
                        .open(&path)
                        .expect("a file");
                    std::io::Write::write_all(&mut written, &contents[file]).expect("its bytes");
                }
            }
        }
    }
}

// === impl Disk ===

impl Disk {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Create { inode, path } => {
                self.files.push(Contents::default());
                let file = self.files.len() - 1;
                self.by_inode.insert(*inode, file);
                self.name(NameChange::Put {
                    path: path.clone(),
                    node: Node::File(file),
                });
            }
            Event::MakeDir { inode, path } => {
                self.dirs.insert(*inode, path.clone());
                if !self.synced_names.contains_key(path) {
                    self.name(NameChange::Put {
                        path: path.clone(),
                        node: Node::Dir,
                    });
                }
            }
            Event::Write {
                inode,
                offset,
                bytes,
            } => self.change(
                *inode,
                ByteChange::Write {
                    offset: *offset,
                    bytes: bytes.clone(),
                },
            ),
            Event::Truncate { inode, length } => {
                self.change(*inode, ByteChange::Truncate { length: *length });
            }
            Event::Rename { from, to } => {
                // A directory moves together with its contents.
                if let Some(dir) = self.dirs.values_mut().find(|dir| *dir == from) {
                    to.clone_into(dir);
                    for change in self.unsynced_names.remove(from).unwrap_or_default() {
                        rename(&mut self.synced_names, &change);
                    }
                }
                self.name(NameChange::Rename {
                    from: from.clone(),
                    to: to.clone(),
                });
            }
            Event::Unlink { path } => self.name(NameChange::Remove { path: path.clone() }),
            Event::Sync { inode } => {
                if let Some(file) = self.by_inode.get(inode) {
                    self.files[*file].sync();
                }
                if let Some(dir) = self.dirs.get(inode) {
                    for change in self.unsynced_names.remove(dir).unwrap_or_default() {
                        rename(&mut self.synced_names, &change);
                    }
                }
            }
        }
    }

    fn change(&mut self, inode: u64, change: ByteChange) {
        let file = self.by_inode.get(&inode).expect("a file that was created");
        self.files[*file].unsynced.push(change);
    }

    fn name(&mut self, change: NameChange) {
        let (NameChange::Put { path, .. }
        | NameChange::Rename { to: path, .. }
        | NameChange::Remove { path }) = &change;
        let (dir, _) = path.rsplit_once('/').expect("an absolute path");
        let waiting = self.unsynced_names.entry(dir.to_owned()).or_default();
        waiting.push(change);
    }

    /// The names that are there: the synced ones, and of the others some.
    fn names_after(&self, random: &mut Random) -> BTreeMap<String, Node> {
        let mut names = self.synced_names.clone();
        for changes in self.unsynced_names.values() {
            let (way, kept) = way(changes.len(), random);
            for (at, change) in changes.iter().enumerate() {
                if way.keeps(at, kept, random) {
                    rename(&mut names, change);
                }
            }
        }
        names
    }
}

fn rename(names: &mut BTreeMap<String, Node>, change: &NameChange) {
    match change {
        NameChange::Put { path, node } => {
            names.insert(path.clone(), *node);
        }
        NameChange::Remove { path } => {
            names.remove(path);
        }
        NameChange::Rename { from, to } => {
            // With everything below it, when it is a directory.
            let below = format!("{from}/");
            let moved: Vec<String> = names
                .keys()
                .filter(|name| *name == from || name.starts_with(&below))
                .cloned()
                .collect();
            for name in moved {
                if let Some(node) = names.remove(&name) {
                    names.insert(format!("{to}{}", &name[from.len()..]), node);
                }
            }
        }
    }
}

/// Which of the unsynced changes are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The first ones.
    Beginning,
    /// Any.
    Some,
}

fn way(changes: usize, random: &mut Random) -> (Way, usize) {
    let count = changes as u64;
    match random.below(4) {
        0 => (Way::Beginning, 0),
        1 => (Way::Beginning, changes),
        2 => {
            let kept = random.below(count + 1);
            (Way::Beginning, usize::try_from(kept).expect("small"))
        }
        _ => (Way::Some, changes),
    }
}

impl Way {
    fn keeps(self, at: usize, kept: usize, random: &mut Random) -> bool {
        match self {
            Self::Beginning => at < kept,
            Self::Some => random.below(2) == 0,
        }
    }
}

// === impl Contents ===

impl Contents {
    fn sync(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            put(&mut self.synced, &change);
        }
    }

    /// The bytes that are there.
    fn after(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let (way, count) = way(self.unsynced.len(), random);
        let mut kept: Vec<&ByteChange> = Vec::new();
        for (at, change) in self.unsynced.iter().enumerate() {
            if way.keeps(at, count, random) {
                kept.push(change);
            }
        }
        let torn = random.below(2) == 0;
        let last = kept.len();
        for (at, change) in kept.into_iter().enumerate() {
            match change {
                ByteChange::Write { offset, bytes: new } if torn && at + 1 == last => {
                    tear(&mut bytes, *offset, new, random);
                }
                change => put(&mut bytes, change),
            }
        }
        bytes
    }
}

fn put(bytes: &mut Vec<u8>, change: &ByteChange) {
    match change {
        ByteChange::Truncate { length } => bytes.resize(*length, 0),
        ByteChange::Write { offset, bytes: new } => {
            let end = offset + new.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset..end].copy_from_slice(new);
        }
    }
}

/// Writes some of the sectors that a write touches.
fn tear(bytes: &mut Vec<u8>, offset: usize, new: &[u8], random: &mut Random) {
    let mut at = 0;
    while at < new.len() {
        let length = (SECTOR - (offset + at) % SECTOR).min(new.len() - at);
        if random.below(2) == 0 {
            let sector = ByteChange::Write {
                offset: offset + at,
                bytes: new[at..at + length].to_vec(),
            };
            put(bytes, &sector);
        }
        at += length;
    }
}
