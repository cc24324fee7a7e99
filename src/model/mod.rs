//! Models made of our attention.
