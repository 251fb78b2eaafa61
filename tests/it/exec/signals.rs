//! Signals of `bursar exec`, as a terminal, a supervisor and a shell's job control send them: each reaches
//! the command once, a stop stops both, and the command's end is reported as shells report it.

use std::time::Duration;

use super::{Place, said};
use crate::support::daemon::{Signal, send};
use crate::support::origin::billed;
use crate::support::{Origin, Step, eventually, within};

/// A terminal for a command: types the text of each step in `steps` once the step's prompt was shown,
/// continues a stopped job as `fg` does, and ends as the command did.
const TERMINAL: &str = r#"
import fcntl, os, signal, sys, termios
steps, command = eval(sys.argv[1]), sys.argv[2:]
keeper, terminal = os.openpty()
shell = os.fork()
if shell == 0:
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpgrp())
        for number in range(3):
            os.dup2(terminal, number)
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os._exit(os.waitstatus_to_exitcode(status) & 255)
        os.write(terminal, b"the job has stopped\n")
        os.killpg(job, signal.SIGCONT)
os.close(terminal)
shown = ""
while True:
    try:
        piece = os.read(keeper, 4096)
    except OSError:
        break
    if not piece:
        break
    shown += piece.decode()
    while steps and steps[0][0] in shown:
        os.write(keeper, steps.pop(0)[1])
print(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1]))
"#;

impl Place {
    /// `bursar exec` at a terminal: what was shown, and its exit code.
    async fn at_a_terminal(&self, script: &str, steps: &str) -> (String, Option<i32>) {
        let exec = self.exec(&[], script);
        let exec = exec.as_std();
        let mut terminal = tokio::process::Command::new("python3");
        terminal
            .args(["-c", TERMINAL, steps])
            .arg(exec.get_program());
        terminal.args(exec.get_args()).kill_on_drop(true);
        for (name, value) in exec.get_envs() {
            terminal.env(name, value.unwrap_or_default());
        }
        let ended = tokio::time::timeout(Duration::from_secs(20), terminal.output()).await;
        let output = ended.expect("it ends within 20 s").expect("python3 runs");
        let shown = String::from_utf8_lossy(&output.stdout);
        (format!("{shown}{}", said(&output)), output.status.code())
    }
}

async fn place() -> Place {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    Place::before(&origin.url()).await
}

#[tokio::test]
async fn a_key_at_the_terminal_reaches_the_command_once() {
    let place = place().await;
    for (key, number) in [(r"\x03", 2), (r"\x1c", 3)] {
        // A second signal from one key press would be there before the line is.
        let script = r#"
signals = {signal.SIGINT, signal.SIGQUIT}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
say("ready")
say("got", int(signal.sigwait(signals)), "in front")
sys.stdin.readline()
say("left", len(signal.sigpending() & signals))
sys.exit(44)
"#;
        let steps = format!(r#"[("ready", b"{key}"), ("in front", b"line\n")]"#);
        let (shown, code) = place.at_a_terminal(script, &steps).await;
        assert_eq!(code, Some(44), "{shown}");
        assert!(shown.contains(&format!("got {number} in front")), "{shown}");
        assert!(shown.contains("left 0"), "{shown}");
        assert!(shown.contains("has ended"), "the receipt: {shown}");
    }
    place.daemon.terminate().await;
}

#[tokio::test]
async fn a_stop_at_the_terminal_stops_both_and_the_run_goes_on_after_it() {
    let place = place().await;
    let script = r#"
say("ready")
sys.stdin.readline()
say("status", ask("after the stop")[0])
"#;
    let steps = r#"[("ready", b"\x1a"), ("the job has stopped", b"line\n")]"#;
    let (shown, code) = place.at_a_terminal(script, steps).await;
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("the job has stopped"), "{shown}");
    assert!(shown.contains("status 200"), "{shown}");
    assert!(shown.contains("$0.000007"), "the receipt: {shown}");
    place.daemon.terminate().await;
}

/// The state of a process: `T` is stopped.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim().chars().next()
}

#[tokio::test]
async fn a_stop_that_is_sent_stops_both_and_both_go_on() {
    let place = place().await;
    let script = "say(os.getpid())\nsys.stdin.readline()\nsay('on', ask('x')[0])\n";
    let mut talk = place.talk(&[], script);
    let child: u32 = talk.line().await.parse().expect("a number");
    let exec = talk.exec.id().expect("it runs");
    let are_stopped = async |wanted: bool| {
        eventually("both to stop, or to go on", || async {
            let stopped = [child, exec].map(|pid| state_of(pid) == Some('T'));
            (stopped == [wanted, wanted]).then_some(())
        })
        .await;
    };
    send(&talk.exec, Signal::TSTP);
    are_stopped(true).await;
    send(&talk.exec, Signal::CONT);
    are_stopped(false).await;
    talk.go().await;
    assert_eq!(talk.line().await, "on 200");
    assert_eq!(talk.end().await.0, Some(0));

    // A command that does not stop is not left alone.
    // A handler may come in the middle of a print, which cannot be begun again.
    let script = "signal.signal(signal.SIGTSTP, lambda *_: os.write(1, b'kept on\\n'))\nsay('ready')\n\
                  sys.stdin.readline()\n";
    let mut talk = place.talk(&[], script);
    assert_eq!(talk.line().await, "ready");
    send(&talk.exec, Signal::TSTP);
    assert_eq!(talk.line().await, "kept on");
    talk.go().await;
    assert_eq!(talk.end().await.0, Some(0));
    place.daemon.terminate().await;
}

#[tokio::test]
async fn a_commands_own_signals_are_passed_on() {
    let place = place().await;
    let script = r#"
signals = {signal.SIGUSR1, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
say("ready")
for _ in range(2):
    say("got", int(signal.sigwait(signals)))
"#;
    let mut talk = place.talk(&[], script);
    assert_eq!(talk.line().await, "ready");
    for (sent, number) in [(Signal::USR1, 10), (Signal::USR2, 12)] {
        send(&talk.exec, sent);
        assert_eq!(talk.line().await, format!("got {number}"));
    }
    assert_eq!(talk.end().await.0, Some(0));
    place.daemon.terminate().await;
}

#[tokio::test]
async fn a_command_that_a_signal_ends_has_the_exit_code_that_shells_give_it() {
    let place = place().await;
    for number in [1, 2, 3, 6, 9, 11, 13, 15] {
        let script = format!(
            "if {number} != 9:\n    signal.signal({number}, signal.SIG_DFL)\n\
             os.kill(os.getpid(), {number})\n"
        );
        let output = place.done(&[], &script).await;
        let said = said(&output);
        assert_eq!(output.status.code(), Some(128 + number), "{said}");
        assert!(said.contains("has ended"), "the receipt: {said}");
    }
    place.daemon.terminate().await;
}

/// Processes that a command leaves behind run on, and spend no more.
#[tokio::test]
async fn a_process_that_is_left_behind_has_no_token_any_more() {
    let place = place().await;
    let found = place.folder.path().join("found");
    let script = format!(
        r#"
if os.fork() == 0:
    os.close(1)
    os.close(2)
    while ask("left behind")[0] != 401:
        time.sleep(0.05)
    open({:?}, "w").write("401")
    os._exit(0)
assert ask("mine")[0] == 200
"#,
        found.to_str().expect("a UTF-8 path")
    );
    let output = place.done(&[], &script).await;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let patience = Duration::from_secs(10);
    within(patience, "the token to have ended", || async {
        (std::fs::read_to_string(&found).ok()? == "401").then_some(())
    })
    .await;
    place.daemon.terminate().await;
}
