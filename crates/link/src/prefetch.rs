//! Memory that is about to be needed: the processor fetches it meanwhile.

#![allow(unsafe_code, reason = "an instruction without effect but on time; what is public here is safe to call")]

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Begins to fetch `value`, up to `bytes` of it.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T, bytes: usize) {
    let length = size_of_val(value).min(bytes);
    fetch(std::ptr::from_ref(value).cast::<u8>(), length);
}

/// Begins to fetch the `bytes` of `value` from `place` on.
#[inline(always)]
pub fn prefetch_part<T>(value: &T, place: usize, bytes: usize) {
    fetch(std::ptr::from_ref(value).cast::<u8>().wrapping_add(place), bytes);
}

/// Begins to fetch `bytes` of what lies behind `value`, whatever that is.
#[inline(always)]
pub fn prefetch_behind<T>(value: &T, bytes: usize) {
    fetch(std::ptr::from_ref(value).wrapping_add(1).cast::<u8>(), bytes);
}

#[inline(always)]
fn fetch(first: *const u8, length: usize) {
    let mut offset = 0;
    while offset < length {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction reads and writes nothing that the program sees, and may have any address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(first.wrapping_add(offset).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (first, offset);
        offset += LINE;
    }
}
