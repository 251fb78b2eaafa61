//! The fleet's side in the database: one file of SQL, which `bursar fleet schema` prints.

/// The version that this bursar speaks.
pub const VERSION: i32 = 2;

/// The whole file.
pub const SQL: &str = include_str!("schema.sql");

#[cfg(test)]
mod tests {
    use super::{SQL, VERSION};

    #[test]
    fn the_file_states_the_version_that_is_spoken() {
        assert!(SQL.contains(&format!("INSERT INTO about (version) VALUES ({VERSION})")));
        assert!(SQL.contains(&format!("IF found > {VERSION} THEN")));
    }
}
