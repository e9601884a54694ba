// Push.java
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.UUID;

public class Push {
    static final URI URL = URI.create(System.getenv().getOrDefault("SWITCHBOARD_URL", "http://127.0.0.1:8080") + "/v1/push");
    static final String KEY = System.getenv().getOrDefault("SWITCHBOARD_KEY", "");
    static final HttpClient CLIENT = HttpClient.newHttpClient();

    /** Pushes JSON to a channel, a user or a client, and returns the answer, with the results. */
    static String push(String target, String name, String data) throws InterruptedException {
        // With a key, a repeated push is stored once.
        String body = "{\"key\":\"%s\",\"%s\":%s,\"data\":%s}".formatted(UUID.randomUUID(), target, quote(name), data);
        HttpRequest request = HttpRequest.newBuilder(URL).timeout(Duration.ofSeconds(10))
            .header("Content-Type", "application/json").header("Authorization", "Bearer " + KEY)
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        String problem = "";
        for (int attempt = 0; attempt < 5; attempt++) {
            long after = 1;
            try {
                HttpResponse<String> answer = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
                if (answer.statusCode() == 200) {
                    return answer.body();
                }
                problem = answer.body();
                if (answer.statusCode() < 500 && answer.statusCode() != 429) {
                    throw new IllegalArgumentException("refused: " + problem); // a repetition would be refused, too
                }
                after = answer.headers().firstValueAsLong("Retry-After").orElse(1);
            } catch (IOException e) { // no answer, or a part of one
                problem = e.toString();
            }
            Thread.sleep((long) (1000 * after * (1 + Math.random())));
        }
        throw new IllegalStateException("not known whether it is stored: " + problem);
    }

    /** Returns text as JSON. Your JSON library does that, too. */
    static String quote(String text) {
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            json.append(c < ' ' || c == '"' || c == '\\' ? "\\u%04x".formatted((int) c) : c);
        }
        return json.append('"').toString();
    }

    public static void main(String[] args) throws Exception {
        System.out.println(push(args[0], args[1], args[2]));
    }
}
