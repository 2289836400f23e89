// What the native fuzz drivers share: randomness that can be had again, mutation of bytes, and
// inputs whose every over-read the sanitizer sees.
#ifndef SPRITES_TEST_NATIVE_FUZZ_H_
#define SPRITES_TEST_NATIVE_FUZZ_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace server::test {

/** A small generator (xorshift64*): quick, and the same on every machine. */
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}

  /** An integer from 0 up to, not including, `bound`. */
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

/** A copy of some bytes that begins and ends where they do: one byte beyond is a sanitizer's
 * report. */
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

/** One to four mutations that know nothing of what the bytes mean. */
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

/** A file's bytes; ends the program when it can't be read. */
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

/** The contents of a folder's files, in the order of their names; ends the program without any. */
inline std::vector<std::string> readFolder(const std::string& folder) {
  std::set<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    paths.insert(entry.path().string());
  }
  std::vector<std::string> contents;
  contents.reserve(paths.size());
  for (const auto& path : paths) contents.push_back(readFile(path));
  if (contents.empty()) {
    fprintf(stderr, "%s: no seeds there\n", folder.c_str());
    exit(2);
  }
  return contents;
}

/** Prints bytes so that they can be pasted into a test. */
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

/** Ends the program with the input that broke what should hold. */
[[noreturn]] inline void fail(const char* what, const std::string& input) {
  printf("FOUND %s\n", what);
  printEscaped(input);
  exit(1);
}

struct Options {
  std::string folder;  // of seeds
  uint64_t count;      // of inputs
  uint64_t seed;
};

/** Reads `FOLDER [COUNT [SEED]]`; a fresh seed, which is printed, without one. */
inline Options optionsOf(int argc, char** argv, uint64_t count) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: %s FOLDER-OF-SEEDS [COUNT [SEED]]\n", argv[0]);
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
