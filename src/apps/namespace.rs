//! Which users this process can distinguish: those of its user namespace.
//!
//! Why: the kernel shows every user that the namespace does not map (systemd's `PrivateUsers=yes`, a
//! container without root) as one and the same stand-in. Taken for a user, it would make one app of all of
//! them.
//!
//! Promise: the stand-in is no user's uid, and where the map cannot be read no user is reported.

use std::fs::read_to_string;
use std::sync::OnceLock;

/// The stand-in, where the kernel does not name another.
const STAND_IN: u32 = 65534;

/// Users in a namespace that hides none: all numbers but the one that means no user.
const ALL: u64 = 0xffff_ffff;

/// The users of one namespace, by the numbers they have in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// First number and how many.
    mapped: Vec<(u64, u64)>,
    stand_in: u32,
}

// === impl Namespace ===

impl Namespace {
    /// Of this process; read once, because a namespace is mapped once.
    pub fn own() -> &'static Self {
        static OWN: OnceLock<Namespace> = OnceLock::new();
        OWN.get_or_init(|| {
            let text = |path: &str| read_to_string(path).unwrap_or_default();
            Self::of(
                &text("/proc/self/uid_map"),
                &text("/proc/sys/kernel/overflowuid"),
            )
        })
    }

    /// From the kernel's two files.
    fn of(map: &str, stand_in: &str) -> Self {
        let mapped = map.lines().filter_map(|line| {
            let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
            let (first, _outside, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
            Some((first.ok()?, count.ok()?))
        });
        Self {
            mapped: mapped.collect(),
            stand_in: stand_in.trim().parse().unwrap_or(STAND_IN),
        }
    }

    /// The user that the kernel shows as `uid`; `None` where that may be any user.
    pub fn user(&self, uid: u32) -> Option<u32> {
        let counts = self.mapped.iter().map(|(_, count)| *count);
        if counts.fold(0, u64::saturating_add) >= ALL {
            return Some(uid);
        }
        let is_mapped = |(first, count): &(u64, u64)| {
            u64::from(uid)
                .checked_sub(*first)
                .is_some_and(|place| place < *count)
        };
        let is_distinct = uid != self.stand_in && self.mapped.iter().any(is_mapped);
        is_distinct.then_some(uid)
    }
}

#[cfg(test)]
mod tests;
