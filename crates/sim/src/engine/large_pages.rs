// SPDX-License-Identifier: Apache-2.0
//! Tables of many megabytes in large pages: with small ones nearly each access to another flow misses
//! the processor's table of pages too.

/// Makes room for an entry at `index`. A table that outgrows its memory is asked into large pages,
/// where the system has them.
#[inline(always)]
pub fn make_room<T>(table: &mut Vec<T>, index: usize) {
    if index >= table.capacity() {
        grow(table, index);
    }
}

#[cold]
#[inline(never)]
fn grow<T>(table: &mut Vec<T>, index: usize) {
    table.reserve(index + 1 - table.len());
    #[cfg(target_os = "linux")]
    {
        /// The size of a large page on most machines.
        const LARGE: usize = 2 << 20;
        let begin = table.as_ptr().addr().next_multiple_of(LARGE);
        let end = (table.as_ptr().addr() + table.capacity() * size_of::<T>()) & !(LARGE - 1);
        let used = (table.as_ptr().addr() + table.len() * size_of::<T>()) & !(LARGE - 1);
        if begin < end {
            let address = table.as_mut_ptr().with_addr(begin).cast();
            // SAFETY: whole pages of one allocation; the advice changes none of their contents.
            unsafe {
                libc::madvise(address, end - begin, libc::MADV_HUGEPAGE);
                if begin < used {
                    libc::madvise(address, used - begin, libc::MADV_COLLAPSE);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_its_entries_through_each_growth() {
        let mut table: Vec<u64> = Vec::new();
        for entry in 0..1 << 20 {
            make_room(&mut table, entry);
            assert!(table.capacity() > entry);
            table.push(entry as u64);
        }
        assert!((0..1 << 20).eq(table));
    }
}
