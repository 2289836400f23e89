#include "input_reader.h"

#include <charconv>
#include <cmath>

#include "base/json_grammar.h"

namespace server {
namespace {

/** An input being read. Each method reads on from `at_`, and says whether it was as it must be. */
class Reader {
 public:
  Reader(std::string_view text, const std::vector<InputField>& fields, InputValues* out)
      : at_(text.data()), end_(at_ + text.size()), fields_(fields), out_(out) {}

  bool read() {
    skipBlanks();
    if (!take('{')) return false;
    skipBlanks();
    if (!take('}')) {
      do {
        if (!member()) return false;
      } while (take(','));
      if (!take('}')) return false;
    }
    skipBlanks();
    return at_ == end_;
  }

 private:
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  void skipBlanks() { at_ = base::json::skipSpace(at_, end_); }

  /** A name and its number, blanks around them included. */
  bool member() {
    skipBlanks();
    size_t field = 0;
    if (!name(&field)) return false;
    skipBlanks();
    if (!take(':')) return false;
    skipBlanks();
    double value = 0;
    if (!number(&value)) return false;
    skipBlanks();
    const InputField& wanted = fields_[field];
    if (!(value >= wanted.min && value <= wanted.max)) return false;
    if (wanted.integer && value != std::floor(value)) return false;
    out_->values[field] = value;
    return true;
  }

  /** A name of the game's, which has not been there yet. */
  bool name(size_t* field) {
    if (!take('"')) return false;
    const char* const first = at_;
    // Anything but letters, digits and _ is in no name, and ends what is compared.
    while (at_ != end_ && *at_ != '"') ++at_;
    const std::string_view given(first, at_ - first);
    if (!take('"')) return false;
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].name != given) continue;
      const uint32_t bit = uint32_t{1} << i;
      if ((out_->given & bit) != 0) return false;
      out_->given |= bit;
      *field = i;
      return true;
    }
    return false;
  }

  /** One that no double is near to is refused. */
  bool number(double* value) {
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
  out->given = 0;
  return Reader(text, fields, out).read();
}

}  // namespace server
