//! A panic of one request ends that request alone.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Returns the panic of a future as a value.
///
/// # Cancel safety
/// As safe as the future.
pub(super) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|context| {
        // What panicked is never polled again.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_returned_and_a_value_as_well() {
        assert_eq!(caught(async { 7 }).await.expect("a value"), 7);
        let panicked = caught(async {
            tokio::task::yield_now().await;
            panic!("words")
        });
        let panic: Box<dyn Any + Send> = panicked.await.map(|(): ()| ()).expect_err("a panic");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"words"));
    }
}
