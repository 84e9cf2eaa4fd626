#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kvlab_protocol::fuzzing::aerospike::aerospike_msgpack(data));
