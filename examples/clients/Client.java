// Durable timers from Java 17, with nothing but the standard library.
//
// Schedules a timer, takes it when it is due, and acknowledges it. TOURBILLON_SERVER and TOURBILLON_TOKEN configure it.
// The JDK has no JSON parser: this extracts the few strings it needs. A real program would use a library.

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

class Client {
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final String SERVER =
        System.getenv().getOrDefault("TOURBILLON_SERVER", "http://127.0.0.1:7420");
    private static final String TOKEN = System.getenv("TOURBILLON_TOKEN");

    /** An error response, with the server's message. */
    static class Refused extends Exception {
        final String code;

        Refused(String answer) {
            super(text(answer, "detail"));
            code = text(answer, "code");
        }
    }

    /** Returns the response; an empty body sends none. */
    static String call(String method, String path, String body) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(SERVER + path))
            .timeout(Duration.ofSeconds(30))
            .header("content-type", "application/json")
            .method(method, BodyPublishers.ofString(body));
        if (TOKEN != null) {
            request.header("authorization", "Bearer " + TOKEN);
        }
        var answer = HTTP.send(request.build(), BodyHandlers.ofString());
        if (answer.statusCode() >= 300) {
            throw new Refused(answer.body());
        }
        return answer.body();
    }

    /** The first string field with this name, or null. */
    static String text(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
        return found.find() ? found.group(1) : null;
    }

    public static void main(String[] arguments) throws Exception {
        // With a caller-chosen key, a repeated POST creates no second timer: `keep` returns the existing one.
        String timer = "{\"key\":\"welcome\",\"in\":\"100ms\",\"payload\":{\"to\":\"ann\"}}";
        String made = call("POST", "/v1/queues/java/timers?on_conflict=keep", timer);
        System.out.println("scheduled " + text(made, "key"));

        // A worker does this in a loop. The server waits up to 20 s for a timer; the lease is how long we hold it.
        String work = call("POST", "/v1/queues/java/receive", "{\"wait\":\"20s\",\"lease\":\"30s\"}");
        if (text(work, "token") != null) {
            System.out.println("received " + text(work, "key") + " for " + text(work, "to"));
            String tokens = "{\"tokens\":[\"" + text(work, "token") + "\"]}";
            String settled = call("POST", "/v1/queues/java/ack", tokens);
            System.out.println("acknowledged " + settled.replaceAll(".*\"acked\":(\\d+).*", "$1"));
        }

        try {
            call("GET", "/v1/queues/java/timers/nobody", "");
        } catch (Refused refusal) {
            System.out.println("refused " + refusal.code);
        }
    }
}
