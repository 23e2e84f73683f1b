//! The allocator of the program: mimalloc, and large pages for what is large.
//!
//! Checking a large history reads arrays of many megabytes in no order. With pages of 2 MB, few of these reads miss the processor's
//! table of pages, and the system clears one page where it would clear 512. Where the system has no such pages, nothing changes.

#![allow(unsafe_code)] // An allocator is unsafe by its nature; each function only passes on what its caller promises.

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;

/// Reading and indexing a history is mostly allocation; mimalloc asks the system less often.
pub struct Allocator;

/// From this size on, in bytes, large pages are asked for: a part of a page that is not used would cost too much below.
const LARGE: usize = 4 << 20;

// Sound: mimalloc allocates, and advice changes no content.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        advised(unsafe { MiMalloc.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        advised(unsafe { MiMalloc.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { MiMalloc.dealloc(place, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        advised(unsafe { MiMalloc.realloc(place, layout, size) }, size)
    }
}

#[inline]
fn advised(place: *mut u8, size: usize) -> *mut u8 {
    if size >= LARGE {
        advise(place, size);
    }
    place
}

/// Asks for large pages where they fit whole.
#[cold]
#[cfg(target_os = "linux")]
fn advise(place: *mut u8, size: usize) {
    const PAGE: usize = 2 << 20;
    let skipped = place.addr().next_multiple_of(PAGE) - place.addr();
    let length = size.saturating_sub(skipped) / PAGE * PAGE;
    if !place.is_null() && length > 0 {
        // Sound: the range is within what was allocated. Whether the system follows the advice does not matter.
        unsafe { libc::madvise(place.add(skipped).cast(), length, libc::MADV_HUGEPAGE) };
    }
}

#[cold]
#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}
