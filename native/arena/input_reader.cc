#include "input_reader.h"

#include <charconv>
#include <cmath>

#include "base/json_grammar.h"

namespace server {
namespace {

/** Reads an input. Each method reads on from `at_`, and returns whether the text is valid. */
class Reader {
 public:
  Reader(std::string_view text, const std::vector<InputField>& fields, InputValues* out)
      : at_(text.data()), end_(at_ + text.size()), fields_(fields), out_(out) {}

  bool read() {
    skipBlanks();
    if (!accept('{')) return false;
    skipBlanks();
    if (!accept('}')) {
      do {
        if (!readMember()) return false;
      } while (accept(','));
      if (!accept('}')) return false;
    }
    skipBlanks();
    return at_ == end_;
  }

 private:
  bool accept(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  void skipBlanks() { at_ = base::json::skipSpace(at_, end_); }

  /** Reads a name and its number, with the blanks around them. */
  bool readMember() {
    skipBlanks();
    size_t field = 0;
    if (!readName(&field)) return false;
    skipBlanks();
    if (!accept(':')) return false;
    skipBlanks();
    double value = 0;
    if (!readNumber(&value)) return false;
    skipBlanks();
    const InputField& declared = fields_[field];
    if (!(value >= declared.min && value <= declared.max)) return false;
    if (declared.isInteger && value != std::floor(value)) return false;
    out_->values[field] = value;
    return true;
  }

  /** Reads a name of the game that was not in the input yet. */
  bool readName(size_t* field) {
    if (!accept('"')) return false;
    const char* const first = at_;
    // The text ends at the next quote: no field's name has a quote or an escape.
    while (at_ != end_ && *at_ != '"') ++at_;
    const std::string_view text(first, at_ - first);
    if (!accept('"')) return false;
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].name != text) continue;
      const uint32_t bit = uint32_t{1} << i;
      if ((out_->namedFields & bit) != 0) return false;
      out_->namedFields |= bit;
      *field = i;
      return true;
    }
    return false;
  }

  /** Reads a number. Refuses a number outside the range of doubles. */
  bool readNumber(double* value) {
    const char* const first = at_;
    at_ = at_ == end_ ? nullptr : base::json::skipNumber(at_, end_);
    if (at_ == nullptr) return false;
    const auto [end, error] = std::from_chars(first, at_, *value);
    return error == std::errc() && end == at_;
  }

  const char* at_;
  const char* const end_;
  const std::vector<InputField>& fields_;
  InputValues* const out_;
};

}  // namespace

bool readInput(std::string_view text, const std::vector<InputField>& fields, InputValues* out) {
  out->namedFields = 0;
  return Reader(text, fields, out).read();
}

}  // namespace server
