// Webhook.java
import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Webhook {
    static final List<String> SECRETS = List.of(System.getenv("SWITCHBOARD_WEBHOOKS_SECRETS").split(","));
    static final Set<Object> SEEN = new HashSet<>(); // in production a table of your database, written together with the work

    /** Reports whether the body was signed with one of the secrets in the last five minutes. */
    static boolean verify(List<String> secrets, String timestamp, String signatures, byte[] body) throws GeneralSecurityException {
        if (!timestamp.matches("[0-9]{1,12}") || Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > 300) {
            return false;
        }
        boolean valid = false;
        for (String secret : secrets) {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"));
            mac.update((timestamp + ".").getBytes(UTF_8));
            String want = "v1=" + HexFormat.of().formatHex(mac.doFinal(body));
            for (String given : signatures.split(",")) {
                valid |= MessageDigest.isEqual(want.getBytes(ISO_8859_1), given.trim().getBytes(ISO_8859_1));
            }
        }
        return valid;
    }

    static void handle(Map<?, ?> event) {
        System.out.println(event.get("type") + " " + (event.containsKey("user") ? event.get("user") : event.get("channel")));
    }

    /** Handles the events of a POST, and returns the status of the answer. */
    static synchronized int receive(HttpExchange exchange) throws IOException, GeneralSecurityException {
        byte[] body = exchange.getRequestBody().readNBytes(2 << 20);
        String timestamp = exchange.getRequestHeaders().getFirst("Switchboard-Timestamp");
        String signatures = exchange.getRequestHeaders().getFirst("Switchboard-Signature");
        if (timestamp == null || signatures == null || !verify(SECRETS, timestamp, signatures, body)) {
            return 401;
        }
        Map<?, ?> posted = (Map<?, ?>) read(TOKEN.matcher(new String(body, UTF_8)));
        for (Object each : (List<?>) posted.get("events")) {
            Map<?, ?> event = (Map<?, ?>) each;
            if (!SEEN.contains(event.get("id"))) { // events may arrive again
                handle(event);
                SEEN.add(event.get("id"));
            }
        }
        return 204;
    }

    static final Pattern TOKEN = Pattern.compile("[\\[\\]{}]|\"[^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+\"|[^\\s,:\\[\\]{}\"]+");
    static final Pattern ESCAPE = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))");
    static final Object END = new Object();

    /**
     * Reads JSON that the broker has written: objects, arrays and strings. Numbers, true, false and null stay text. Your
     * JSON library does that, too.
     */
    static Object read(Matcher token) {
        token.find();
        String text = token.group();
        switch (text.charAt(0)) {
            case '{':
                Map<Object, Object> object = new HashMap<>();
                for (Object name = read(token); name != END; name = read(token)) {
                    object.put(name, read(token));
                }
                return object;
            case '[':
                List<Object> array = new ArrayList<>();
                for (Object item = read(token); item != END; item = read(token)) {
                    array.add(item);
                }
                return array;
            case '}', ']':
                return END;
            case '"':
                return ESCAPE.matcher(text.substring(1, text.length() - 1)).replaceAll(Webhook::unescaped);
            default:
                return text;
        }
    }

    static String unescaped(MatchResult escape) {
        String hex = escape.group(1);
        char c = hex != null ? (char) Integer.parseInt(hex, 16) : escape.group(2).charAt(0);
        int control = hex != null ? -1 : "bfnrt".indexOf(c);
        return Matcher.quoteReplacement(String.valueOf(control < 0 ? c : "\b\f\n\r\t".charAt(control)));
    }

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "9000"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", exchange -> {
            int status = 500; // the events come again
            try {
                status = receive(exchange);
            } catch (GeneralSecurityException | RuntimeException e) {
                e.printStackTrace();
            }
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
    }
}
