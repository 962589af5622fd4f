#!/usr/bin/env python3
"""Runs a program in a box of minhost. Standard library only, Linux, Python 3.9 or newer.

    minhost.py [--socket PATH] [--name NAME] [--listen PORT] -- PROGRAM [ARGUMENT...]

Host is a client in 40 lines: take it along. What each method does is documented in
dev.minimal.Host.varlink (varlinkctl introspect, or the method GetInterfaceDescription).
"""
import argparse
import json
import os
import signal
import socket
import sys

INTERFACE = "dev.minimal.Host."


class HostError(Exception):
    """An answer that is an error: name without the interface, and its parameters."""

    def __init__(self, name, parameters):
        super().__init__(f"{parameters.get('message', name)} ({parameters.get('next', '')})")
        self.name, self.parameters = name, parameters


class Host:
    """One connection. What it planned is abandoned when it closes."""

    def __init__(self, path="/run/minhost/helper.sock"):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(path)
        self.rest = b""

    def call(self, method, fds=(), **parameters):
        """Returns the parameters of the reply and its descriptors, which are the caller's to close."""
        message = json.dumps({"method": INTERFACE + method, "parameters": parameters}).encode() + b"\0"
        if fds:  # they travel with the first octet
            socket.send_fds(self.sock, [message[:1]], fds)
            message = message[1:]
        self.sock.sendall(message)
        data, got = self.rest, []
        while b"\0" not in data:
            more, new, _, _ = socket.recv_fds(self.sock, 65536, 4)
            got += new
            if not more:
                raise ConnectionError("minhost closed the connection")
            data += more
        text, _, self.rest = data.partition(b"\0")
        reply = json.loads(text)
        if "error" in reply:
            for fd in got:
                os.close(fd)
            raise HostError(reply["error"].removeprefix(INTERFACE), reply.get("parameters", {}))
        return reply.get("parameters", {}), got


def hold(program, environment):
    """Starts a child that waits for an octet, and then becomes the program. It has no socket but unix ones."""
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(go)
            if os.read(wait, 1) != b"x":
                os._exit(126)  # the runner died
            os.execvpe(program[0], program, environment)
        finally:
            os._exit(127)
    os.close(wait)
    return pid, go


def run(host, name, port, program):
    plan, _ = host.call("Plan", name=name, mode="host", policy={"egress": "deny"}, end_with_connection=True)
    environment = dict(os.environ, MINHOST_ADDRESS=plan.get("address", ""), MINHOST_HOST=plan["host_address"])
    environment.pop("MINHOST_SECRET", None)  # the secret is never in an environment
    pid, go = hold(program, environment)
    try:
        pidfd = os.pidfd_open(pid)  # a number could be another process's by the time it is read
        host.call("Attach", lease=plan["lease"], fds=[pidfd])
        os.close(pidfd)
        if port is not None:
            at, (fd,) = host.call("Listen", lease=plan["lease"], secret=plan["secret"], protocol="tcp", port=port)
            print("listening at", at["address"], at["port"], file=sys.stderr, flush=True)
            listener = socket.socket(fileno=fd)
            listener.settimeout(10)
            client, _ = listener.accept()
            client.sendall(b"hello from the box\n")
            client.close()
        os.write(go, b"x")
        _, status = os.waitpid(pid, 0)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    end, _ = host.call("Teardown", lease=plan["lease"], secret=plan["secret"], kill=True)
    for refusal in end["refusals"]:
        print("refused:", refusal["protocol"], refusal["destination"], refusal.get("port", ""), file=sys.stderr)
    return os.waitstatus_to_exitcode(status)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", default="/run/minhost/helper.sock")
    parser.add_argument("--name", default="example")
    parser.add_argument("--listen", type=int)
    parser.add_argument("program", nargs="+")
    args = parser.parse_args()
    try:
        return run(Host(args.socket), args.name, args.listen, args.program)
    except HostError as error:
        print(f"minhost: {error.name}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
