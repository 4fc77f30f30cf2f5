//! Arbitrary bytes on the control socket of a drive: every line is answered by one line of JSON, and nothing panics.
#![no_main]

use isotherm_drive::control::answer_all;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::sync::atomic::AtomicUsize;

fuzz_target!(|data: &[u8]| {
    let mut said = Vec::new();
    let answer = |question: &Value| match question["verb"].as_str() {
        Some("trim") => question["offset"].as_u64().map(|offset| json!({ "at": offset })).ok_or("no offset".to_owned()),
        Some(other) => Err(format!("\"{other}\" is no question")),
        None => Err("a question has a \"verb\"".to_owned()),
    };
    let answering = AtomicUsize::new(0);
    answer_all(data, &mut said, &answer, &answering).unwrap();
    assert_eq!(answering.into_inner(), 0);
    for line in said.split_inclusive(|byte| *byte == b'\n') {
        let value: Value = serde_json::from_slice(line).unwrap();
        assert!(value.get("ok").is_some() != value.get("error").is_some());
    }
});
