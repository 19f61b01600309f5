//! Ctrl-C and its kin: once to stop, twice to hurry, three times to give up waiting.

use redrive::CancellationToken;
use tokio::signal::unix::{SignalKind, signal};

/// Cancels `stop` and the token it gives back on the first signal and `hurry` on the second; the third ends the process. Nothing is lost by any of
/// them: what was leased is returned, or taken back by the next worker.
pub fn watch(
    stop: CancellationToken,
    hurry: CancellationToken,
    say: impl Fn(&str) + Send + 'static,
) -> CancellationToken {
    let signalled = CancellationToken::new();
    let given = signalled.clone();
    // Here, not in the task: a signal that comes before that is first run ends nobody without a word.
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return given;
    };
    tokio::spawn(async move {
        let mut times = 0;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            times += 1;
            match times {
                1 => {
                    say("stopping: what runs may finish; again to return it at once");
                    signalled.cancel();
                    stop.cancel();
                }
                2 => hurry.cancel(),
                _ => std::process::exit(130),
            }
        }
    });
    given
}
