//! Runs a program in a box of minhost. Standard library only: rustc --edition 2021 minhost.rs
//!
//!     minhost NAME PROGRAM [ARGUMENT...]
//!
//! The standard library neither sends descriptors nor reads JSON. So the child is given by its number, which is
//! safe for a child that nobody has waited for, and fields are cut out of replies as text, which is enough for
//! ids and secrets. A runner in earnest uses serde_json, and rustix or zlink for pidfds, Listen and Join.
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{exit, Command};
use std::{env, thread};

const SOCKET: &str = "/run/minhost/helper.sock";

/// One connection. What it planned is abandoned when it closes.
struct Host(UnixStream);

impl Host {
    /// Calls a method; parameters are a JSON object. An answer that is an error is an Err with its text.
    fn call(&mut self, method: &str, parameters: &str) -> io::Result<String> {
        let message = format!("{{\"method\":\"dev.minimal.Host.{method}\",\"parameters\":{parameters}}}\0");
        self.0.write_all(message.as_bytes())?;
        let mut reply = Vec::new();
        let mut octet = [0];
        loop {
            self.0.read_exact(&mut octet)?;
            if octet[0] == 0 {
                break;
            }
            reply.push(octet[0]);
        }
        let reply = String::from_utf8(reply).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        match field(&reply, "error") {
            Some(name) => Err(io::Error::new(io::ErrorKind::Other, format!("{name}: {}", field(&reply, "message").unwrap_or("")))),
            None => Ok(reply),
        }
    }
}

/// The text of a field that needs no unescaping.
fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let start = json.find(&format!("\"{name}\":\""))? + name.len() + 4;
    json[start..].split('"').next()
}

/// A child that waits for an octet before it becomes the program: its number, and the end that lets it go.
fn hold(mut command: Command) -> io::Result<(u32, UnixStream, thread::JoinHandle<io::Result<i32>>)> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    // SAFETY: between fork and exec the child only reads, writes and asks for its number.
    unsafe {
        command.pre_exec(move || {
            theirs.write_all(&std::process::id().to_ne_bytes())?;
            theirs.read_exact(&mut [0])
        });
    }
    // spawn returns when the child has become the program.
    let waiter = thread::spawn(move || Ok(command.spawn()?.wait()?.code().unwrap_or(128)));
    let mut pid = [0; 4];
    ours.read_exact(&mut pid)?;
    Ok((u32::from_ne_bytes(pid), ours, waiter))
}

fn run(name: &str, program: &str, arguments: &[String]) -> io::Result<i32> {
    let mut host = Host(UnixStream::connect(SOCKET)?);
    let plan = host.call("Plan", &format!(
        "{{\"name\":\"{name}\",\"mode\":\"host\",\"policy\":{{\"egress\":\"deny\"}},\"end_with_connection\":true}}"))?;
    let (lease, secret) = (field(&plan, "lease").unwrap_or(""), field(&plan, "secret").unwrap_or(""));
    let mut command = Command::new(program);
    command.args(arguments).env("MINHOST_ADDRESS", field(&plan, "address").unwrap_or(""));
    let (pid, mut go, waiter) = hold(command)?;
    host.call("Attach", &format!("{{\"lease\":\"{lease}\",\"pid\":{pid}}}"))?;
    go.write_all(b"x")?;
    let status = waiter.join().map_err(|_| io::Error::new(io::ErrorKind::Other, "the waiter died"))??;
    host.call("Teardown", &format!("{{\"lease\":\"{lease}\",\"secret\":\"{secret}\",\"kill\":true}}"))?;
    Ok(status)
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if arguments.len() < 3 {
        eprintln!("usage: minhost NAME PROGRAM [ARGUMENT...]");
        exit(2);
    }
    match run(&arguments[1], &arguments[2], &arguments[3..]) {
        Ok(status) => exit(status),
        Err(error) => {
            eprintln!("minhost: {error}");
            exit(1);
        }
    }
}
