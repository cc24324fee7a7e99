//! Tables, curves and pages made of results.
