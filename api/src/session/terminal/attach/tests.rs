use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{advance, sleep};
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;

/// A terminal that is pumped, its other end, and what is typed into it.
async fn pumped(
    buffer: usize,
) -> (JoinHandle<Result<(), Failed>>, WebSocketStream<DuplexStream>, mpsc::Sender<TerminalInput>) {
    let (ours, its) = duplex(buffer);
    let socket = WebSocketStream::from_raw_socket(ours, Role::Client, None).await;
    let other = WebSocketStream::from_raw_socket(its, Role::Server, None).await;
    let (input, mut typed) = mpsc::channel(1);
    let pumping = tokio::spawn(async move { Terminal { socket, io: Io::Tty }.pump(&mut typed, |_, _| {}).await });
    (pumping, other, input)
}

#[test]
fn pty_01_a_message_says_what_it_belongs_to() {
    let message = |bytes: &[u8]| Message::Binary(Bytes::copy_from_slice(bytes));
    for (bytes, io, expected) in [
        (&b"\x01hi"[..], Io::Tty, Came::Output(Stream::Tty, b"hi")),
        (b"\x01hi", Io::Streams, Came::Output(Stream::Stdout, b"hi")),
        (b"\x02hi", Io::Streams, Came::Output(Stream::Stderr, b"hi")),
        // As each stream begins.
        (b"\x01", Io::Tty, Came::Nothing),
        (b"", Io::Tty, Came::Nothing),
        (b"\x03{\"status\":\"Success\"}", Io::Tty, Came::End(Ok(()))),
        (b"\x03{\"status\":\"Failure\",\"message\":\"gone\"}", Io::Tty, Came::End(Err("gone".to_owned()))),
        (b"\x03no JSON", Io::Tty, Came::End(Err(String::new()))),
        (b"\xff\x01", Io::Tty, Came::Nothing),
    ] {
        assert_eq!(came(&message(bytes), io), expected, "{bytes:?}");
    }
    assert_eq!(came(&Message::text("\u{1}hi"), Io::Tty), Came::Nothing);
}

#[test]
fn pty_03_what_is_typed_and_the_size_go_their_own_channels() {
    assert_eq!(&sent(&TerminalInput::Bytes(Bytes::from_static(b"\x04")))[..], b"\x00\x04");
    let resize = sent(&TerminalInput::Size(TerminalSize { columns: 80, rows: 24 }));
    let (channel, size) = resize.split_first().unwrap();
    assert_eq!(
        (*channel, serde_json::from_slice::<Value>(size).unwrap()),
        (4, serde_json::json!({"Width": 80, "Height": 24}))
    );
}

#[tokio::test(start_paused = true)]
async fn a_terminal_that_is_cut_off_is_given_up_and_a_silent_one_is_not() {
    let (pumping, mut other, _input) = pumped(1024 * 1024).await;
    // As long as it is read, pings are answered.
    let answering = tokio::spawn(async move { while other.next().await.is_some() {} });
    sleep(Duration::from_hours(1)).await;
    assert!(!pumping.is_finished());
    answering.abort();
    let (pumping, _other, input) = pumped(1024 * 1024).await;
    input.send(TerminalInput::Bytes(Bytes::from_static(b"ls\r"))).await.unwrap();
    assert_eq!(pumping.await.unwrap().unwrap_err().class, Class::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_read_is_not_taken_for_one_that_is_cut_off() {
    let (pumping, mut other, input) = pumped(16 * 1024).await;
    // More than there is room for, as the connection has none for the pings behind it either.
    input.send(TerminalInput::Bytes(vec![b'x'; 100 * 1024].into())).await.unwrap();
    sleep(Duration::from_hours(1)).await;
    assert!(!pumping.is_finished());
    // It goes on writing, and reads nothing: that it lives says nothing of what it was sent.
    for _ in 0..3 {
        other.send(Message::Binary(Bytes::from_static(b"\x01x"))).await.unwrap();
        sleep(Duration::from_hours(1)).await;
        assert!(!pumping.is_finished());
    }
    // It reads again, and then it is cut off.
    while !matches!(other.next().await.unwrap().unwrap(), Message::Binary(_)) {}
    while !matches!(other.next().await.unwrap().unwrap(), Message::Ping(_)) {}
    other.send(Message::Binary(Bytes::from_static(b"\x01x"))).await.unwrap();
    advance(SILENCE / 2).await;
    assert!(!pumping.is_finished());
    assert_eq!(pumping.await.unwrap().unwrap_err().class, Class::Unreachable);
}
