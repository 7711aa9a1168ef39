//! Reading a request body under a size, a time and a memory bound.

use std::time::Duration;

use bytes::Buf;
use http_body_util::BodyExt;

use super::budget::{Budget, Exhausted, Share};

/// A whole request body, and the memory it was granted.
#[derive(Debug)]
pub struct Body {
    /// The body.
    pub bytes: Vec<u8>,
    /// What it holds of the budget; whoever builds something from the body takes the memory for that here.
    pub share: Share,
}

/// Why there is no body. None of the messages quotes the request.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BodyError {
    /// Longer than allowed, by its `Content-Length` or by what arrived.
    #[error("the request body is larger than {max_bytes} bytes")]
    TooLarge {
        /// The bound.
        max_bytes: usize,
    },
    /// Not complete in time.
    #[error("the request body did not arrive within {} seconds", .within.as_secs_f32())]
    TooSlow {
        /// The bound.
        within: Duration,
    },
    /// All requests together hold as much as they may.
    #[error("too many large requests are being answered; try again")]
    Exhausted,
    /// The client broke off or sent no valid chunk.
    #[error("the request body ended early")]
    Broken,
}

impl From<Exhausted> for BodyError {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

/// Reads `body` to its end.
///
/// A body that declares more than `max_bytes` is refused before a byte is read; one that declares nothing, as soon as
/// it is over. Memory is taken from `budget` as bytes arrive, so a client that declares much and sends little holds
/// little.
pub async fn read<B>(body: B, max_bytes: usize, within: Duration, budget: &Budget) -> Result<Body, BodyError>
where
    B: hyper::body::Body + Unpin,
{
    let declared = body.size_hint().lower();
    if declared > u64::try_from(max_bytes).unwrap_or(u64::MAX) {
        return Err(BodyError::TooLarge { max_bytes });
    }
    tokio::time::timeout(within, collect(body, max_bytes, budget)).await.unwrap_or(Err(BodyError::TooSlow { within }))
}

async fn collect<B>(mut body: B, max_bytes: usize, budget: &Budget) -> Result<Body, BodyError>
where
    B: hyper::body::Body + Unpin,
{
    let mut bytes = Vec::new();
    let mut share = budget.share();
    while let Some(frame) = body.frame().await {
        // Trailers say nothing to us.
        let Ok(mut data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let length = bytes.len() + data.remaining();
        if length > max_bytes {
            return Err(BodyError::TooLarge { max_bytes });
        }
        if length > bytes.capacity() {
            // Doubling by hand, so that what is taken from the budget is what is really allocated.
            let capacity = length.next_power_of_two().min(max_bytes);
            share.take(capacity - bytes.capacity())?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            bytes.extend_from_slice(chunk);
            let taken = chunk.len();
            data.advance(taken);
        }
    }
    Ok(Body { bytes, share })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use http_body_util::Full;
    use hyper::body::{Frame, SizeHint};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A body in pieces that declares no length, and after them ends or waits for ever.
    struct Pieces {
        left: Vec<Bytes>,
        ends: bool,
    }

    impl hyper::body::Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.left.pop() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    /// Declares a length and must never be read.
    struct Declared(u64);

    impl hyper::body::Body for Declared {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            panic!("a body that is refused by its length was read")
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0)
        }
    }

    fn pieces(count: usize, ends: bool) -> Pieces {
        Pieces { left: vec![Bytes::from_static(&[b'x'; 10]); count], ends }
    }

    #[tokio::test]
    async fn a_body_of_exactly_the_bound_is_read_and_one_byte_more_is_not() {
        let budget = Budget::new(1000);
        let whole = read(pieces(10, true), 100, SECOND, &budget).await.unwrap();
        assert_eq!(whole.bytes, [b'x'; 100]);
        let over = read(pieces(11, true), 100, SECOND, &budget).await;
        assert_eq!(over.unwrap_err(), BodyError::TooLarge { max_bytes: 100 });
    }

    #[tokio::test]
    async fn a_declared_length_over_the_bound_is_refused_unread() {
        let error = read(Declared(101), 100, SECOND, &Budget::new(1000)).await.unwrap_err();
        assert_eq!(error, BodyError::TooLarge { max_bytes: 100 });
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_in_time_is_given_up() {
        let error = read(pieces(1, false), 100, SECOND, &Budget::new(1000)).await.unwrap_err();
        assert_eq!(error, BodyError::TooSlow { within: SECOND });
    }

    #[tokio::test]
    async fn bodies_share_one_budget_and_give_it_back() {
        let budget = Budget::new(150);
        let first = read(Full::new(Bytes::from_static(&[0; 100])), 100, SECOND, &budget).await.unwrap();
        let second = read(pieces(10, true), 100, SECOND, &budget).await;
        assert_eq!(second.unwrap_err(), BodyError::Exhausted);
        drop(first);
        let mut third = read(pieces(10, true), 100, SECOND, &budget).await.unwrap();
        assert_eq!(third.share.take(51), Err(Exhausted));
        assert_eq!(third.share.take(50), Ok(()));
    }
}
