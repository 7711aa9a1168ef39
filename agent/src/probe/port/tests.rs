use tokio::io::AsyncReadExt;

use super::*;
use crate::probe::testing::{closed, listen};

#[tokio::test]
async fn what_listens_is_open_and_sees_an_ordinary_end() {
    let (listener, address) = listen().await;
    let (dial, accepted) = tokio::join!(dial(address, WITHIN), listener.accept());
    assert_eq!(dial, Dial::Open);
    let mut rest = Vec::new();
    // A reset would be an error here.
    assert_eq!(accepted.unwrap().0.read_to_end(&mut rest).await.unwrap(), 0);
}

#[tokio::test]
async fn what_listens_and_never_accepts_is_open() {
    let (_listener, address) = listen().await;
    assert_eq!(dial(address, WITHIN).await, Dial::Open);
}

#[tokio::test]
async fn where_nothing_listens_it_is_refused() {
    assert_eq!(dial(closed(), WITHIN).await, Dial::Closed(Closed::Refused));
}

#[tokio::test]
async fn b153_nobody_who_answers_is_told_apart_from_a_refusal() {
    // With no place left in its queue of connections, a listener drops what comes in, as a firewall does.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        held.push(stream.unwrap());
    }
    assert_eq!(dial(address, Duration::from_millis(200)).await, Dial::Closed(Closed::TimedOut));
}

#[tokio::test]
async fn b151_an_address_of_the_sixth_version_is_dialled() {
    let Ok(listener) = tokio::net::TcpListener::bind("[::1]:0").await else {
        return; // a machine without IPv6
    };
    assert_eq!(dial(listener.local_addr().unwrap(), WITHIN).await, Dial::Open);
}

#[test]
fn errors_are_the_other_ends_or_ours() {
    let of = |code| of_error(&io::Error::from_raw_os_error(code));
    assert_eq!(of(111), Dial::Closed(Closed::Refused));
    assert_eq!(of(104), Dial::Closed(Closed::Refused));
    assert_eq!(of(110), Dial::Closed(Closed::TimedOut));
    for unreachable in [101, 113, 13, 1] {
        assert_eq!(of(unreachable), Dial::Closed(Closed::Unreachable), "{unreachable}");
    }
    for ours in [23, 24, 12, 105, 99, 98] {
        assert_eq!(of(ours), Dial::NotMade, "{ours}");
    }
}
