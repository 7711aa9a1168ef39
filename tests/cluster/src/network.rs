//! Addresses, and the wires between nodes.
//!
//! Every cluster has a network of its own, so every cluster uses the same numbers. Nothing leads out of it.
//!
//! | range | what |
//! | --- | --- |
//! | 10.88.0.N | node N; node 1 is the bridge `wire` that the others plug into |
//! | 10.89.0.0/24 | addresses of Services of type LoadBalancer |
//! | 10.96.0.0/16 | Services; .1 is `kubernetes`, .10 is DNS |
//! | 10.244.N.0/24 | pods of node N |

use std::fmt::Write as _;

use crate::error::Error;
use crate::inside::Inside;

pub(crate) const SERVICES: &str = "10.96.0.0/16";
pub(crate) const KUBERNETES_SERVICE: &str = "10.96.0.1";
pub(crate) const DNS_SERVICE: &str = "10.96.0.10";
pub(crate) const PODS: &str = "10.244.0.0/16";
/// The first three numbers of the load balancers' addresses.
pub(crate) const LOAD_BALANCERS: [u8; 3] = [10, 89, 0];

/// The address of node `index`, which counts from 1.
pub(crate) fn address(index: u8) -> String {
    format!("10.88.0.{index}")
}

/// The range of the pods of node `index`.
pub(crate) fn pods(index: u8) -> String {
    format!("10.244.{index}.0/24")
}

/// Gives the first node its bridge and its routes.
pub(crate) fn first(node: Inside) -> Result<(), Error> {
    node.script(&format!("ip link add wire type bridge\n{}", common(1)))
}

/// Plugs node `index` into the first node's bridge, with routes between it and `others`.
pub(crate) fn join(first: Inside, node: Inside, index: u8, others: &[(u8, Inside)]) -> Result<(), Error> {
    // Left over from a node of that number that was lost: its end went with it, and so did ours, but maybe not yet.
    first.script(&format!(
        "ip link delete to-{index} 2> /dev/null || true\n\
         ip link add to-{index} type veth peer name wire netns {}\n\
         ip link set to-{index} master wire up\n",
        node.pid()
    ))?;
    let mut script = common(index);
    for (other, _) in others {
        let _ = writeln!(script, "ip route replace {} via {}", pods(*other), address(*other));
    }
    node.script(&script)?;
    for (_, other) in others {
        other.script(&format!("ip route replace {} via {}\n", pods(index), address(index)))?;
    }
    Ok(())
}

fn common(index: u8) -> String {
    // The routes let an address of a Service pass the first look-up; kube-proxy rewrites it after that.
    let [a, b, c] = LOAD_BALANCERS;
    format!(
        "ip link set lo up\n\
         ip addr add {}/24 dev wire\n\
         ip link set wire up\n\
         ip route add {SERVICES} dev wire\n\
         ip route add {a}.{b}.{c}.0/24 dev wire\n\
         echo 1 > /proc/sys/net/ipv4/ip_forward\n",
        address(index)
    )
}
