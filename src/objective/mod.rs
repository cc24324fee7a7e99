//! Objectives: what is predicted from what, by which mask, corruption, targets and loss.
