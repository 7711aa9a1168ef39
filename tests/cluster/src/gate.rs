//! The one door between a node and the machine: a Unix socket, since those reach across network namespaces.
//!
//! A client writes one line and reads the answer:
//!
//! | line | answer |
//! | --- | --- |
//! | `start` | `ok`, after which the components run |
//! | `status` | one JSON line, see [`ComponentStatus`] |
//! | `signal NAME NUMBER` | `ok` or a sentence |
//! | `dial ADDRESS` | the bytes of a TCP connection opened inside the node |

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// What became of one component.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ComponentStatus {
    /// Its name.
    pub name: String,
    /// Its process id inside the node, while it runs.
    pub pid: Option<i32>,
    /// How often it has been started.
    pub starts: u32,
    /// How it last ended, if it did.
    pub last_exit: Option<String>,
}

/// An order as it comes over the socket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Start,
    Status,
    Signal { component: String, number: i32 },
    Dial(SocketAddr),
}

impl FromStr for Order {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["start"] => Ok(Self::Start),
            ["status"] => Ok(Self::Status),
            ["signal", component, number] => Ok(Self::Signal {
                component: component.to_owned(),
                number: number.parse().map_err(|_| format!("`{number}` is no signal number"))?,
            }),
            ["dial", address] => {
                Ok(Self::Dial(address.parse().map_err(|_| format!("`{address}` is no IP address with a port"))?))
            }
            _ => Err("unknown order".to_owned()),
        }
    }
}

/// Sends one order and returns the one line that answers it.
pub(crate) fn ask(gate: &Path, order: &str) -> Result<String, Error> {
    let fail = |source| Error::Io { action: format!("ask the node at {} to `{order}`", gate.display()), source };
    let mut stream = UnixStream::connect(gate).map_err(fail)?;
    writeln!(stream, "{order}").map_err(fail)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(fail)?;
    Ok(answer.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_or_named_as_unknown() {
        assert_eq!("start".parse(), Ok(Order::Start));
        assert_eq!("signal kubelet 19".parse(), Ok(Order::Signal { component: "kubelet".into(), number: 19 }));
        assert_eq!("dial 10.88.0.1:6443".parse(), Ok(Order::Dial(SocketAddr::from(([10, 88, 0, 1], 6443)))));
        for bad in ["", "stop", "dial example.com:80", "signal kubelet KILL", "start now"] {
            assert!(bad.parse::<Order>().is_err(), "{bad:?} was taken");
        }
    }
}
