//! Training: the loop, its schedule, its optimiser and its observers.
