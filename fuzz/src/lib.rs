//! What must hold for any bytes from a socket or a file. The fuzz targets feed these checks with what
//! libFuzzer invents; `tests/it/corpus.rs` feeds them with the corpus that was kept.

pub mod checks;
