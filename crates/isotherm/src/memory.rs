//! Large tables and prefetching: the only module with `unsafe` code.
//!
//! A table of a large device is far bigger than the processor's caches, and with 4 KiB pages far bigger than its TLB.
//! Tables therefore ask the kernel for huge pages, and the replay loop prefetches the entries of coming requests.
#![allow(unsafe_code)]

/// A type whose bytes may all be zero.
///
/// # Safety
/// Zero bytes are a value of the type.
pub unsafe trait Zero: Copy {}

// SAFETY: zero is a number.
unsafe impl Zero for u8 {}
// SAFETY: as above.
unsafe impl Zero for u16 {}
// SAFETY: as above.
unsafe impl Zero for u32 {}
// SAFETY: as above.
unsafe impl Zero for u64 {}
// SAFETY: zero is `false`.
unsafe impl Zero for bool {}

/// A table of `length` zeros, on huge pages where the system has them. Untouched parts take no memory.
pub fn zeroed_table<T: Zero>(length: usize) -> Vec<T> {
    let layout = std::alloc::Layout::array::<T>(length).expect("a table fits the address space");
    if layout.size() == 0 {
        return Vec::new();
    }
    // SAFETY: the layout has a size, and zero bytes are values of the type; they are from the allocator and layout that a vector
    // of this capacity gives them back to.
    let mut entries = unsafe {
        let start = std::alloc::alloc_zeroed(layout);
        if start.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Vec::from_raw_parts(start.cast::<T>(), length, length)
    };
    advise_huge_pages(&mut entries);
    entries
}

/// A table of `length` times `value`, on huge pages where the system has them.
pub fn table<T: Copy>(length: usize, value: T) -> Vec<T> {
    let mut entries: Vec<T> = Vec::with_capacity(length);
    advise_huge_pages(&mut entries);
    entries.resize(length, value);
    entries
}

/// Asks for huge pages behind the whole capacity of `entries`, before it is first touched.
fn advise_huge_pages<T>(entries: &mut Vec<T>) {
    const PAGE: usize = 4096;
    let bytes = entries.capacity() * size_of::<T>();
    if !cfg!(target_os = "linux") || bytes < 4 << 20 {
        return;
    }
    // The pages at both ends count too, which hold parts of other things: a large allocation begins a few bytes into a huge
    // page, and without its first small page that huge page is lost.
    let start = (entries.as_mut_ptr() as usize) & !(PAGE - 1);
    let end = (entries.as_mut_ptr() as usize + bytes).next_multiple_of(PAGE);
    // SAFETY: every page of the range holds a part of the allocation that `entries` owns and so is mapped; MADV_HUGEPAGE
    // changes neither content nor protection, and a refusal only leaves small pages.
    unsafe {
        libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE);
    }
}

/// Brings `table[index]` towards the first-level cache. An index past the end is ignored.
#[inline(always)]
pub fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = table.as_ptr().wrapping_add(index);
        // SAFETY: a prefetch never faults, whatever the address; nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}
