//! Options that cannot hold together.
//!
//! Two organizations with one key would start, and one of them pay for both.
//! Promise: what contradicts itself is refused at the start, in words that name the setting and no key.

use super::Options;
use crate::auth::FIRST_ORG;
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    #[error("{0}: a key must not be empty or hold white space")]
    UnusableKey(String),
    #[error("organization: the name must have 1 to 100 characters")]
    UnusableName,
    #[error("organization {0}: the name stands twice")]
    NameTwice(String),
    #[error(
        "organization {FIRST_ORG}: this is the organization of the first api_key; choose another name"
    )]
    FirstName,
    #[error("{0}: another organization has this api_key")]
    KeyTwice(String),
    #[error("forbidden_keys: one is the api_key of {0}, which could then not be used")]
    ForbiddenKey(String),
}

// === impl Options ===

impl Options {
    /// The first contradiction.
    pub fn check(&self) -> Result<(), OptionsError> {
        let mut keys = vec![("api_key".to_owned(), FIRST_ORG, &self.api_key)];
        let mut names = BTreeSet::new();
        for organization in &self.more_organizations {
            let name = organization.name.as_str();
            if name.is_empty() || name.chars().count() > 100 {
                return Err(OptionsError::UnusableName);
            }
            if name == FIRST_ORG {
                return Err(OptionsError::FirstName);
            }
            if !names.insert(name) {
                return Err(OptionsError::NameTwice(name.to_owned()));
            }
            keys.push((format!("organization {name}"), name, &organization.api_key));
        }
        let mut seen = BTreeSet::new();
        for (place, _, key) in &keys {
            check_key(place, key)?;
            if !seen.insert(*key) {
                return Err(OptionsError::KeyTwice(place.clone()));
            }
        }
        for forbidden in &self.forbidden_keys {
            check_key("forbidden_keys", forbidden)?;
            if let Some((_, name, _)) = keys.iter().find(|(_, _, key)| *key == forbidden) {
                return Err(OptionsError::ForbiddenKey((*name).to_owned()));
            }
        }
        Ok(())
    }
}

/// A key stands behind `Bearer ` in a header, and is cut at its white space there.
fn check_key(place: &str, key: &str) -> Result<(), OptionsError> {
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Err(OptionsError::UnusableKey(place.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn told(scenario: &str) -> String {
        let options = Scenario::from_toml_str(scenario)
            .unwrap()
            .apply(Options::default());
        match options.check() {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn options_that_contradict_themselves_are_told_by_their_setting() {
        let org = |name: &str, key: &str| {
            format!("[[organization]]\nname = \"{name}\"\napi_key = \"{key}\"\n")
        };
        let table = [
            (
                "api_key = \"\"".to_owned(),
                "api_key: a key must not be empty",
            ),
            (
                "api_key = \"a b\"".to_owned(),
                "api_key: a key must not be empty",
            ),
            (
                org("org-2", ""),
                "organization org-2: a key must not be empty",
            ),
            (org("", "k"), "organization: the name must have"),
            (
                org("org-1", "k"),
                "organization org-1: this is the organization of the first",
            ),
            (
                org("a", "k") + &org("a", "l"),
                "organization a: the name stands twice",
            ),
            (
                org("a", "k") + &org("b", "k"),
                "organization b: another organization has this api_key",
            ),
            (
                org("a", "sandbox-key"),
                "organization a: another organization has this api_key",
            ),
            (
                "forbidden_keys = [\"sandbox-key\"]".to_owned(),
                "forbidden_keys: one is the api_key of org-1",
            ),
            (
                "forbidden_keys = [\"k\"]\n".to_owned() + &org("a", "k"),
                "forbidden_keys: one is the api_key of a,",
            ),
            (
                "forbidden_keys = [\"\"]".to_owned(),
                "forbidden_keys: a key must not be empty",
            ),
        ];
        for (scenario, expected) in table {
            let told = told(&scenario);
            assert!(told.starts_with(expected), "{scenario}: {told}");
        }
        let fine = "forbidden_keys = [\"x\", \"x\"]\n".to_owned() + &org("a", "k") + &org("b", "l");
        assert_eq!(told(&fine), "");
    }
}
