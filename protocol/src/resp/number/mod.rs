//! Numbers as a server reads and prints them.
//!
//! Integers are strict (no `+`, no blanks, no leading zeros), as a value that is an integer must print
//! back to the same bytes. Doubles follow C's `strtod` without leading blanks. How a double is printed
//! depends on the server's version, see [`DoubleStyle`]. `INCRBYFLOAT` computes and prints in the extended
//! precision of x86-64, see [`LongDouble`].

mod big;
mod binary;
mod double;
mod grisu;
mod integer;
mod long_double;
mod text;

pub use double::{DoubleStyle, double_text, format_double, parse_f64};
pub use integer::parse_i64;
pub use long_double::{LongDouble, format_long_double_human};
pub use text::NumberText;
