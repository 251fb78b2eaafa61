use super::*;
use crate::{Options, State};

#[tokio::test]
async fn a_saver_that_is_stopped_while_it_saves_holds_nothing_when_it_has_ended() {
    for _ in 0..5 {
        let state = State::new(&Options::default()).unwrap();
        let holders = Arc::strong_count(&state.endpoints);
        let saver = tokio::spawn(state.metrics_saver().run(state.closing.clone()));
        state.books.unsaved.notify_one();
        tokio::task::yield_now().await;
        state.clock.advance(SAVE_AFTER);
        // Until it has handed its work to a thread, which may be done already.
        for _ in 0..100 {
            if Arc::strong_count(&state.endpoints) == holders + 2 {
                break;
            }
            tokio::task::yield_now().await;
        }

        state.closing.cancel();
        saver.await.unwrap();

        assert_eq!(Arc::strong_count(&state.endpoints), holders);
    }
}
