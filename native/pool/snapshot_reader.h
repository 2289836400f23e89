// Takes a snapshot's file apart.
#ifndef SPRITES_SNAPSHOT_READER_H_
#define SPRITES_SNAPSHOT_READER_H_

#include <cstddef>
#include <cstring>
#include <string_view>

namespace server {

/** What is wrong with a file in which something is missing at its end. */
constexpr char kTooEarly[] = "it ends too early";

/** Never reads past the end of the file. */
class SnapshotReader {
 public:
  explicit SnapshotReader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  bool get(T* value) {
    if (left_.size() < sizeof *value) return false;
    memcpy(value, left_.data(), sizeof *value);
    left_.remove_prefix(sizeof *value);
    return true;
  }

  bool get(size_t length, std::string_view* bytes) {
    if (left_.size() < length) return false;
    *bytes = left_.substr(0, length);
    left_.remove_prefix(length);
    return true;
  }

  bool atEnd() const { return left_.empty(); }

 private:
  std::string_view left_;
};

}  // namespace server

#endif  // SPRITES_SNAPSHOT_READER_H_
