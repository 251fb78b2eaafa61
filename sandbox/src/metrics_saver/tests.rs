use super::*;
use crate::Options;

#[tokio::test]
async fn a_saver_that_is_told_to_stop_while_it_saves_has_let_go_of_the_state_when_it_ends() {
    for _ in 0..5 {
        let state = State::new(&Options::default()).unwrap();
        let saver = tokio::spawn(keep_saving(Arc::clone(&state)));
        state.books.unsaved.notify_one();
        tokio::task::yield_now().await;
        state.clock.advance(SAVE_AFTER);
        // Until it has handed its work to a thread, which may be done already.
        for _ in 0..100 {
            if Arc::strong_count(&state) == 3 {
                break;
            }
            tokio::task::yield_now().await;
        }

        state.closing.cancel();
        saver.await.unwrap();

        assert_eq!(Arc::strong_count(&state), 1);
    }
}
