"""Runs a program in a network of its own, in which one address leads to bursar and nothing else leads anywhere.

    unshare --net python3 door.py SOCKET PORT CUT -- COMMAND…

Why: a client that asked its maker's servers, or sent them the token, would be seen to fail here.
The address is 127.0.0.1:PORT, and bursar's Unix socket SOCKET is behind it; a path leads out of a network namespace.
What the command says is kept in the file SOCKET.said, in the order in which it came over all connections.
CUT says where a connection is cut off. Each time leaves a byte in the file SOCKET.cut:

* `-`: never.
* `EVENT`, `EVENT#2`: before an event of this name in the first stream that has it; before the second one.
* `waiting`, `waiting:WORD`: while the first POST waits for its answer; the first that has this word.
* `answer`: behind the head of the first answer that says that it is longer than a socket holds.

A number behind `*` says how many connections are cut there, one after the other.

Promise: the exit code is the command's.
"""

import fcntl
import re
import socket
import struct
import subprocess
import sys
import threading
import time

# What bursar needs at most to send on what it was sent.
SENT_ON_S = 0.3
# Of six digits or more: a socket holds some 200 kB.
LONG_ANSWER = re.compile(rb"\r\ncontent-length: *[0-9]{6,}\r\n", re.IGNORECASE)
SIOCSIFFLAGS = 0x8914
IFF_UP_AND_RUNNING = 0x41


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP_AND_RUNNING))


class Cut:
    """The cuts of one run; it is armed until the last was made."""

    def __init__(self, place, path):
        place, _, times = place.partition("*")
        self.left = int(times or 1)
        place, _, self.word = place.partition(":")
        self.place, _, number = place.partition("#")
        self.number = int(number or 1)
        self.note = f"{path}.cut"
        self.words = f"{path}.said"

    def hears(self, data):
        with open(self.words, "ab") as words:
            words.write(data)

    def in_answer(self, seen):
        """Where to cut what bursar said on a connection."""
        if self.place == "answer":
            head = LONG_ANSWER.search(seen)
            return head and head.end()
        if self.place in ("-", "waiting") or b"text/event-stream" not in seen:
            return None
        event = f"event: {self.place}\n".encode()
        places = [found.start() for found in re.finditer(re.escape(event), seen)]
        return places[self.number - 1] if len(places) >= self.number else None

    def behind_request(self, seen):
        """Whether to cut behind what the program said on a connection."""
        return self.place == "waiting" and self.word.encode() in seen and posted(seen)

    def made(self):
        self.left -= 1
        if not self.left:
            self.place = "-"
        with open(self.note, "a") as note:
            note.write("x")


def posted(seen):
    """Whether a POST has come to its end."""
    while True:
        head, end, body = seen.partition(b"\r\n\r\n")
        if not end:
            return False
        lines = [line.replace(b" ", b"") for line in head.lower().split(b"\r\n")]
        if b"transfer-encoding:chunked" in lines:
            length = body.find(b"\r\n0\r\n\r\n") + 7
            whole = length > 6
        else:
            length = sum(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
            whole = len(body) >= length
        if not whole or head.startswith(b"POST "):
            return whole
        seen = body[length:]


def questions(program, bursar, cut):
    """What the program says, up to the cut."""
    seen = b""
    try:
        while data := program.recv(65536):
            cut.hears(data)
            bursar.sendall(data)
            if cut.place == "waiting":
                seen += data
                if cut.behind_request(seen):
                    cut.made()
                    time.sleep(SENT_ON_S)
                    close(program, bursar)
                    return
        bursar.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def close(*ends):
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def answers(bursar, program, cut):
    """What bursar says, up to the cut."""
    seen, sent = b"", 0
    try:
        while data := bursar.recv(65536):
            seen += data
            end = cut.in_answer(seen)
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
        asking = threading.Thread(target=questions, args=(program, bursar, cut), daemon=True)
        asking.start()
        answers(bursar, program, cut)
        close(program, bursar)


def main():
    path, port, place, _, *command = sys.argv[1:]
    loopback_up()
    cut = Cut(place, path)
    listener = socket.create_server(("127.0.0.1", int(port)))

    def accept():
        while True:
            program, _ = listener.accept()
            threading.Thread(target=serve, args=(program, path, cut), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
