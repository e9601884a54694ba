// IssueToken.java
import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class IssueToken {
    static final String SECRET = System.getenv("SWITCHBOARD_AUTH_HS256_SECRET");

    /** Returns a token that lets a client connect as the user within an hour. The grants are a JSON object. */
    static String issueToken(String user, String grants) throws GeneralSecurityException {
        String claims = "{\"sub\":%s,\"exp\":%d,\"channels\":%s}".formatted(quote(user), Instant.now().getEpochSecond() + 3600, grants);
        String signed = base64url("{\"alg\":\"HS256\",\"typ\":\"JWT\"}".getBytes(UTF_8)) + "." + base64url(claims.getBytes(UTF_8));
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(SECRET.getBytes(UTF_8), "HmacSHA256"));
        return signed + "." + base64url(mac.doFinal(signed.getBytes(UTF_8)));
    }

    static String base64url(byte[] data) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(data);
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
        System.out.println(issueToken(args[0], "{\"chat:42\":\"sub pub\"}"));
    }
}
