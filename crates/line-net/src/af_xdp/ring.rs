//! A ring of AF_XDP, which one side fills and the other empties (kernel's Documentation/networking/af_xdp.rst).

use crate::map::Map;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

/// A ring of entries of a type that is plain numbers.
#[derive(Debug)]
pub(super) struct Ring<T> {
    map: Map,
    producer: usize,
    consumer: usize,
    entries: usize,
    mask: u32,
    /// This side's own count.
    own: u32,
    kind: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Maps a ring of so many entries, a power of two.
    pub fn new(fd: &OwnedFd, at: &libc::xdp_ring_offset, size: u32, offset: u64) -> io::Result<Ring<T>> {
        let bytes = at.desc as usize + size as usize * size_of::<T>();
        let map = Map::of(fd, bytes, offset as libc::off_t)?;
        let (producer, consumer, entries) = (at.producer as usize, at.consumer as usize, at.desc as usize);
        Ok(Ring { map, producer, consumer, entries, mask: size - 1, own: 0, kind: std::marker::PhantomData })
    }

    fn place(&self, number: u32) -> *mut T {
        let at = self.entries + (number & self.mask) as usize * size_of::<T>();
        self.map.at(at, size_of::<T>()).cast()
    }

    /// Fills the next place, which is free. The other side sees it after [`Ring::publish`].
    pub fn put(&mut self, entry: T) {
        // SAFETY: the place lies within the mapping, is aligned, and is this side's.
        unsafe { self.place(self.own).write(entry) };
        self.own = self.own.wrapping_add(1);
    }

    /// Shows what was put.
    pub fn publish(&self) {
        self.map.word(self.producer).store(self.own, Ordering::Release);
    }

    /// Entries that can be taken, for the side that empties.
    pub fn filled(&self) -> u32 {
        self.map.word(self.producer).load(Ordering::Acquire).wrapping_sub(self.own)
    }

    /// Takes the next entry, which is filled. The place is the other side's after [`Ring::release`].
    pub fn take(&mut self) -> T {
        // SAFETY: as in `put`; the other side has filled the place in.
        let entry = unsafe { self.place(self.own).read() };
        self.own = self.own.wrapping_add(1);
        entry
    }

    /// Gives back what was taken.
    pub fn release(&self) {
        self.map.word(self.consumer).store(self.own, Ordering::Release);
    }
}
