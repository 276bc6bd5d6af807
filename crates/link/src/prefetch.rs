//! Memory that is about to be needed: the processor fetches it meanwhile.

#![allow(unsafe_code, reason = "an instruction without effect but on time; what is public here is safe to call")]

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Begins to fetch `value`, up to `bytes` of it.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T, bytes: usize) {
    let length = size_of_val(value).min(bytes);
    let first = std::ptr::from_ref(value).cast::<u8>();
    for offset in (0..length).step_by(LINE) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the address is within `value`, and the instruction reads and writes nothing that the program sees.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(first.add(offset).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (first, offset);
    }
}
