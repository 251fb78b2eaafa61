//! How a request comes in: `admit` judges its head, `buffer` takes its body. Nothing is spent here.

pub mod admit;
pub mod buffer;
