import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/**
 * Runs statements of clients on a database by JDBC: a connection of the socket is a connection of the database, a line is a
 * request, and every request gets an answer. It ends when its standard input does, so it never outlives the program that started it.
 *
 * <p>Requests: {@code version}, {@code level N} (a constant of java.sql.Connection), {@code begin}, {@code commit},
 * {@code rollback}, {@code sql STATEMENT}. Answers: {@code rows N} and N lines with tabs between columns, {@code count N}, or
 * {@code error SQLSTATE CODE MESSAGE}.
 */
public final class Bridge {
    public static void main(String[] args) throws Exception {
        String url = args[1];
        var listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        listener.bind(UnixDomainSocketAddress.of(args[0]));
        DriverManager.getConnection(url, new Properties()).close();
        System.out.println("ready");
        var accepting = new Thread(() -> accept(listener, url));
        accepting.setDaemon(true);
        accepting.start();
        while (System.in.read() >= 0) {}
        // Open transactions end with the process, as in a crash.
        Runtime.getRuntime().halt(0);
    }

    private static void accept(ServerSocketChannel listener, String url) {
        while (true) {
            try {
                SocketChannel client = listener.accept();
                var serving = new Thread(() -> serve(client, url));
                serving.setDaemon(true);
                serving.start();
            } catch (IOException error) {
                return;
            }
        }
    }

    private static void serve(SocketChannel client, String url) {
        try (client;
                var in = new BufferedReader(Channels.newReader(client, StandardCharsets.UTF_8));
                var out = new BufferedWriter(Channels.newWriter(client, StandardCharsets.UTF_8));
                Connection connection = DriverManager.getConnection(url, new Properties())) {
            connection.setAutoCommit(false);
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.write(answer(connection, line));
                out.flush();
            }
            connection.rollback();
        } catch (IOException | SQLException error) {
            // The client sees that its connection is closed.
        }
    }

    private static String answer(Connection connection, String line) {
        int space = line.indexOf(' ');
        String verb = space < 0 ? line : line.substring(0, space);
        String rest = line.substring(space + 1);
        try {
            switch (verb) {
                case "version":
                    var about = connection.getMetaData();
                    return "rows 1\n" + plain(about.getDatabaseProductName() + " " + about.getDatabaseProductVersion()) + "\n";
                case "level":
                    connection.setTransactionIsolation(Integer.parseInt(rest));
                    return "count 0\n";
                case "begin":
                    return "count 0\n";
                case "commit":
                    connection.commit();
                    return "count 0\n";
                case "rollback":
                    connection.rollback();
                    return "count 0\n";
                default:
                    return run(connection, rest);
            }
        } catch (SQLException error) {
            return "error " + error.getSQLState() + " " + error.getErrorCode() + " " + plain(error.getMessage()) + "\n";
        }
    }

    private static String run(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            if (!statement.execute(sql)) {
                return "count " + statement.getUpdateCount() + "\n";
            }
            var text = new StringBuilder();
            int rows = 0;
            try (ResultSet found = statement.getResultSet()) {
                int columns = found.getMetaData().getColumnCount();
                for (; found.next(); rows++) {
                    for (int column = 1; column <= columns; column++) {
                        text.append(plain(found.getString(column))).append(column < columns ? '\t' : '\n');
                    }
                }
            }
            return "rows " + rows + "\n" + text;
        }
    }

    private static String plain(String text) {
        return text == null ? "" : text.replaceAll("[\\t\\r\\n]+", " ");
    }
}
