//! A frame that came from an interface.

/// A frame that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Its bytes from the first address on, without tag and check sequence.
    pub bytes: &'a [u8],
    /// The tag that it had.
    pub tag: Option<u16>,
    /// Time of its arrival, ns since 1970.
    pub at_ns: u64,
}
