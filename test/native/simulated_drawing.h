// The drawing of a run of a simulation, for a browser: time goes down, a column each for clients,
// server, workers and disk, a line for each crash, and at the end the law that is broken. Worker 12
// is the second of server 1.
#ifndef TEST_NATIVE_SIMULATED_DRAWING_H_
#define TEST_NATIVE_SIMULATED_DRAWING_H_

#include <map>
#include <string>
#include <vector>

namespace sim {

/** Of the lines of a trace, whose words stand behind time and step. */
class Drawing {
 public:
  /** Steps that are drawn: the last ones. */
  static constexpr size_t kMost = 500;

  /** Turns say nothing. */
  void add(const std::string& line) {
    if (!line.ends_with(" a turn")) lines_.push_back(line);
  }

  /** The page; `end`: the law that is broken, or that none is. */
  std::string page(const std::string& end, bool broken) {
    const size_t from = lines_.size() > kMost ? lines_.size() - kMost : 0;
    // The thrower of a sprite may be said in an earlier line.
    for (size_t i = 0; i < lines_.size(); ++i) place(i, i >= from);
    const int height = kTop + static_cast<int>(lines_.size() - from) * kHigh + 40;
    const int width = xOf(columns_.size()) + 500;
    std::string svg;
    for (const auto& [name, column] : columns_) {
      const std::string x = std::to_string(xOf(column));
      svg.append("<line class=life x1=").append(x).append(" x2=").append(x);
      svg += " y1=" + std::to_string(kTop) + " y2=" + std::to_string(height - 40) + " />";
      svg += text("name", xOf(column), kTop - 10, name);
    }
    for (size_t i = from; i < lines_.size(); ++i) {
      const int y = kTop + static_cast<int>(i - from) * kHigh + kHigh / 2;
      const std::string said = wordsOf(lines_[i]);
      const int x = xOf(columnOf_[i]);
      const bool crash = said == "a kill" || said == "a power cut";
      const char* const kind = crash                                 ? "crash"
                               : said.starts_with("a server begins") ? "begin"
                                                                     : "step";
      if (crash) {
        svg += "<line class=crash x1=" + std::to_string(kLeft) + " x2=" + std::to_string(width) +
               " y1=" + std::to_string(y) + " y2=" + std::to_string(y) + " />";
      }
      svg += std::string("<circle class=") + kind + " r=4 cx=" + std::to_string(x) +
             " cy=" + std::to_string(y) + " />" +
             text("time", 70, y + 4, lines_[i].substr(0, lines_[i].find(' ', 10))) +
             text(kind, x + 10, y + 4, said);
    }
    svg += text(broken ? "law" : "name", kLeft, height - 12, end);
    return "<!doctype html><html lang=en><meta charset=utf-8><title>" + escaped(end) +
           "</title><style>body{font:13px sans-serif;margin:16px}text{paint-order:stroke;stroke:"
           "#fff;stroke-width:4}.name{text-anchor:middle;font-weight:bold}.time{text-anchor:end;"
           "fill:#667}.life{stroke:#ccd}.step{fill:#246}line.crash{stroke:#c22;stroke-width:2}"
           ".crash{fill:#c22}.begin{fill:#183}circle{stroke:none}.law{fill:#c22;font:bold 16px sans"
           "-serif}svg .name:last-child{text-anchor:start}</style><h1>" +
           escaped(end) + "</h1><svg width=" + std::to_string(width) +
           " height=" + std::to_string(height) + ">" + svg + "</svg></html>\n";
  }

 private:
  static constexpr int kLeft = 120, kTop = 40, kWide = 90, kHigh = 18;

  static int xOf(size_t column) { return kLeft + static_cast<int>(column) * kWide; }

  static std::string wordsOf(const std::string& line) {
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

  static std::string text(const std::string& kind, int x, int y, const std::string& words) {
    return "<text class=" + kind + " x=" + std::to_string(x) + " y=" + std::to_string(y) + ">" +
           escaped(words) + "</text>";
  }

  /** The actor of a step: "client 3", "worker 1", the thrower of a sprite, otherwise the server. */
  std::string nameOf(const std::string& said) {
    const size_t end = said.find(' ');
    const std::string first = said.substr(0, end);
    const std::string second =
        end == said.npos ? "" : said.substr(end + 1, said.find(' ', end + 1) - end - 1);
    const bool numbered =
        !second.empty() && second.find_first_not_of("0123456789") == std::string::npos;
    if (first == "sprite" && numbered) return thrower_[second];
    if (first == "number" || said.find("whether number") != said.npos) return "publishers";
    if (said.starts_with("a watcher")) return "watchers";
    if (said.find("disk") != said.npos || said.starts_with("a write") ||
        said.starts_with("a sync")) {
      return "disk";
    }
    if (!numbered || first == "seed") return "server";
    std::string name = first + " " + second;
    const size_t thrown = said.find(" throws ");
    if (thrown != said.npos) {
      thrower_[said.substr(thrown + 8, said.find(',', thrown) - thrown - 8)] = name;
    }
    return name;
  }

  void place(size_t line, bool drawn) {
    const std::string name = nameOf(wordsOf(lines_[line]));
    columnOf_.push_back(drawn ? columns_.emplace(name, columns_.size()).first->second : 0);
  }

  std::vector<std::string> lines_;
  std::vector<size_t> columnOf_;
  std::map<std::string, size_t> columns_ = {{"server", 0}, {"disk", 1}};
  std::map<std::string, std::string> thrower_;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_DRAWING_H_
