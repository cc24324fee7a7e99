//! Work on items several at a time, with a bound on how many are in memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::Scope;

struct Lanes<T, E, W> {
    items: usize,
    next: AtomicUsize,
    failed: AtomicBool,
    done: Mutex<Vec<(usize, Result<T, E>)>>,
    work: W,
}

/// The results of `work` on `0..items`, in order, at most `lanes` at a time on the threads of the pool.
///
/// Items start in order. Of several errors it gives that of the first item, and starts no more after one.
pub(super) fn in_lanes<T, E, W>(items: usize, lanes: usize, work: W) -> Result<Vec<T>, E>
where
    T: Send,
    E: Send,
    W: Fn(usize) -> Result<T, E> + Sync,
{
    let shared = Lanes {
        items,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        done: Mutex::new(Vec::with_capacity(items)),
        work,
    };
    rayon::scope(|scope| {
        for _ in 0..lanes.clamp(1, items.max(1)) {
            scope.spawn(|scope| shared.step(scope));
        }
    });
    let mut done = shared.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(item, _)| *item);
    done.into_iter().map(|(_, result)| result).collect()
}

impl<T, E, W> Lanes<T, E, W>
where
    T: Send,
    E: Send,
    W: Fn(usize) -> Result<T, E> + Sync,
{
    /// One item; then a task for the next. A thread that waits for a part of its item may take over the other
    /// lane's task in the meantime: so it is held up by one item, not by all that are left.
    fn step<'scope>(&'scope self, scope: &Scope<'scope>) {
        let item = self.next.fetch_add(1, Ordering::Relaxed);
        if item >= self.items || self.failed.load(Ordering::Relaxed) {
            return;
        }
        let result = (self.work)(item);
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        self.done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((item, result));
        scope.spawn(|scope| self.step(scope));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_never_too_many_at_work() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let results = in_lanes(50, 2, |i| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Parallel work inside, as a matrix product has.
            let parts = rayon::join(|| (0..i).sum::<usize>(), || i);
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, ()>(parts.0 + parts.1)
        });
        let expected: Vec<usize> = (0..50).map(|i| i * (i + 1) / 2).collect();
        assert_eq!(results.unwrap(), expected);
        assert!(most.into_inner() <= 2);
        assert_eq!(in_lanes(0, 2, |_| Ok::<(), ()>(())), Ok(Vec::new()));
    }

    #[test]
    fn the_first_error_is_given_and_ends_the_work() {
        let started = AtomicUsize::new(0);
        let result = in_lanes(1000, 3, |i| {
            started.fetch_add(1, Ordering::SeqCst);
            if i < 5 { Ok(i) } else { Err(i) }
        });
        assert_eq!(result, Err(5));
        assert!(started.into_inner() < 1000);
    }
}
