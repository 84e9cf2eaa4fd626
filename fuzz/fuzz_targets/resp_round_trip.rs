#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kvlab_protocol::fuzzing::resp::resp_round_trip(data));
