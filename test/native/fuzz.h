// The common parts of the native fuzz drivers: reproducible randomness, mutation of bytes, and
// inputs on which a sanitizer sees every over-read.
#ifndef SPRITES_TEST_NATIVE_FUZZ_H_
#define SPRITES_TEST_NATIVE_FUZZ_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace server::test {

/** A small generator (xorshift64*): fast, and the same on every machine. */
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}

  /** Returns an integer from 0 to `bound` - 1. */
  size_t below(size_t bound) {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<size_t>((state_ * 0x2545f4914f6cdd1dull) >> 33) % bound;
  }
  bool oneIn(size_t times) { return below(times) == 0; }
  const std::string& pick(const std::vector<std::string>& list) { return list[below(list.size())]; }

 private:
  uint64_t state_;
};

/** A copy of bytes in memory of exactly their length: a sanitizer reports a read beyond it. */
class ExactCopy {
 public:
  ExactCopy(const char* data, size_t length) : data_(new char[length]), length_(length) {
    if (length > 0) memcpy(data_.get(), data, length);
  }
  explicit ExactCopy(const std::string& text) : ExactCopy(text.data(), text.size()) {}
  const char* data() const { return data_.get(); }
  size_t length() const { return length_; }

 private:
  std::unique_ptr<char[]> data_;
  size_t length_;
};

/** Applies one to four mutations, without regard to the meaning of the bytes. */
inline std::string mutate(Random& random, std::string text, const std::vector<std::string>& others,
                          const std::vector<std::string>& words) {
  for (size_t n = 1 + random.below(4); n > 0; --n) {
    const size_t at = random.below(text.size() + 1);
    const size_t piece = random.below(24);
    switch (random.below(8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      case 2:
        text.insert(at, 1, static_cast<char>(random.below(256)));
        break;
      case 3:
        text.erase(at, piece);
        break;
      case 4:
        text.insert(at, std::string(text, at, piece));
        break;
      case 5: {
        const std::string& other = random.pick(others);
        text.replace(at, piece, other, random.below(other.size() + 1), random.below(64));
        break;
      }
      case 6:
        if (random.oneIn(4)) text.erase(at);
        break;
      default:
        text.replace(at, random.oneIn(2) ? 0 : piece, random.pick(words));
    }
  }
  return text;
}

/** Returns a file's bytes; ends the program when it can't be read. */
inline std::string readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    fprintf(stderr, "%s: can't be read\n", path.c_str());
    exit(2);
  }
  return text.str();
}

/**
 * Returns the seeds of a kind by name, from test/fuzz/seeds.jsonl: a line is
 * ["kind","name","text"]. Ends the program when there are none, or when a text has an escape other
 * than \n, \r, \t, \" and \\.
 */
inline std::map<std::string, std::string> readSeeds(const std::string& path,
                                                    const std::string& kind) {
  std::map<std::string, std::string> seeds;
  std::istringstream lines(readFile(path));
  const std::string begin = "[\"" + kind + "\",\"";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(begin)) continue;
    const size_t nameEnd = line.find('"', begin.size());
    std::string& text = seeds[line.substr(begin.size(), nameEnd - begin.size())];
    for (size_t at = nameEnd + 3; at + 2 < line.size(); ++at) {
      static constexpr std::string_view kEscapes = "nrt\"\\";
      const size_t escape = line[at] == '\\' ? kEscapes.find(line[++at]) : kEscapes.size();
      if (escape == std::string_view::npos) seeds.clear();
      text += escape < kEscapes.size() ? "\n\r\t\"\\"[escape] : line[at];
    }
  }
  if (seeds.empty()) {
    fprintf(stderr, "%s: no seeds of %s, or an unknown escape in one\n", path.c_str(),
            kind.c_str());
    exit(2);
  }
  return seeds;
}

/** Returns only the texts of the seeds, in the order of their names. */
inline std::vector<std::string> readTexts(const std::string& path, const std::string& kind) {
  std::vector<std::string> texts;
  for (auto& [name, text] : readSeeds(path, kind)) texts.push_back(std::move(text));
  return texts;
}

/** Prints bytes in a form that can be pasted into a test. */
inline void printEscaped(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      printf("\\x%02x", byte);
    } else {
      putchar(c);
    }
  }
  putchar('\n');
}

/** Prints the input that broke a rule, and ends the program. */
[[noreturn]] inline void fail(const char* what, const std::string& input) {
  printf("FOUND %s\n", what);
  printEscaped(input);
  exit(1);
}

struct Options {
  std::string seeds;  // path of their file
  uint64_t count;     // number of inputs
  uint64_t seed;
};

/** Reads `SEEDS [COUNT [SEED]]`. Without SEED, draws one and prints it. */
inline Options optionsOf(int argc, char** argv, uint64_t count) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: %s FILE-OF-SEEDS [COUNT [SEED]]\n", argv[0]);
    exit(2);
  }
  Options options{argv[1], count, std::random_device{}()};
  if (argc > 2) options.count = strtoull(argv[2], nullptr, 10);
  if (argc > 3) options.seed = strtoull(argv[3], nullptr, 10);
  printf("%s: seed %llu\n", argv[0], static_cast<unsigned long long>(options.seed));
  return options;
}

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_FUZZ_H_
