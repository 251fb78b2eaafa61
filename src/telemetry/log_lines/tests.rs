use super::*;

/// What was written so far, write by write.
#[derive(Clone, Default)]
struct WrittenLines(Arc<Mutex<Vec<String>>>);

impl Write for WrittenLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.0.lock().push(text);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_that_is_no_access_line_is_written_at_once_behind_all_before_it() {
    let written = WrittenLines::default();
    let lines = LogLines::to(written.clone()).unwrap();

    lines.gather(b"first\n");
    lines.gather(b"second\n");
    lines.write(b"error\n");

    assert_eq!(written.0.lock().concat(), "first\nsecond\nerror\n");
}

#[test]
fn access_lines_are_written_without_another_line() {
    let written = WrittenLines::default();
    let lines = LogLines::to(written.clone()).unwrap();

    for round in 0..100 {
        // What is written at once may take away what its thread was woken for.
        lines.gather(b"line\n");
        lines.write(b"");
        lines.gather(b"line\n");
        while written.0.lock().concat().len() < (round + 1) * 10 {
            thread::yield_now();
        }
    }

    assert_eq!(written.0.lock().concat(), "line\n".repeat(200));
}

#[test]
fn what_waits_is_bounded_and_nothing_of_it_is_lost() {
    let written = WrittenLines::default();
    let lines = LogLines::to(written.clone()).unwrap();
    let line = vec![b'x'; 1000];

    for _ in 0..1000 {
        lines.gather(&line);
        assert!(lines.0.waiting.lock().lines.len() <= WAITING_BYTES_MAX);
    }
    lines.flush();

    assert_eq!(written.0.lock().concat().len(), 1_000_000);
}
