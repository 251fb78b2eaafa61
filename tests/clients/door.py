"""Runs a program in a network of its own, in which one address leads to bursar and nothing else leads anywhere.

    unshare --net python3 door.py SOCKET PORT CUT -- COMMAND…

Why: a client that asked its maker's servers, or sent them the token, would be seen to fail here.
The address is 127.0.0.1:PORT, and bursar's Unix socket SOCKET is behind it; a path leads out of a network namespace.
CUT is the number of events after which the first stream of events is cut off, once; `-` for never. A cut is written to
the file SOCKET.cut, with how many events had passed.
Promise: the exit code is the command's.
"""

import fcntl
import socket
import struct
import subprocess
import sys
import threading

SIOCSIFFLAGS = 0x8914
IFF_UP_AND_RUNNING = 0x41


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_AND_RUNNING))


class Cut:
    """The one cut; it is armed until it was made."""

    def __init__(self, after, note):
        self.after = after
        self.note = note

    def place(self, seen):
        """Where to cut what a connection has carried, once something beyond that place is there."""
        if self.after is None or (head := seen.find(b"text/event-stream")) < 0:
            return None
        end = seen.find(b"\r\n\r\n", head) + 4
        if end < 4:
            return None
        for _ in range(self.after):
            end = seen.find(b"\n\n", end) + 2
            if end < 2:
                return None
        return end if len(seen) > end else None

    def made(self):
        with open(self.note, "w") as note:
            note.write(str(self.after))
        self.after = None


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def answers(bursar, program, cut):
    """What bursar says, up to the cut."""
    seen, sent = b"", 0
    try:
        while data := bursar.recv(65536):
            seen += data
            end = cut.place(seen)
            program.sendall(seen[sent:end])
            if end is not None:
                return cut.made()
            sent = len(seen)
        program.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(program, path, cut):
    with program, socket.socket(socket.AF_UNIX) as bursar:
        bursar.connect(path)
        asking = threading.Thread(target=pump, args=(program, bursar), daemon=True)
        asking.start()
        answers(bursar, program, cut)
        for end in (program, bursar):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def main():
    path, port, after, _, *command = sys.argv[1:]
    loopback_up()
    cut = Cut(None if after == "-" else int(after), f"{path}.cut")
    listener = socket.create_server(("127.0.0.1", int(port)))

    def accept():
        while True:
            program, _ = listener.accept()
            threading.Thread(target=serve, args=(program, path, cut), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
