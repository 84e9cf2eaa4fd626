#!/usr/bin/env python3
"""Records the replies of a real redis-server into the case files.

    python3 tests/cases/record.py tests/cases/redis/*.toml

Every step of every [[case]] is sent to a fresh connection of an empty server, once in RESP2 and
once in RESP3, and its reply is written back; the same for every [[raw]] request. Write a new case
with empty replies, run this, and read what came out. Needs redis-server 7.0.15 and Python 3.11.

What a reply may begin with is kept: "(any)" is not compared, "(unordered)" is compared without
regard to the order of its elements, "(none)" means that nothing is answered. "(closed)" at the end
says that the server closed the connection.
"""

import re
import socket
import subprocess
import sys
import tempfile
import time
import tomllib

END = "(closed)"


def main():
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        server = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1"],
            cwd=directory, stdout=subprocess.DEVNULL,
        )
        try:
            wait_for(port)
            for path in sys.argv[1:]:
                record_file(path, port)
        finally:
            server.kill()
            server.wait()


def record_file(path, port):
    with open(path, "rb") as file:
        text = file.read().decode()
    header = "".join(line + "\n" for line in text.split("\n") if line.startswith("#"))
    content = tomllib.loads(text)
    out = [header]
    for case in content.get("case", []):
        replies = {version: run_case(case["steps"], version, port) for version in (2, 3)}
        out.append(f"\n[[case]]\nname = {quote(case['name'])}\nsteps = [\n")
        for step, resp2, resp3 in zip(case["steps"], replies[2], replies[3]):
            row = [step[0], resp2] + ([resp3] if resp3 != resp2 else [])
            out.append("  [" + ", ".join(quote(cell) for cell in row) + "],\n")
        out.append("]\n")
    for raw in content.get("raw", []):
        reply = run_raw(raw["send"], port)
        out.append(f"\n[[raw]]\nname = {quote(raw['name'])}\n")
        out.append(f"send = {quote(raw['send'])}\nreply = {quote(reply)}\n")
    with open(path, "w", encoding="ascii") as file:
        file.write("".join(out))


def run_case(steps, version, port):
    connections = {}

    def connection(number):
        if number not in connections:
            connections[number] = Connection(port)
            if version == 3:
                connections[number].ask([b"HELLO", b"3"])
        return connections[number]

    connection(1).ask([b"FLUSHALL"])
    connection(1).ask([b"CONFIG", b"RESETSTAT"])
    replies = []
    for step in steps:
        command, known = step[0], step[1]
        if command.startswith("!sleep "):
            time.sleep(int(command.split()[1]) / 1000)
            replies.append("")
            continue
        number = 1
        if match := re.match(r"@(\d) (.*)", command):
            number, command = int(match[1]), match[2]
        if known == "(none)":
            connection(number).send(words(command))
            replies.append(known)
            continue
        reply = connection(number).ask(words(command))
        for marker in ("(any)", "(unordered)"):
            if known.startswith(marker):
                reply = marker if marker == "(any)" else marker + reply
        replies.append(reply)
    return replies


def run_raw(send, port):
    connection = Connection(port)
    connection.socket.sendall(expand(send))
    connection.socket.settimeout(0.3)
    reply = b""
    try:
        while chunk := connection.socket.recv(65536):
            reply += chunk
        return escape(reply) + END
    except TimeoutError:
        return escape(reply)
    except ConnectionResetError:
        return escape(reply) + END


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(5)
        self.input = b""

    def send(self, arguments):
        request = b"*%d\r\n" % len(arguments)
        for argument in arguments:
            request += b"$%d\r\n%s\r\n" % (len(argument), argument)
        self.socket.sendall(request)

    def ask(self, arguments):
        self.send(arguments)
        try:
            reply = self.reply()
        except EOFError:
            return END
        if arguments[0].upper() == b"QUIT" or self.is_closed():
            return escape(reply) + END
        return escape(reply)

    def is_closed(self):
        self.socket.settimeout(0.005)
        try:
            return self.socket.recv(1, socket.MSG_PEEK) == b""
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(5)

    def reply(self):
        line = self.line()
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=!" and rest != b"-1":
            return line + self.take(int(rest) + 2)
        count = {b"*": 1, b"~": 1, b">": 1, b"%": 2}.get(kind, 0)
        if count and rest != b"-1":
            return line + b"".join(self.reply() for _ in range(int(rest) * count))
        return line

    def line(self):
        while b"\r\n" not in self.input:
            self.fill()
        return self.take(self.input.index(b"\r\n") + 2)

    def take(self, count):
        while len(self.input) < count:
            self.fill()
        taken, self.input = self.input[:count], self.input[count:]
        return taken

    def fill(self):
        chunk = self.socket.recv(65536)
        if not chunk:
            raise EOFError
        self.input += chunk


def words(command):
    """Words as redis-cli reads them: double quotes, with backslash escapes inside."""
    found = []
    for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', command):
        found.append(plain.encode() if plain else unescape(quoted))
    return found


def expand(text):
    """{x*n} stands for n times x."""
    return unescape(re.sub(r"\{(.+?)\*(\d+)\}", lambda m: m[1] * int(m[2]), text))


def unescape(text):
    def one(match):
        code = match[1]
        if code.startswith("x"):
            return chr(int(code[1:], 16))
        return {"r": "\r", "n": "\n", "t": "\t"}.get(code, code)

    return re.sub(r"\\(x[0-9a-f]{2}|.)", one, text, flags=re.DOTALL).encode("latin-1")


def escape(data):
    def one(byte):
        special = {0x0D: "\\r", 0x0A: "\\n", 0x5C: "\\\\"}
        return special.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}")

    return "".join(one(byte) for byte in data)


def quote(text):
    return f"'''{text}'''" if "'" in text else f"'{text}'"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(100):
        try:
            Connection(port).ask([b"PING"])
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("redis-server did not start")


if __name__ == "__main__":
    main()
