//! Runs one end of a copy: `copy_ends SPEC.json`. Events are JSON lines on standard output, the report is the last one.
//! `copy_ends --keys` prints a token and keys of TLS, to be put into the specifications of both ends.

use copy::EndSpec;
use copy_net::{run_end, Control};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(argument) = std::env::args().nth(1) else {
        eprintln!("usage: copy_ends SPEC.json | --keys");
        return ExitCode::from(2);
    };
    if argument == "--keys" {
        return keys();
    }
    let text = match std::fs::read_to_string(&argument) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{argument}: {error}");
            return ExitCode::from(2);
        }
    };
    let spec: EndSpec = match serde_json::from_str(&text) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("{argument}: {error}");
            return ExitCode::from(2);
        }
    };
    let report = run_end(&spec, &Control::default(), &mut |event| println!("{}", json(&event)));
    match report {
        Ok(report) => {
            println!("{}", json(&report));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{:?}: {error}", error.kind);
            ExitCode::FAILURE
        }
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}

fn keys() -> ExitCode {
    let mut token = [0; 32];
    rustix::rand::getrandom(&mut token, rustix::rand::GetRandomFlags::empty()).expect("random numbers");
    let pair = rcgen::generate_simple_self_signed(vec!["elephan".into()]).expect("keys");
    println!(
        "{}",
        serde_json::json!({
            "token": copy::hex(&token),
            "certificate": copy::hex(pair.cert.der()),
            "key": copy::hex(&pair.signing_key.serialize_der()),
        })
    );
    ExitCode::SUCCESS
}
