// A document that a publication changes a little, and the patches from one to the next (RFC 6902):
// {"n":7,"s":[3,1,4]}. Patches shift later cells, so that a lost, doubled or exchanged patch leads
// to a wrong value.
#ifndef TEST_NATIVE_SIMULATED_DOCUMENTS_H_
#define TEST_NATIVE_SIMULATED_DOCUMENTS_H_

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sim {

struct Sheet {
  uint64_t number = 0;
  std::vector<uint64_t> cells;

  std::string text() const {
    std::string text = "{\"n\":" + std::to_string(number) + ",\"s\":[";
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += ',';
      text += std::to_string(cells[i]);
    }
    return text + "]}";
  }

  /** Parses a document; false: it is none of this form. */
  bool parse(std::string_view text) {
    cells.clear();
    if (!skipWord(&text, "{\"n\":") || !readNumber(&text, &number) || !skipWord(&text, ",\"s\":["))
      return false;
    while (!skipWord(&text, "]}")) {
      if (!cells.empty() && !skipWord(&text, ",")) return false;
      if (!readNumber(&text, &cells.emplace_back())) return false;
    }
    return text.empty();
  }

  /** Returns the operations that lead to `next`, joined by commas. */
  std::string patchTo(const Sheet& next) const {
    size_t begin = 0;
    while (begin < std::min(cells.size(), next.cells.size()) && cells[begin] == next.cells[begin]) {
      ++begin;
    }
    size_t end = cells.size(), nextEnd = next.cells.size();
    while (end > begin && nextEnd > begin && cells[end - 1] == next.cells[nextEnd - 1]) {
      --end, --nextEnd;
    }
    std::string patch = operation("replace", "/n", next.number);
    for (size_t at = begin; at < std::max(end, nextEnd); ++at) {
      // Surplus cells are removed one by one at the same place.
      const bool isRemoved = at >= nextEnd;
      const std::string path = "/s/" + std::to_string(isRemoved ? nextEnd : at);
      if (isRemoved) {
        patch += ",{\"op\":\"remove\",\"path\":\"" + path + "\"}";
      } else {
        patch += "," + operation(at < end ? "replace" : "add", path, next.cells[at]);
      }
    }
    return patch;
  }

  /** Applies operations that are joined by commas; false: one does not fit. */
  bool apply(std::string_view patch) {
    for (bool first = true; !patch.empty(); first = false) {
      if (!first && !skipWord(&patch, ",")) return false;
      const bool adds = skipWord(&patch, "{\"op\":\"add\",");
      const bool removes = !adds && skipWord(&patch, "{\"op\":\"remove\",");
      if (!adds && !removes && !skipWord(&patch, "{\"op\":\"replace\",")) return false;
      uint64_t* place = &number;
      uint64_t at = 0;
      if (!skipWord(&patch, "\"path\":\"/n\"")) {
        if (!skipWord(&patch, "\"path\":\"/s/") || !readNumber(&patch, &at) ||
            !skipWord(&patch, "\"")) {
          return false;
        }
        if (at > cells.size() || (at == cells.size() && !adds)) return false;
        const auto cell = cells.begin() + static_cast<ptrdiff_t>(at);
        if (removes) cells.erase(cell);
        if (adds) cells.insert(cell, 0);
        place = cells.data() + at;
      }
      if (!removes && (!skipWord(&patch, ",\"value\":") || !readNumber(&patch, place)))
        return false;
      if (!skipWord(&patch, "}")) return false;
    }
    return true;
  }

 private:
  static std::string operation(const char* name, const std::string& path, uint64_t value) {
    return std::string("{\"op\":\"") + name + "\",\"path\":\"" + path +
           "\",\"value\":" + std::to_string(value) + "}";
  }
  static bool skipWord(std::string_view* text, std::string_view word) {
    if (!text->starts_with(word)) return false;
    text->remove_prefix(word.size());
    return true;
  }
  static bool readNumber(std::string_view* text, uint64_t* number) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
    text->remove_prefix(static_cast<size_t>(end - text->data()));
    return error == std::errc();
  }
};

/** Published documents, by feed and number. */
inline std::map<std::pair<std::string, uint64_t>, std::string>* publishedSheets = nullptr;

/** Returns a text as gzip, with the settings of JavaScript's worker thread. */
inline std::string gzipOf(std::string_view text) {
  z_stream stream = {};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/** Decompresses gzip piece by piece. */
class Inflater {
 public:
  Inflater() { inflateInit2(&stream_, 15 + 16); }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /** Adds bytes; false: they are no gzip. */
  bool add(std::string_view bytes, std::string* to) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      char out[4096];
      stream_.next_out = reinterpret_cast<Bytef*>(out);
      stream_.avail_out = sizeof out;
      const int status = inflate(&stream_, Z_SYNC_FLUSH);
      to->append(out, sizeof out - stream_.avail_out);
      if (status == Z_STREAM_END) return ended_ = stream_.avail_in == 0;
      if (status != Z_OK && status != Z_BUF_ERROR) return false;
    } while (stream_.avail_in > 0 || stream_.avail_out == 0);
    return true;
  }

  /** Whether the trailer has come, with a correct checksum. */
  bool ended() const { return ended_; }

 private:
  z_stream stream_ = {};
  bool ended_ = false;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_DOCUMENTS_H_
