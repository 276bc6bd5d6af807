//! The rules on samples of flows of a known limit, and on samples made by hand.

mod made;
mod recorded;
