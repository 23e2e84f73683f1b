"""Runs statements of clients on a database by a Python module: a connection of the socket is a connection of the database, a line
is a request, and every request gets an answer. It ends when its standard input does, so it never outlives the program that
started it.

Requests: version, begin STATEMENT, commit, rollback, sql STATEMENT. Answers: "rows N" and N lines with tabs between columns,
"count N", or "error STATE CODE MESSAGE", where STATE is the name of the exception.
"""

import os
import socket
import sys
import threading

place, module, path, *setup = sys.argv[1:]

if module == "duckdb":
    import duckdb

    # Connections of one process share one database; each cursor is a connection of its own.
    shared = duckdb.connect(path)

    def connect():
        return shared.cursor()

    def version():
        return "DuckDB " + duckdb.__version__

elif module == "turso":
    import importlib.metadata

    import turso

    def connect():
        return turso.connect(path, isolation_level=None)

    def version():
        return "Turso " + importlib.metadata.version("pyturso")

else:
    sys.exit("bridge: there is no module " + module)


def plain(value):
    return "" if value is None else " ".join(str(value).split())


def run(cursor, sql):
    cursor.execute(sql)
    if cursor.description is None:
        return "count %d\n" % max(cursor.rowcount, 0)
    rows = cursor.fetchall()
    if cursor.description[0][0] == "Count":
        # DuckDB's way to say how many rows were changed.
        return "count %d\n" % (rows[0][0] if rows else 0)
    lines = ["\t".join(plain(column) for column in row) + "\n" for row in rows]
    return "rows %d\n" % len(rows) + "".join(lines)


def answer(cursor, line):
    verb, _, rest = line.partition(" ")
    try:
        if verb == "version":
            return "rows 1\n%s\n" % plain(version())
        return run(cursor, rest if verb in ("sql", "begin") else verb.upper())
    except Exception as error:
        return "error %s 0 %s\n" % (type(error).__name__, plain(error))


def serve(client):
    with client, client.makefile("rw", encoding="utf-8", newline="\n") as lines:
        connection = connect()
        cursor = connection if module == "duckdb" else connection.cursor()
        for statement in setup:
            run(cursor, statement)
        for line in lines:
            lines.write(answer(cursor, line.rstrip("\n")))
            lines.flush()


def accept(listener):
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


listener = socket.socket(socket.AF_UNIX)
listener.bind(place)
listener.listen(128)
# An error of the set-up is seen by the program that started this, on standard error.
first = connect()
for statement in setup:
    run(first if module == "duckdb" else first.cursor(), statement)
first.close()
print("ready", flush=True)
threading.Thread(target=accept, args=(listener,), daemon=True).start()
while sys.stdin.buffer.read(1):
    pass
# Open transactions end with the process, as in a crash.
os._exit(0)
