//! Serves bytes in memory: `cargo run --release --example memory -- PATH MIB` listens on the unix socket PATH until its standard
//! input ends. Shows what an embedder writes: an `Export` (tests/integration/memory.rs), and these few lines.

use std::error::Error;
use std::io::Read;
use std::sync::Arc;

use isotherm_export::nbd::{Event, Listen, NamedExport, Server, ServerOptions};

#[path = "../tests/integration/memory.rs"]
mod memory;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(mebibytes)) = (arguments.next(), arguments.next()) else {
        return Err("usage: memory PATH MIB".into());
    };
    let export = Arc::new(memory::Memory::new(mebibytes.parse::<usize>()? << 20));
    let description = format!("{mebibytes} MiB in memory");
    let exports = vec![NamedExport { name: "memory".into(), description, read_only: false, export }];
    let options = ServerOptions {
        observer: Some(Arc::new(|event| {
            if let Event::Ended(connection, end) = event {
                eprintln!("connection {connection}: {end}");
            }
        })),
        ..ServerOptions::default()
    };
    let handle = Server::new(exports, options)?.listen(&Listen::Unix(path.into()))?;
    println!("{}", handle.uri());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(handle.stop()?)
}
