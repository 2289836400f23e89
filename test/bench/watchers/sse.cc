// Event streams of a server that knows nothing else: node:http's, in contenders/sse.js.
#include "http.h"

namespace watchers {

namespace {

class SseProtocol : public HttpProtocol {
 public:
  void open(Connection&, std::string* out) override {
    *out = "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n";
  }
  void publish(std::string_view document, std::string_view patch, std::string* out) override {
    *out = withBody("POST /publish", "", patch.empty() ? document : patch);
  }
};

}  // namespace

std::unique_ptr<Protocol> makeSse(std::string_view name) {
  if (name != "sse") return nullptr;
  return std::make_unique<SseProtocol>();
}

}  // namespace watchers
