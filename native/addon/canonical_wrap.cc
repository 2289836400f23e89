// Canonical JSON for JavaScript, in any thread. Conversion only.
#include "base/canonical.h"
#include "convert.h"
#include "wraps.h"

namespace server {

namespace {

// canonical(text: bytes, depth, out: bytes, of the same length) → bytes written to `out`; 0:
// lib/feeds/canonical.js must write the text
void canonicalCall(const Info& info) {
  const std::string_view text = bytesOf(info[0]);
  char* const out = node::Buffer::Data(info[2]);
  info.GetReturnValue().Set(
      static_cast<uint32_t>(base::canonical(text.data(), text.size(), uint32Of(info[1]), out)));
}

}  // namespace

void initCanonical(Local<Object> target) { Nan::SetMethod(target, "canonical", canonicalCall); }

}  // namespace server
