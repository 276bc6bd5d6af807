//! The link: two directions under one clock.

use super::direction::{Counters, Direction};
use super::settings::{Settings, WrongCredits};
use units::Rate;

/// An end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// One of the two.
    A,
    /// The other.
    B,
}

impl End {
    /// The opposite end.
    pub fn other(self) -> End {
        match self {
            End::A => End::B,
            End::B => End::A,
        }
    }
}

/// A link that carries frames of type `F`, of which it looks at nothing.
#[derive(Clone, Debug)]
pub struct Link<F> {
    settings: Settings,
    from_a: Direction<F>,
    from_b: Direction<F>,
}

impl<F> Link<F> {
    /// A link at rest with all credits.
    ///
    /// # Errors
    /// There are no credits.
    pub fn new(settings: Settings) -> Result<Link<F>, WrongCredits> {
        let settings = settings.checked()?;
        Ok(Link { settings, from_a: Direction::new(settings), from_b: Direction::new(settings) })
    }

    /// Rate of the line without its code.
    pub fn rate(&self) -> Rate {
        self.settings.rate
    }

    /// Sends a frame from an end; `content_bytes` are [`wire::fc::Frame::content_bytes`].
    ///
    /// # Errors
    /// The frame itself, when as many wait as may: the sender keeps it.
    pub fn handle_frame(&mut self, from: End, frame: F, content_bytes: usize, now_ns: u64) -> Result<(), F> {
        let direction = self.from(from);
        direction.advance(now_ns);
        if !direction.has_room() {
            return Err(frame);
        }
        direction.push(frame, content_bytes, now_ns);
        Ok(())
    }

    /// The receiver at an end has emptied the buffer of a frame that it took: the credit goes back (R_RDY). More
    /// releases than frames do nothing.
    pub fn handle_release(&mut self, at: End, now_ns: u64) {
        let direction = self.from(at.other());
        direction.advance(now_ns);
        direction.release(now_ns);
        // Without distance the credit is there at once.
        direction.advance(now_ns);
    }

    /// Does what is due at `now_ns`.
    #[inline]
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.from_a.advance(now_ns);
        self.from_b.advance(now_ns);
    }

    /// Time of the next event, ns; None when nothing moves without an input.
    #[inline]
    pub fn poll_timeout(&self) -> Option<u64> {
        [self.from_a.next(), self.from_b.next()].into_iter().flatten().min()
    }

    /// The next frame that arrived at an end. Its buffer stays filled until [`Link::handle_release`].
    #[inline]
    pub fn poll_frame(&mut self, at: End) -> Option<F> {
        self.from(at.other()).pop()
    }

    /// True when an end takes a further frame.
    #[inline]
    pub fn has_room(&self, from: End) -> bool {
        self.of(from).has_room()
    }

    /// Credits that an end has left.
    pub fn credits(&self, from: End) -> u16 {
        self.of(from).credits()
    }

    /// Counters of what an end sends.
    pub fn counters(&self, from: End) -> Counters {
        self.of(from).counters
    }

    #[inline]
    fn of(&self, end: End) -> &Direction<F> {
        match end {
            End::A => &self.from_a,
            End::B => &self.from_b,
        }
    }

    #[inline]
    fn from(&mut self, end: End) -> &mut Direction<F> {
        match end {
            End::A => &mut self.from_a,
            End::B => &mut self.from_b,
        }
    }
}
