# Varnish 7 or later as a cache for feeds.
#
#   watchers ──▶ :8081 varnishd ──one request a feed, version and turn──▶ 127.0.0.1:8080 bin/sprites
#
#   bin/sprites --host 127.0.0.1 --port 8080 --trust-proxy x-forwarded-for --feed-cache 5
#   varnishd -a :8081 -f /etc/varnish/sprites.vcl -s malloc,256m \
#     -p thread_queue_limit=20000
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8080";
    .connect_timeout = 5s;
    # Above the hold (--hold, 120 s) and its sixteenth.
    .first_byte_timeout = 180s;
    .between_bytes_timeout = 180s;
}

sub vcl_recv {
    # What a stranger claims to be goes no further.
    set req.http.X-Forwarded-For = client.ip;
    unset req.http.Forwarded;
    if (req.url !~ "^/feed(/|s\?)" || (req.method != "GET" && req.method != "HEAD")) {
        return (pass);
    }
    # An event stream, and a request with a token, has an answer of its own. In gzip a stream has no end that Varnish
    # takes for one: it cuts it off, before its last event.
    if (req.http.Accept ~ "(?i)text/event-stream") {
        unset req.http.Accept-Encoding;
        return (pass);
    }
    if (req.http.Authorization || req.url ~ "[?&]grant=") {
        return (pass);
    }
    # Varnish itself makes two forms of all Accept-Encoding there are.
    unset req.http.Accept;
    unset req.http.Cookie;
    return (hash);
}

sub vcl_hash {
    hash_data(req.url);
    return (lookup);
}

sub vcl_backend_response {
    # What is too old is never served.
    set beresp.grace = 0s;
    set beresp.keep = 0s;
    # A problem is of one client, and soon over.
    if (beresp.http.Cache-Control ~ "no-store") {
        set beresp.uncacheable = true;
        set beresp.ttl = 1s;
    }
    return (deliver);
}

sub vcl_backend_error {
    # While the server restarts: a problem document, as from the server itself.
    set beresp.http.Content-Type = "application/problem+json";
    set beresp.http.Retry-After = "2";
    set beresp.http.Cache-Control = "no-store";
    set beresp.http.Access-Control-Allow-Origin = "*";
    synthetic("""{"type":"urn:sprites:draining","title":"The server is about to restart","status":503,"detail":"Try the same again as soon as Retry-After says."}""");
    return (deliver);
}
