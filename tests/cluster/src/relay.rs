//! Ports on the machine's loopback that lead into a node: the API server's, and any other that is asked for.
//!
//! The holder runs them, so that they live as long as the node. A connection goes through the node's
//! [gate](crate::gate), which dials inside. New ones are ordered over a socket of the holder's, one line each:
//!
//! | line | answer |
//! | --- | --- |
//! | `relay PORT ADDRESS` | the port, any free one for 0, or a sentence |

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::gate;
use crate::paths::{NodePaths, write_whole};

/// How long to leave alone what cannot take connections: out of descriptors, most likely, and others will close theirs.
const REST: Duration = Duration::from_millis(50);

impl Cluster {
    /// Offers an address of the cluster's network on a port of the machine's 127.0.0.1, for TCP, as long as the cluster
    /// lives. Returns the port: `port`, or any free one if that is 0.
    ///
    /// # Errors
    /// [`Error::Usage`] when the port is taken.
    pub fn relay(&self, target: SocketAddr, port: u16) -> Result<u16, Error> {
        let answer = gate::ask(&self.paths().node("node-1").relays(), &format!("relay {port} {target}"))?;
        answer.parse().map_err(|_| Error::Usage(answer))
    }
}

/// Offers the API server at `api`, if this node has one, and what else is asked for, for ever.
pub(crate) async fn serve(node: &NodePaths, api: Option<&str>) -> Result<(), Error> {
    let path = node.relays();
    let orders = UnixListener::bind(&path).map_err(Error::io("listen on", &path))?;
    if let Some(api) = api {
        let port = offer(node.gate(), api.to_owned(), 0).await.map_err(Error::io("offer", Path::new(api)))?;
        write_whole(&node.api_port(), &port.to_string())?;
    }
    loop {
        match orders.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(answer(stream, node.gate()));
            }
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

/// Whoever asked may hang up at any time: there is nobody left to tell.
async fn answer(stream: UnixStream, gate: PathBuf) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let answer = match order(&line) {
        Some((port, target)) => match offer(gate, target.to_string(), port).await {
            Ok(port) => port.to_string(),
            Err(error) => format!("cannot offer {target} on port {port} of 127.0.0.1: {error}"),
        },
        None => "unknown order".to_owned(),
    };
    stream.write_all(format!("{answer}\n").as_bytes()).await
}

fn order(line: &str) -> Option<(u16, SocketAddr)> {
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["relay", port, target] => Some((port.parse().ok()?, target.parse().ok()?)),
        _ => None,
    }
}

/// Relays connections on a loopback port of the machine to `target` inside the node, in the background.
async fn offer(gate: PathBuf, target: String, port: u16) -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((near, _)) => {
                    tokio::spawn(relay(near, gate.clone(), target.clone()));
                }
                Err(_) => tokio::time::sleep(REST).await,
            }
        }
    });
    Ok(port)
}

/// A connection that breaks is the client's to notice.
async fn relay(mut near: TcpStream, gate: PathBuf, target: String) -> std::io::Result<()> {
    // What comes in pieces goes on in pieces: waiting to fill a packet, on either side, would cost 40 ms an answer.
    near.set_nodelay(true)?;
    let mut far = UnixStream::connect(gate).await?;
    far.write_all(format!("dial {target}\n").as_bytes()).await?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_a_port_and_an_address() {
        assert_eq!(order("relay 8080 10.89.0.1:80\n"), Some((8080, SocketAddr::from(([10, 89, 0, 1], 80)))));
        for bad in
            ["", "relay", "relay 8080", "relay 65536 10.89.0.1:80", "relay 0 example.com:80", "offer 0 1.2.3.4:5"]
        {
            assert_eq!(order(bad), None, "{bad:?} was taken");
        }
    }
}
