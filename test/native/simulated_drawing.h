// Draws a run of the simulation for a browser. Time goes down; clients, server, workers and disk
// have columns; crashes have lines; the broken law is at the end. Worker 12 is the second worker of
// server 1.
#ifndef TEST_NATIVE_SIMULATED_DRAWING_H_
#define TEST_NATIVE_SIMULATED_DRAWING_H_

#include <map>
#include <string>
#include <vector>

namespace sim {

/** Draws the lines of a trace: time, step, and words. */
class Drawing {
 public:
  /** Most steps in a drawing: the last ones. */
  static constexpr size_t kMaxSteps = 500;

  /** Adds a line. Turns are left out. */
  void add(const std::string& line) {
    if (!line.ends_with(" a turn")) lines_.push_back(line);
  }

  /** Returns the page; `end`: its last line, the broken law or success. */
  std::string page(const std::string& end, bool broken) {
    const size_t from = lines_.size() > kMaxSteps ? lines_.size() - kMaxSteps : 0;
    std::string rows;
    for (size_t i = 0; i < lines_.size(); ++i) {
      const std::string words = textOf(lines_[i]);
      // Also for lines that are not drawn: they name a sprite's thrower.
      const std::string name = actorOf(words);
      if (i < from) continue;
      const size_t column = columns_.emplace(name, columns_.size()).first->second;
      const char* const kind = words == "a kill" || words == "a power cut" ? "crash"
                               : words.starts_with("a server begins")      ? "begin"
                                                                           : "step";
      rows += std::string("<tr class=") + kind + "><th>" +
              lines_[i].substr(0, lines_[i].find(' ', 10)) + "</th>";
      for (size_t before = 0; before < column; ++before) rows += "<td></td>";
      rows += "<td colspan=99>" + escaped(words) + "</td></tr>\n";
    }
    std::vector<std::string> names(columns_.size());
    for (const auto& [name, column] : columns_) names[column] = name;
    std::string head = "<tr><th></th>";
    for (const std::string& name : names) head += "<th>" + name + "</th>";
    return "<!doctype html><html lang=en><meta charset=utf-8><title>" + escaped(end) +
           "</title><style>body{font:13px sans-serif}table{border-collapse:collapse}th,td{height:"
           "18px;min-width:90px;text-align:left;white-space:nowrap}td{border-left:1px solid #ccd;"
           "padding-left:4px;max-width:90px}.begin td{color:#183}.crash td,.law{color:#c22}.crash{"
           "border-top:2px solid #c22}</style><h1>" +
           escaped(end) + "</h1><table>" + head + "</tr>\n" + rows + "</table><p" +
           (broken ? " class=law>" : ">") + escaped(end) + "</p></html>\n";
  }

 private:
  static std::string textOf(const std::string& line) {
    size_t at = line.find_first_not_of(' ');
    for (int i = 0; i < 2 && at != line.npos; ++i) {
      at = line.find_first_not_of(' ', line.find(' ', at));
    }
    return at == line.npos ? line : line.substr(at);
  }

  static std::string escaped(const std::string& raw) {
    std::string text;
    for (const char c : raw) text += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return text;
  }

  /** Returns a step's actor: "client 3", "worker 1", a sprite's thrower, otherwise the server. */
  std::string actorOf(const std::string& words) {
    const size_t end = words.find(' ');
    const std::string first = words.substr(0, end);
    const std::string second =
        end == words.npos ? "" : words.substr(end + 1, words.find(' ', end + 1) - end - 1);
    const bool numbered =
        !second.empty() && second.find_first_not_of("0123456789") == std::string::npos;
    if (first == "sprite" && numbered) return thrower_[second];
    if (first == "number" || words.find("whether number") != words.npos) return "publishers";
    if (words.starts_with("a watcher")) return "watchers";
    if (words.find("disk") != words.npos || words.starts_with("a write") ||
        words.starts_with("a sync")) {
      return "disk";
    }
    if (!numbered || first == "seed") return "server";
    std::string name = first + " " + second;
    const size_t thrown = words.find(" throws ");
    if (thrown != words.npos) {
      thrower_[words.substr(thrown + 8, words.find(',', thrown) - thrown - 8)] = name;
    }
    return name;
  }

  std::vector<std::string> lines_;
  std::map<std::string, size_t> columns_ = {{"server", 0}, {"disk", 1}};
  std::map<std::string, std::string> thrower_;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_DRAWING_H_
