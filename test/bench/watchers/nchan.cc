// nchan, the module of nginx: event streams, WebSockets and long polls of one channel.
#include "ws.h"

namespace watchers {

namespace {

std::string publication(std::string_view document, std::string_view patch) {
  return withBody("POST /publish", "Content-Type: application/json\r\n",
                  patch.empty() ? document : patch);
}

class NchanStream : public HttpProtocol {
 public:
  void open(Connection& connection, std::string* out) override {
    *out = "GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n";
    if (!connection.cursor.empty()) *out += "Last-Event-ID: " + connection.cursor + "\r\n";
    *out += "\r\n";
  }
  void publish(std::string_view document, std::string_view patch, std::string* out) override {
    *out = publication(document, patch);
  }

 protected:
  void event(Connection& connection, Listener* listener) override {
    constexpr std::string_view kId = "id: ";
    const std::string& sample = connection.sample;
    if (sample.starts_with(kId)) {
      connection.cursor = sample.substr(kId.size(), sample.find_first_of("\r\n") - kId.size());
    }
    listener->message(connection, sample);
  }
};

class NchanWs : public WsProtocol {
 public:
  NchanWs() : WsProtocol("/ws") {}
  void publish(std::string_view document, std::string_view patch, std::string* out) override {
    *out = publication(document, patch);
  }
};

class NchanPoll : public HttpProtocol {
 public:
  void open(Connection& connection, std::string* out) override { ask(connection, out); }
  void publish(std::string_view document, std::string_view patch, std::string* out) override {
    *out = publication(document, patch);
  }

 protected:
  void head(Connection& connection, std::string_view head) override {
    connection.cursor = headerOf(head, "last-modified:");
    connection.tag = headerOf(head, "etag:");
  }
  void body(Connection& connection, Listener* listener) override {
    listener->message(connection, connection.sample);
    std::string request;
    ask(connection, &request);
    listener->send(connection, request);
  }

 private:
  static void ask(const Connection& connection, std::string* out) {
    *out += "GET /poll HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    if (!connection.cursor.empty()) {
      *out += "If-Modified-Since: " + connection.cursor + "\r\nIf-None-Match: " + connection.tag;
      *out += "\r\n";
    }
    *out += "\r\n";
  }
};

}  // namespace

std::unique_ptr<Protocol> makeNchan(std::string_view name) {
  if (name == "nchan-stream") return std::make_unique<NchanStream>();
  if (name == "nchan-ws") return std::make_unique<NchanWs>();
  if (name == "nchan-poll") return std::make_unique<NchanPoll>();
  return nullptr;
}

}  // namespace watchers
