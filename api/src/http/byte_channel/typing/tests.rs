use std::sync::Arc;

use cofferdam_runtime::http::upgrade::Stream;
use futures_util::SinkExt as _;
use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;

/// A client, and the queue of a program that holds eight pieces.
struct Scene {
    client: WebSocketStream<DuplexStream>,
    program: mpsc::Receiver<TerminalInput>,
    refused: Arc<Notify>,
    receiving: JoinHandle<()>,
}

impl Scene {
    async fn new(io: Io) -> Self {
        let (ours, its) = duplex(64 * 1024);
        let socket = WebSocketStream::from_raw_socket(Box::new(ours) as Box<dyn Stream>, Role::Server, None).await;
        let client = WebSocketStream::from_raw_socket(its, Role::Client, None).await;
        let ((_, mut stream), (input, program)) = (socket.split(), mpsc::channel(8));
        let refused = Arc::new(Notify::new());
        let its_refused = Arc::clone(&refused);
        let receiving = tokio::spawn(async move { receive(&mut stream, input, io, &its_refused).await });
        Self { client, program, refused, receiving }
    }

    /// The client sends all of it as fast as it is taken, with a number first.
    async fn types(&mut self, number: u8, length: usize) {
        let mut bytes = vec![b'x'; length];
        bytes[0] = number;
        self.client.send(Message::Binary(bytes.into())).await.unwrap();
    }

    async fn resizes(&mut self, columns: u16) {
        let text = format!(r#"{{"type":"resize","cols":{columns},"rows":24}}"#);
        self.client.send(Message::text(text)).await.unwrap();
    }

    /// What the program takes next: how many bytes, or how many columns.
    async fn takes(&mut self) -> Result<usize, u16> {
        match self.program.recv().await.unwrap() {
            TerminalInput::Bytes(bytes) => Ok(bytes.len()),
            TerminalInput::Size(size) => Err(size.columns),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_text_comes_in_pieces_that_are_whole_together() {
    let mut scene = Scene::new(Io::Tty).await;
    let text: Vec<u8> = (0..300_000_u32).map(|place| u8::try_from(place % 251).unwrap()).collect();
    let (mut client, sent) = (scene.client, Message::Binary(text.clone().into()));
    let sending = tokio::spawn(async move { client.send(sent).await });
    let mut taken = Vec::new();
    while taken.len() < text.len() {
        let Some(TerminalInput::Bytes(piece)) = scene.program.recv().await else { panic!("it ended") };
        assert!(piece.len() <= PIECE);
        taken.extend_from_slice(&piece);
    }
    assert!(taken == text);
    sending.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_floods_a_terminal_that_nobody_reads_is_heard_all_the_same() {
    let mut scene = Scene::new(Io::Tty).await;
    // Ten times what the queue holds.
    for number in 0..100 {
        scene.types(number, PIECE).await;
    }
    scene.resizes(80).await;
    // Until all of it has arrived.
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The program wakes up: what there was room for is there, and the size; what came last is not.
    for _ in 0..8 {
        assert_eq!(scene.takes().await, Ok(PIECE));
    }
    assert_eq!(scene.takes().await, Err(80));
    scene.types(1, 7).await;
    assert_eq!(scene.takes().await, Ok(7), "it is read again");
    for number in 0..100 {
        scene.types(number, PIECE).await;
    }
    scene.client.close(None).await.unwrap();
    scene.receiving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_types_before_the_program_runs_loses_nothing() {
    let mut scene = Scene::new(Io::Tty).await;
    // Key by key, for longer than a program may take no notice; then an image that is pulled for an hour.
    for key in 0..200 {
        scene.types(key, 1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_hours(1)).await;
    let mut taken = Vec::new();
    while taken.len() < 200 {
        let Some(TerminalInput::Bytes(piece)) = scene.program.recv().await else { panic!("it ended") };
        taken.extend_from_slice(&piece);
    }
    assert!(taken.iter().copied().eq(0..200));
}

#[tokio::test(start_paused = true)]
async fn a_piece_keeps_nothing_but_itself() {
    let mut scene = Scene::new(Io::Tty).await;
    scene.client.feed(Message::text("x".repeat(1_000_000))).await.unwrap();
    scene.types(1, 1).await;
    let Some(TerminalInput::Bytes(piece)) = scene.program.recv().await else { panic!("it ended") };
    // Alone in its buffer, it can be had back, and that has no room for more.
    assert!(piece.try_into_mut().is_ok_and(|buffer| buffer.capacity() <= 64));
}

#[tokio::test(start_paused = true)]
async fn who_writes_to_a_pipe_waits_for_its_reader_and_nothing_is_lost() {
    let Scene { mut client, mut program, .. } = Scene::new(Io::Streams).await;
    let sending = tokio::spawn(async move {
        for number in 0..100 {
            client.send(Message::Binary(vec![number; PIECE].into())).await.unwrap();
        }
        client
    });
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!sending.is_finished(), "it waits");
    for number in 0..100 {
        assert_eq!(program.recv().await, Some(TerminalInput::Bytes(vec![number; PIECE].into())));
    }
    sending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn pty_04_what_has_no_terminal_has_no_size() {
    let mut scene = Scene::new(Io::Streams).await;
    scene.resizes(80).await;
    scene.refused.notified().await;
    scene.types(1, 7).await;
    assert_eq!(scene.takes().await, Ok(7));
}
