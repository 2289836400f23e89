#include "contract.h"

namespace load {

void finishPost(std::string_view body, std::string* out) {
  out->append(kHeaders);
  if (!body.empty()) out->append("Content-Type: application/json\r\n");
  out->append("Content-Length: ")
      .append(std::to_string(body.size()))
      .append("\r\n\r\n")
      .append(body);
}

void takeNumbers(std::string_view body, std::vector<uint64_t>* numbers) {
  for (size_t at = body.find(kNumberKey); at != std::string_view::npos;
       at = body.find(kNumberKey, at)) {
    at += kNumberKey.size();
    numbers->push_back(numberAt(body.substr(at)));
  }
}

}  // namespace load
