//! The allocator of the program: mimalloc, and large pages for what is large.
//!
//! Checking a large history reads arrays of many megabytes in no order. With pages of 2 MB, few of these reads miss the processor's
//! table of pages, and the system clears one page where it would clear 512. A small history needs less than one such page, and to
//! clear some would take longer than its check; so mimalloc itself asks for none (feature `no_thp`).

#![allow(unsafe_code)] // An allocator is unsafe by its nature; each function only passes on what its caller promises.

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;

/// Reading and indexing a history is mostly allocation; mimalloc asks the system less often.
pub struct Allocator;

/// From this size on, in bytes, large pages are asked for.
const LARGE: usize = 1 << 20;

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

/// Asks for all large pages that the range touches; what else is on them is the allocator's too, and advice does it no harm.
#[cold]
#[cfg(target_os = "linux")]
fn advise(place: *mut u8, size: usize) {
    const PAGE: usize = 2 << 20;
    if place.is_null() {
        return;
    }
    let before = place.addr() % PAGE;
    let length = (before + size).next_multiple_of(PAGE);
    // Sound: advice changes no content, of whatever mapping. Whether the system follows it does not matter.
    unsafe {
        libc::madvise(
            place.wrapping_sub(before).cast(),
            length,
            libc::MADV_HUGEPAGE,
        )
    };
}

#[cold]
#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}
