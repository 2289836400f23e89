// The characters that HTTP allows (RFC 9110, sections 5.5 and 5.6).
#ifndef SPRITES_CHARACTERS_H_
#define SPRITES_CHARACTERS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace server {

constexpr bool isBlank(char c) { return c == ' ' || c == '\t'; }

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

constexpr bool isDigit(char c) { return c >= '0' && c <= '9'; }

/** Returns whether a text equals a word, ignoring case; the word is in lower case. */
constexpr bool isWord(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower(a) == b; });
}

/** Returns the text without the blanks around it. */
constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && isBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back())) text.remove_suffix(1);
  return text;
}

/** Returns a table of the bytes that are letters, digits or one of these signs. */
constexpr std::array<bool, 256> lettersDigitsAnd(std::string_view signs) {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[c] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = true;
  for (const char c : signs) table[static_cast<uint8_t>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kTokens = lettersDigitsAnd("!#$%&'*+-.^_`|~");
constexpr std::array<bool, 256> kHosts = lettersDigitsAnd("-._~!$&'()*+;=:%[]");

/** Whether a character may be in a token, such as a method or a header name. */
constexpr bool isToken(char c) { return kTokens[static_cast<uint8_t>(c)]; }

/**
 * Whether `value` may be the authority of a Host (RFC 3986, section 3.2), without user information.
 */
constexpr bool isHost(std::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return kHosts[static_cast<uint8_t>(c)]; });
}

constexpr uint8_t kNoHex = 0xff;

constexpr std::array<uint8_t, 256> makeHexTable() {
  std::array<uint8_t, 256> table{};
  for (auto& value : table) value = kNoHex;
  for (int i = 0; i < 10; ++i) table['0' + i] = static_cast<uint8_t>(i);
  for (int i = 0; i < 6; ++i) table['a' + i] = table['A' + i] = static_cast<uint8_t>(10 + i);
  return table;
}
constexpr std::array<uint8_t, 256> kHex = makeHexTable();

/** The value of a hexadecimal digit, kNoHex for any other byte. */
constexpr uint8_t hexOf(char c) { return kHex[static_cast<uint8_t>(c)]; }

}  // namespace server

#endif  // SPRITES_CHARACTERS_H_
