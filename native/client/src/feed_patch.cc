#include "feed_patch.h"

#include <utility>
#include <vector>

#include "json.h"

namespace sprites {

namespace {

/** Most bytes to scan for one patch: some tenths of a second. */
constexpr size_t kWorkMost = size_t{256} << 20;

/** One operation, as slices of the patch. */
struct Operation {
  std::string op;
  std::string_view path;  // without its quotes, still escaped; data() is null if there is none
  std::string_view value;
};

/** Offsets of a member or an element in the text, and of its neighbors. */
struct Spot {
  size_t begin = 0;  // of a member its name's quote
  size_t value = 0;
  size_t end = 0;
  size_t before = 0;  // the end of the previous one; 0: it is the first
  size_t after = 0;   // the start of the next one; 0: it is the last
};

/** Reads an escape's UTF-16 unit; `at` is behind the backslash, and moves behind the escape. */
char16_t unescaped(std::string_view raw, size_t* at) {
  const char kind = raw[(*at)++];
  const size_t known = std::string_view("bfnrt").find(kind);
  if (known != std::string_view::npos) return static_cast<char16_t>("\b\f\n\r\t"[known]);
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
      units.push_back(unescaped(raw, &at));
      continue;
    }
    const unsigned more = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    uint32_t point = more == 0 ? lead : lead & (0x3FU >> more);
    for (unsigned i = 0; i < more; i++) {
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
      const char which = ++at < path.size() ? path[at] : ' ';
      if (which != '0' && which != '1') return std::nullopt;
      names.back().push_back(which == '1' ? '/' : '~');
    } else {
      names.back().push_back(path[at]);
    }
  }
  return names;
}

/** One value's text that operations change in place. */
class Text {
 public:
  explicit Text(std::string_view value) : text_(value) {}

  size_t size() const { return text_.size(); }
  std::string take() { return std::move(text_); }

  bool apply(const Operation& operation) {
    const bool removes = operation.op == "remove";
    if (!removes && operation.op != "add" && operation.op != "replace") return false;
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
    std::string_view at = text_;
    for (size_t i = 0; i + 1 < names->size(); i++) {
      const std::optional<Spot> spot = find(at, (*names)[i]);
      if (!spot) return false;
      at = std::string_view(text_).substr(spot->value, spot->end - spot->value);
    }
    const size_t begin = offset(at);
    const std::string& last = names->back();
    const std::optional<Spot> spot = find(at, last);
    if (operation.op == "add" && (!spot || text_[begin] == '[')) {
      return text_[begin] == '[' ? insert(at, spot, last, operation.value)
                                 : addMember(at, last, operation.value);
    }
    if (!spot) return false;
    if (removes) {
      erase(*spot);
    } else {
      text_.replace(spot->value, spot->end - spot->value, operation.value);
    }
    return true;
  }

 private:
  size_t offset(std::string_view part) const {
    return static_cast<size_t>(part.data() - text_.data());
  }

  /** Finds the member or element with that name. */
  std::optional<Spot> find(std::string_view container, const std::string& name) const {
    if (container.empty()) return std::nullopt;
    if (container[0] == '[') return findElement(container, name);
    if (container[0] != '{') return std::nullopt;
    Spot spot;
    bool found = false;
    json::Members walk(container);
    std::string_view written;
    std::string_view value;
    while (walk.next(&written, &value)) {
      if (found) {
        spot.after = offset(written) - 1;
        break;
      }
      if (written == name) {
        found = true;
        spot.begin = offset(written) - 1;
        spot.value = offset(value);
        spot.end = spot.value + value.size();
      } else {
        spot.before = offset(value) + value.size();
      }
    }
    return found ? std::optional<Spot>(spot) : std::nullopt;
  }

  std::optional<Spot> findElement(std::string_view array, const std::string& name) const {
    const std::optional<uint64_t> place = json::count(name);
    if (!place) return std::nullopt;
    Spot spot;
    json::Elements walk(array);
    std::string_view value;
    for (uint64_t at = 0; walk.next(&value); at++) {
      if (at > *place) {
        spot.after = offset(value);
        return spot;
      }
      if (at == *place) {
        spot.begin = spot.value = offset(value);
        spot.end = spot.value + value.size();
      } else {
        spot.before = offset(value) + value.size();
      }
    }
    return spot.end > 0 ? std::optional<Spot>(spot) : std::nullopt;
  }

  /** Returns the end of the last element (0: there is none) and the number of elements. */
  std::pair<size_t, uint64_t> endOf(std::string_view array) const {
    std::pair<size_t, uint64_t> end{0, 0};
    json::Elements walk(array);
    std::string_view value;
    while (walk.next(&value)) end = {offset(value) + value.size(), end.second + 1};
    return end;
  }

  /** Inserts an element before the one at `spot`, or behind the last. */
  bool insert(std::string_view array, const std::optional<Spot>& spot, const std::string& name,
              std::string_view value) {
    if (spot) {
      text_.insert(spot->begin, std::string(value) + ",");
      return true;
    }
    const auto [end, count] = endOf(array);
    if (name != "-" && json::count(name) != count) return false;
    const size_t begin = offset(array) + 1;
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
    std::string_view written;
    std::string_view each;
    while (walk.next(&written, &each)) {
      if (units < unitsOf(written)) {
        text_.insert(offset(written) - 1, member + ",");
        return true;
      }
      end = offset(each) + each.size();
    }
    text_.insert(end > 0 ? end : offset(object) + 1, (end > 0 ? "," : "") + member);
    return true;
  }

  void erase(const Spot& spot) {
    if (spot.after > 0) {
      text_.erase(spot.begin, spot.after - spot.begin);
    } else {
      const size_t begin = spot.before > 0 ? spot.before : spot.begin;
      text_.erase(begin, spot.end - begin);
    }
  }

  std::string text_;
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
  Text text(value);
  size_t work = 0;
  const bool fits = json::elements(patch, [&](std::string_view slice) {
    Operation operation;
    work += text.size();
    return work <= kWorkMost && readOperation(slice, &operation) && text.apply(operation);
  });
  return fits ? std::optional<std::string>(text.take()) : std::nullopt;
}

}  // namespace sprites
