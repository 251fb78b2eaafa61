"""Runs a program in a network of its own, in which one address leads to bursar and nothing else leads anywhere.

    unshare --net python3 door.py SOCKET PORT CUT -- COMMAND…

Why: a client that asked its maker's servers, or sent them the token, would be seen to fail here.
The address is 127.0.0.1:PORT, and bursar's Unix socket SOCKET is behind it; a path leads out of a network namespace.
CUT names the event before which the first stream that holds one is cut off, once; `-` for never. A cut leaves the file
SOCKET.cut.
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

    def __init__(self, event, note):
        self.event = event
        self.note = note

    def place(self, seen):
        """Where to cut what a connection has carried."""
        if self.event is None or b"text/event-stream" not in seen:
            return None
        place = seen.find(f"event: {self.event}\n".encode())
        return None if place < 0 else place

    def made(self):
        self.event = None
        open(self.note, "w").close()


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
    path, port, event, _, *command = sys.argv[1:]
    loopback_up()
    cut = Cut(None if event == "-" else event, f"{path}.cut")
    listener = socket.create_server(("127.0.0.1", int(port)))

    def accept():
        while True:
            program, _ = listener.accept()
            threading.Thread(target=serve, args=(program, path, cut), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
