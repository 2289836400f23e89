#include "http.h"

namespace sprites {

Verdict readHead(const char* /*data*/, size_t /*length*/, HotRequest* /*out*/) {
  return Verdict::kHandOver;
}

}  // namespace sprites
