//! How a request comes in: `spoken` says in which dialect, `admit` judges its head, `buffer` takes its body.
//! Nothing is spent here.

pub mod admit;
pub mod buffer;
pub mod spoken;
