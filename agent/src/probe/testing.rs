//! For tests: servers on loopback that answer what they are told to.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A listener on a free port of loopback.
pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A port of loopback where nothing listens. It is bound for as long as the process lives, so that no other test gets it;
/// who binds it by name may listen there.
pub(crate) fn closed() -> SocketAddr {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    std::mem::forget(socket);
    address
}

/// Answers each request with what `answer` makes of its head, and hangs up.
pub(crate) async fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> SocketAddr {
    serve_with(answer, None).await
}

/// The same by TLS.
pub(crate) async fn serve_tls(
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    config: rustls::ServerConfig,
) -> SocketAddr {
    serve_with(answer, Some(TlsAcceptor::from(Arc::new(config)))).await
}

/// The answer of a web server.
pub(crate) fn answer(status: u16, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Some\r\ncontent-length: 0\r\n{headers}\r\n").into_bytes()
}

/// The value of a request's header.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

async fn serve_with(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static, tls: Option<TlsAcceptor>) -> SocketAddr {
    let (listener, address) = listen().await;
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(accepted(stream, tls.clone(), Arc::clone(&answer)));
        }
    });
    address
}

async fn accepted(stream: TcpStream, tls: Option<TlsAcceptor>, answer: Arc<impl Fn(&str) -> Vec<u8>>) {
    match tls {
        None => respond(stream, &*answer).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                respond(stream, &*answer).await;
            }
        }
    }
}

async fn respond(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &impl Fn(&str) -> Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Who hangs up before the end of a head asked nothing.
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let _ = stream.write_all(&answer(std::str::from_utf8(&head).unwrap())).await;
    let _ = stream.shutdown().await;
}
