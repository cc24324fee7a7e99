#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| wqk_fuzz::format::fuzz::legacy(bytes));
