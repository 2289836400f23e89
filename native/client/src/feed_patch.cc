#include "feed_patch.h"

#include <utility>
#include <vector>

#include "json.h"

namespace sprites {

namespace {

/** Most bytes to scan for one patch: some tenths of a second. */
constexpr size_t kMaxScannedBytes = size_t{64} << 20;

/** One operation, as slices of the patch. */
struct Operation {
  std::string op;
  std::string_view path;  // without its quotes, still escaped; data() is null if there is none
  std::string_view value;
};

/** Offsets of a member or an element in the text, and of its neighbors. */
struct ItemOffsets {
  size_t begin = 0;  // of a member its name's quote
  size_t value = 0;
  size_t end = 0;
  size_t previousEnd = 0;  // the end of the previous one; 0: it is the first
  size_t nextBegin = 0;    // the start of the next one; 0: it is the last
};

/** Reads an escape's UTF-16 unit; `at` is behind the backslash, and moves behind the escape. */
char16_t readEscape(std::string_view raw, size_t* at) {
  const char kind = raw[(*at)++];
  const size_t shortEscape = std::string_view("bfnrt").find(kind);
  if (shortEscape != std::string_view::npos)
    return static_cast<char16_t>("\b\f\n\r\t"[shortEscape]);
  if (kind != 'u') return static_cast<char16_t>(kind);
  unsigned unit = 0;
  for (const size_t end = *at + 4; *at < end; (*at)++) {
    const char digit = raw[*at];
    const int low = digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
    unit = unit * 16 + static_cast<unsigned>(low);
  }
  return static_cast<char16_t>(unit);
}

/** Converts a name to UTF-16, whose units RFC 8785 sorts by. `raw` is UTF-8, escaped as in JSON. */
std::u16string unitsOf(std::string_view raw) {
  std::u16string units;
  for (size_t at = 0; at < raw.size();) {
    const auto lead = static_cast<unsigned char>(raw[at++]);
    if (lead == '\\') {
      units.push_back(readEscape(raw, &at));
      continue;
    }
    const unsigned continuations = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    uint32_t point = continuations == 0 ? lead : lead & (0x3FU >> continuations);
    for (unsigned i = 0; i < continuations; i++) {
      point = (point << 6) | (static_cast<unsigned char>(raw[at++]) & 0x3FU);
    }
    if (point >= 0x10000) {
      units.push_back(static_cast<char16_t>(0xD7C0 + (point >> 10)));
      point = 0xDC00 + (point & 0x3FF);
    }
    units.push_back(static_cast<char16_t>(point));
  }
  return units;
}

/** Splits a JSON Pointer into its names, escaped as in JSON; std::nullopt if it is malformed. */
std::optional<std::vector<std::string>> namesOf(std::string_view path) {
  std::vector<std::string> names;
  if (!path.empty() && path[0] != '/') return std::nullopt;
  for (size_t at = 0; at < path.size(); at++) {
    if (path[at] == '/') {
      names.emplace_back();
    } else if (path[at] == '~') {
      const char escaped = ++at < path.size() ? path[at] : ' ';
      if (escaped != '0' && escaped != '1') return std::nullopt;
      names.back().push_back(escaped == '1' ? '/' : '~');
    } else {
      names.back().push_back(path[at]);
    }
  }
  return names;
}

/** One value's text that operations change in place. */
class PatchedText {
 public:
  explicit PatchedText(std::string_view value) : text_(value) {}

  bool tookTooLong() const { return scannedBytes_ > kMaxScannedBytes; }
  std::string release() { return std::move(text_); }

  bool apply(const Operation& operation) {
    const bool removes = operation.op == "remove";
    if (!removes && operation.op != "add" && operation.op != "replace") return false;
    scannedBytes_ += text_.size() / 16;  // a change moves bytes, which takes less than a scan
    if (operation.path.data() == nullptr || (!removes && operation.value.empty())) return false;
    const auto names = namesOf(operation.path);
    if (!names || names->size() > kFeedDepth) return false;
    const auto depth = static_cast<unsigned>(names->size());
    if (!removes && !json::value(operation.value, kFeedDepth - depth)) return false;
    if (names->empty()) {
      if (removes) return false;
      text_ = operation.value;
      return true;
    }
    std::string_view container = text_;
    for (size_t i = 0; i + 1 < names->size(); i++) {
      const std::optional<ItemOffsets> offsets = find(container, (*names)[i]);
      if (!offsets) return false;
      container = std::string_view(text_).substr(offsets->value, offsets->end - offsets->value);
    }
    const size_t begin = offsetOf(container);
    const std::string& lastName = names->back();
    const std::optional<ItemOffsets> offsets = find(container, lastName);
    if (operation.op == "add" && (!offsets || text_[begin] == '[')) {
      return text_[begin] == '[' ? insert(container, offsets, lastName, operation.value)
                                 : addMember(container, lastName, operation.value);
    }
    if (!offsets) return false;
    if (removes) {
      erase(*offsets);
    } else {
      text_.replace(offsets->value, offsets->end - offsets->value, operation.value);
    }
    return true;
  }

 private:
  size_t offsetOf(std::string_view part) const {
    return static_cast<size_t>(part.data() - text_.data());
  }

  /** Finds the member or element with that name; nothing once it took too long. */
  std::optional<ItemOffsets> find(std::string_view container, const std::string& name) {
    if (container.empty() || tookTooLong()) return std::nullopt;
    if (container[0] == '[') return findElement(container, name);
    if (container[0] != '{') return std::nullopt;
    ItemOffsets offsets;
    bool found = false;
    json::Members walk(container);
    std::string_view rawName;
    std::string_view value;
    while (walk.next(&rawName, &value)) {
      if (found) {
        offsets.nextBegin = offsetOf(rawName) - 1;
        break;
      }
      if (rawName == name) {
        found = true;
        offsets.begin = offsetOf(rawName) - 1;
        offsets.value = offsetOf(value);
        offsets.end = offsets.value + value.size();
      } else {
        offsets.previousEnd = offsetOf(value) + value.size();
      }
    }
    scannedBytes_ += walk.offset();
    return found ? std::optional<ItemOffsets>(offsets) : std::nullopt;
  }

  std::optional<ItemOffsets> findElement(std::string_view array, const std::string& name) {
    const std::optional<uint64_t> index = json::count(name);
    if (!index) return std::nullopt;
    ItemOffsets offsets;
    json::Elements walk(array);
    std::string_view value;
    for (uint64_t i = 0; walk.next(&value); i++) {
      if (i > *index) {
        offsets.nextBegin = offsetOf(value);
        break;
      }
      if (i == *index) {
        offsets.begin = offsets.value = offsetOf(value);
        offsets.end = offsets.value + value.size();
      } else {
        offsets.previousEnd = offsetOf(value) + value.size();
      }
    }
    scannedBytes_ += walk.offset();
    return offsets.end > 0 ? std::optional<ItemOffsets>(offsets) : std::nullopt;
  }

  /** Returns the end of the last element (0: there is none) and the number of elements. */
  std::pair<size_t, uint64_t> endOfElements(std::string_view array) const {
    std::pair<size_t, uint64_t> end{0, 0};
    json::Elements walk(array);
    std::string_view value;
    while (walk.next(&value)) end = {offsetOf(value) + value.size(), end.second + 1};
    return end;
  }

  /** Inserts an element before the one at `offsets`, or behind the last. */
  bool insert(std::string_view array, const std::optional<ItemOffsets>& offsets,
              const std::string& name, std::string_view value) {
    if (offsets) {
      text_.insert(offsets->begin, std::string(value) + ",");
      return true;
    }
    const auto [end, count] = endOfElements(array);
    if (name != "-" && json::count(name) != count) return false;
    const size_t begin = offsetOf(array) + 1;
    text_.insert(end > 0 ? end : begin, (end > 0 ? "," : "") + std::string(value));
    return true;
  }

  /** Adds a member at its place in the order of RFC 8785. */
  bool addMember(std::string_view object, const std::string& name, std::string_view value) {
    if (object.empty() || object[0] != '{') return false;
    const std::string member = "\"" + name + "\":" + std::string(value);
    const std::u16string units = unitsOf(name);
    size_t end = 0;
    json::Members walk(object);
    std::string_view rawName;
    std::string_view each;
    while (walk.next(&rawName, &each)) {
      if (units < unitsOf(rawName)) {
        text_.insert(offsetOf(rawName) - 1, member + ",");
        return true;
      }
      end = offsetOf(each) + each.size();
    }
    text_.insert(end > 0 ? end : offsetOf(object) + 1, (end > 0 ? "," : "") + member);
    return true;
  }

  void erase(const ItemOffsets& offsets) {
    if (offsets.nextBegin > 0) {
      text_.erase(offsets.begin, offsets.nextBegin - offsets.begin);
    } else {
      const size_t begin = offsets.previousEnd > 0 ? offsets.previousEnd : offsets.begin;
      text_.erase(begin, offsets.end - begin);
    }
  }

  std::string text_;
  size_t scannedBytes_ = 0;
};

bool readOperation(std::string_view slice, Operation* operation) {
  return json::members(slice, [operation](const std::string& name, std::string_view value) {
    if (name == "op") operation->op = json::raw(value);
    if (name == "value") operation->value = value;
    if (name == "path") operation->path = json::raw(value);
    return true;
  });
}

}  // namespace

std::optional<std::string> applyPatch(std::string_view value, std::string_view patch) {
  PatchedText text(value);
  const bool fits = json::elements(patch, [&](std::string_view slice) {
    Operation operation;
    return readOperation(slice, &operation) && text.apply(operation) && !text.tookTooLong();
  });
  return fits ? std::optional<std::string>(text.release()) : std::nullopt;
}

}  // namespace sprites
