//! The server that the webhook is held against: the same HTTP, TLS and runtime, and no work. It reads every body to its
//! end and answers it with the bytes that the webhook would answer the fixture with.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::Parser;
use cofferdam_certs::{Files, Reloader, server_config};
use cofferdam_runtime::http::{Limits, Reply, reply};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::fixture;

/// As in [`cofferdam_runtime::http`].
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// What the bare server is told.
#[derive(Debug, Parser)]
#[command(version, about = "Answers every request with the same bytes, over TLS on a free port of the loopback")]
pub struct Arguments {
    /// The serving certificate with its chain, PEM.
    #[arg(long)]
    tls_cert: PathBuf,
    /// The certificate's private key, PEM.
    #[arg(long)]
    tls_key: PathBuf,
}

/// Serves until it is killed.
///
/// # Errors
/// When it cannot listen.
pub fn run(arguments: Arguments) -> Result<()> {
    let answer = Bytes::from(fixture::decision(&fixture::body())?.answer.to_body());
    let files = Files { chain: arguments.tls_cert, key: arguments.tls_key };
    let certificate = Reloader::load(files, Vec::new(), SystemTime::now())?.current();
    let tls = TlsAcceptor::from(Arc::new(server_config(certificate, &["http/1.1"])?));
    tokio::runtime::Runtime::new()?.block_on(serve(tls, answer))
}

async fn serve(tls: TlsAcceptor, answer: Bytes) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    eprintln!("{}", serde_json::json!({"message": "listening", "address": address}));
    loop {
        let (stream, _) = listener.accept().await?;
        let (tls, answer) = (tls.clone(), answer.clone());
        tokio::spawn(async move {
            // The load is measured by what it gets back: a connection that ends early ends the measurement.
            let _ = connection(&tls, stream, &answer).await;
        });
    }
}

async fn connection(tls: &TlsAcceptor, stream: TcpStream, answer: &Bytes) -> Result<()> {
    stream.set_nodelay(true)?;
    let stream = tls.accept(stream).await?;
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Limits::default().idle)
        .max_buf_size(READ_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service_fn(|request| reply_to(request, answer)))
        .await
        .context("a connection ended badly")
}

async fn reply_to(request: Request<Incoming>, answer: &Bytes) -> Result<Reply, Infallible> {
    Ok(match request.into_body().collect().await {
        Ok(_) => reply::bytes(StatusCode::OK, "application/json", answer.clone()),
        Err(_) => reply::text(StatusCode::BAD_REQUEST, "the request body ended early"),
    })
}
