// Tests that need no server: JSON, sprites, pictures, answers, options.
//
//   sprites_unit test/vectors/sprites.json test/vectors/client.json test/vectors/feeds.json
//
// Prints one line for each check that fails and ends with their number (at most 100).
#ifdef __linux__
#include <netdb.h>
#include <sys/resource.h>
#endif

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "answers.h"
#include "checks.h"
#include "engine_base.h"
#include "feed_patch.h"
#include "feed_table.h"
#include "grant.h"
#include "json.h"
#include "sprites/client.h"
#include "sprites/feeds.h"
#include "sprites/sprite.h"

#ifdef __linux__
static std::atomic<bool> isNameLookedUp{false};

/** Replaces the system's function for libcurl: finds no name, after a delay. */
extern "C" int getaddrinfo(const char* /*node*/, const char* /*service*/, const addrinfo* /*hints*/,
                           addrinfo** /*found*/) {
  isNameLookedUp = true;
  std::this_thread::sleep_for(std::chrono::seconds(30));
  return EAI_AGAIN;
}
#endif

namespace {

namespace json = sprites::json;

using sprites::Checks;

template <typename Error, typename Call>
bool throws(Call call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

sprites::Sprite plainSprite() {
  sprites::Sprite sprite;
  sprite.id = "a";
  sprite.picture = "ball";
  return sprite;
}

void checkJson(Checks& check) {
  for (const char* good : {"0", "-0", "1.5e3", "\"\"", "[]", "{}", " [1, 2 ,{\"a\":null}] ", "true",
                           "\"\\u00e9\\n\\\\\"", "{\"a\":{\"b\":[[]]}}", "1E-2"}) {
    check(json::value(good).has_value(), std::string("is JSON: ") + good);
  }
  for (const char* bad :
       {"",        " ",           "01",   "1.",      ".5",         "+1",    "-",
        "1e",      "[1,]",        "[,1]", "{\"a\"}", "{\"a\":1,}", "{a:1}", "'a'",
        "\"\\x\"", "\"\\u12g4\"", "\"",   "\"\n\"",  "tru",        "[",     "{",
        "[1 2]",   "{} {}",       "nul",  "\"\\",    "\"\\u12",    "[1}",   "NaN"}) {
    check(!json::value(bad).has_value(), std::string("is no JSON: ") + bad);
  }
  const auto nestedArrays = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  check(json::value(nestedArrays(json::kMaxDepth)).has_value(), "as deep as allowed");
  check(!json::value(nestedArrays(json::kMaxDepth + 1)).has_value(), "too deep");
  check(!json::value(std::string(1000000, '[')).has_value(), "a million brackets");

  json::Members walk(" {\"a\\\"\" : [1, 2] ,\"b\":{}} ");
  std::string_view name;
  std::string_view value;
  check(walk.next(&name, &value) && name == "a\\\"" && value == "[1, 2]", "a member as written");
  check(walk.next(&name, &value) && name == "b" && value == "{}", "the next one");
  check(!walk.next(&name, &value) && walk.ok() && !walk.next(&name, &value), "and the end");
  for (const char* bad : {"", "[]", "{", "{\"a\"", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}",
                          "{\"a\" 1}", "{a:1}", "{\"a\":x}", "{\"a\":1 \"b\":2}"}) {
    json::Members broken(bad);
    while (broken.next(&name, &value)) {
    }
    check(!broken.ok(), std::string("no object: ") + bad);
  }
  for (const char* bad : {"", "{}", "[", "[1", "[1,", "[1,]", "[1 2]", "[,1]"}) {
    json::Elements broken(bad);
    while (broken.next(&value)) {
    }
    check(!broken.ok(), std::string("no array: ") + bad);
  }
  check(json::raw("\"a\\n\"") == "a\\n" && json::raw("12").empty() && json::raw("\"").empty(),
        "a string as written");

  check(json::string("\"\\ud83d\\ude80\"") == "\xF0\x9F\x9A\x80", "a surrogate pair");
  check(json::string("\"\\ud83dx\"") == "\xEF\xBF\xBDx", "a lone surrogate");
  check(json::string("\"\\ud83d\\u0041\"") ==
            "\xEF\xBF\xBD"
            "A",
        "a high surrogate before another escape");
  check(json::string("\"\\\"\\/\\b\"") == "\"/\b", "short escapes");
  check(!json::string("12"), "a number is no string");

  check(json::number("0.1e1") == 1.0, "0.1e1");
  check(json::number("1000000e-6") == 1.0, "1000000e-6");
  check(json::number("20.00000000000000000001") == 20.0, "more digits than a double has");
  check(json::number("-2.5") == -2.5, "-2.5");
  check(!json::number("1e999"), "too large for a double");
  check(json::number("1e-999") == 0.0, "too small for a double");
  check(json::number("0e999999999999") == 0.0, "zero with any exponent");
  check(!json::number("\"1\""), "a string is no number");
  check(json::count("9007199254740991") == uint64_t{9007199254740991}, "2^53-1");
  check(!json::count("9007199254740992"), "2^53");
  check(!json::count("1.0") && !json::count("-1") && !json::count("01"), "no whole numbers");

  check(json::isUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x80"), "UTF-8 of every length");
  for (const char* bad : {"\x80", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xFF"}) {
    check(!json::isUtf8(bad), "no UTF-8");
  }
}

std::string textOf(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/** Returns the member with that name, as JSON. */
std::string_view member(std::string_view object, const char* wanted) {
  std::string_view found;
  json::members(object, [&](const std::string& name, std::string_view slice) {
    if (name == wanted) found = slice;
    return true;
  });
  return found;
}

/** Returns the text of the member with that name, unescaped. */
std::string textIn(std::string_view object, const char* wanted) {
  return json::string(member(object, wanted)).value_or("");
}

/** Checks the vectors for all readers of sprites. */
void checkVectors(Checks& check, const std::string& file) {
  const std::string all = textOf(file);
  int vectorCount = 0;
  json::elements(json::value(all).value_or(""), [&](std::string_view vector) {
    const std::string name = textIn(vector, "name");
    const std::string sprite = textIn(vector, "json");
    const bool ok = member(vector, "ok") == "true";
    vectorCount++;
    std::string why;
    const auto read = sprites::readSprite(sprite, &why);
    check(read.has_value() == ok, "vector: " + name + (why.empty() ? "" : " (" + why + ")"));
    check(read.has_value() == why.empty(), "a reason with each refusal: " + name);
    if (!read) return true;
    const auto reread = sprites::readSprite(sprites::writeSprite(*read));
    check(reread && reread->id == read->id && reread->picture == read->picture &&
              reread->photo == read->photo && reread->name == read->name && reread->by == read->by,
          "written and read again: " + name);
    const std::string_view size = member(vector, "size");
    if (size.empty()) return true;
    const auto picture = read->photo.empty() ? sprites::decodePicture(read->picture)
                                             : sprites::decodePhoto(read->photo);
    check(picture && size == "[" + std::to_string(picture->width) + "," +
                                 std::to_string(picture->height) + "]",
          "its size: " + name);
    return true;
  });
  check(vectorCount >= 20, "there are vectors");
}

void checkSprites(Checks& check) {
  sprites::Sprite sprite = plainSprite();
  sprite.at = 0.25;
  sprite.across = 1.5;
  sprite.along = -0.000001;
  sprite.name = "a \"b\"\n\xF0\x9F\x9A\x80";
  sprite.by = "Ada";
  check(sprites::writeSprite(sprite) ==
            "{\"id\":\"a\",\"picture\":\"ball\",\"at\":0.25,\"speed\":[1.5,-0.000001],"
            "\"name\":\"a \\\"b\\\"\\u000a\xF0\x9F\x9A\x80\",\"by\":\"Ada\"}",
        "how a sprite is written: " + sprites::writeSprite(sprite));
  sprite.along = -1e-9;
  check(sprites::writeSprite(sprite).find("[1.5,0]") != std::string::npos ||
            sprites::writeSprite(sprite).find("[1.5,-0]") != std::string::npos,
        "a tiny speed is zero");

  // writeSprite() refuses the sprites that readSprite() refuses, and numbers that JSON lacks.
  const auto checkRefused = [&check](const char* what, void (*spoil)(sprites::Sprite*)) {
    sprites::Sprite bad = plainSprite();
    spoil(&bad);
    check(throws<std::invalid_argument>([&bad] { sprites::writeSprite(bad); }), what);
  };
  checkRefused("no id", [](sprites::Sprite* bad) { bad->id.clear(); });
  checkRefused("a name that is no UTF-8", [](sprites::Sprite* bad) { bad->name = "\xFF"; });
  checkRefused("a speed of NaN", [](sprites::Sprite* bad) { bad->along = std::stod("nan"); });

  check(sprites::newSpriteId() != sprites::newSpriteId(), "ids differ");
  check(sprites::newSpriteId().size() == 22, "an id's length");
  check(!sprites::readSprite("{\"id\":\"\xFF\",\"picture\":\"ball\",\"at\":0,\"speed\":[0,0]}"),
        "bytes that are no UTF-8");
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out.push_back(static_cast<char>(value));
  return out;
}

std::string png(unsigned width, unsigned height) {
  std::string file = "\x89PNG\r\n\x1a\n" + bytes({0, 0, 0, 13}) + "IHDR";
  for (const unsigned side : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8)
      file.push_back(static_cast<char>(side >> shift & 255));
  }
  return file + bytes({8, 6, 0, 0, 0});
}

void checkPictures(Checks& check) {
  using sprites::PictureType;
  sprites::Sprite sprite = plainSprite();
  const std::string without = sprites::writeSprite(sprite);
  sprite.photo = sprites::encodePicture(sprites::PictureType::kPng, png(2048, 9));
  const std::string whole = sprites::writeSprite(sprite);
  const auto reread = sprites::readSprite(whole);
  check(reread && reread->photo == sprite.photo, "a photo is read again");
  check(sprites::writeSprite(sprite, whole.size()) == whole, "a photo that just fits");
  check(sprites::writeSprite(sprite, whole.size() - 1) == without, "one that does not stays out");

  for (size_t length = 0; length < 8; length++) {
    const std::string file = png(3, 4) + std::string(length, '\xA5');
    const auto picture = sprites::decodePicture(sprites::encodePicture(PictureType::kPng, file));
    check(picture && picture->bytes == file && picture->type == PictureType::kPng,
          "a PNG through its data URL");
  }
  check(!sprites::decodePicture("ball"), "a drawn picture is no data URL");
}

void checkAnswers(Checks& check) {
  const auto place = sprites::readPlace("{\"row\":3,\"column\":7,\"rows\":11,\"columns\":10}");
  check(place && place->row == 3 && place->column == 7 && place->rows == 11 && place->columns == 10,
        "where it is");
  for (const char* bad : {"{}", "[]", "{\"row\":3,\"column\":7,\"rows\":11}",
                          "{\"row\":11,\"column\":7,\"rows\":11,\"columns\":10}",
                          "{\"row\":-1,\"column\":7,\"rows\":11,\"columns\":10}",
                          "{\"row\":0,\"column\":0,\"rows\":5000000000,\"columns\":10}"}) {
    check(!sprites::readPlace(bad), std::string("no place: ") + bad);
  }
  const auto counts = sprites::readStatus(
      " {\"clients\":5,\"thrown\":9,\"acked\":6,\"waiting\":2,\"lost\":1,\"more\":{}} ");
  check(counts && counts->clients == 5 && counts->lost == 1 && counts->json.front() == '{',
        "counts");
  check(!sprites::readStatus("{\"clients\":5}"), "half of the counts");
  check(sprites::opposite(sprites::Edge::kUp) == sprites::Edge::kDown &&
            sprites::opposite(sprites::Edge::kDown) == sprites::Edge::kUp &&
            sprites::opposite(sprites::Edge::kLeft) == sprites::Edge::kRight &&
            sprites::opposite(sprites::Edge::kRight) == sprites::Edge::kLeft,
        "opposite edges");
  check(SPRITES_VERSION == std::string(sprites::version()), "headers and library are of a version");
  check(SPRITES_VERSION_NUMBER >= SPRITES_VERSION_AT(0, 1, 0) &&
            SPRITES_VERSION_AT(1, 0, 0) > SPRITES_VERSION_AT(0, 999, 999),
        "versions can be compared");
  const auto problem = sprites::readProblem("{\"type\":\"urn:sprites:x\",\"title\":\"T\"}");
  check(problem.type == "urn:sprites:x" && problem.detail == "T", "a problem");
}

/** Checks the vectors for all clients: the waits, and the places to resume. */
void checkClientVectors(Checks& check, const std::string& file) {
  const std::string all = textOf(file);
  int vectorCount = 0;
  json::elements(member(all, "waits"), [&](std::string_view vector) {
    const auto failures = json::count(member(vector, "failures"));
    const auto most = json::count(member(vector, "most"));
    const auto wait = sprites::longestWait(
        failures.value_or(0), json::count(member(vector, "clients")), sprites::kMaxBackoff);
    check(most && wait.count() == static_cast<long>(*most), "a wait: " + std::string(vector));
    vectorCount++;
    return true;
  });
  json::elements(member(all, "resumes"), [&](std::string_view vector) {
    const auto resume = sprites::readResume(member(vector, "resume"));
    check(resume.has_value() == (member(vector, "taken") == "true"), std::string(vector));
    if (resume) {
      const auto reread = sprites::readResume(sprites::writeResume(*resume));
      check(reread && reread->id == resume->id && reread->ack == resume->ack &&
                reread->maxSprite == resume->maxSprite && reread->transient == resume->transient,
            "written and read again: " + std::string(vector));
    }
    vectorCount++;
    return true;
  });
  check(vectorCount >= 20, "there are vectors");
}

void checkOptions(Checks& check) {
  const auto refused = [](void (*spoil)(sprites::Options*)) {
    sprites::Options options;
    spoil(&options);
    return throws<std::invalid_argument>([&options] { sprites::Client client(options); });
  };
  check(!refused([](sprites::Options*) {}), "the defaults are good");
  sprites::Client closed{sprites::Options()};
  closed.start();
  check(closed.timeout() == sprites::Millis(60000), "its own thread takes the turns");
  check(closed.close(sprites::Millis::max()), "the longest patience");
  sprites::Client hasty{sprites::Options()};
  check(hasty.close(sprites::Millis::min()), "the shortest patience");
  check(refused([](sprites::Options* o) { o->server = "ftp://x"; }), "an ftp URL");
  check(refused([](sprites::Options* o) { o->server = ""; }), "no URL");
  check(refused([](sprites::Options* o) { o->server = "http://x/?a=b"; }), "a query in the URL");
  check(refused([](sprites::Options* o) { o->server = "http://u:p@x"; }), "a user in the URL");
  check(refused([](sprites::Options* o) { o->hold = 4; }), "a short hold");
  check(refused([](sprites::Options* o) { o->maxPendingThrows = 0; }), "no throws");
  check(refused([](sprites::Options* o) { o->answerTimeout = sprites::Millis(0); }), "no time");

  check(refused([](sprites::Options* o) { o->headers = {"no header"}; }), "no header");
  check(refused([](sprites::Options* o) { o->headers = {"A: b\r\nC: d"}; }), "two headers in one");
  check(refused([](sprites::Options* o) { o->resume = sprites::Resume(); }), "no place to resume");
  const std::function<void(sprites::Edge, const std::string&)> emptyFunction;
  check(!sprites::SpriteCallback(emptyFunction), "an empty function is no callback");

  sprites::Client client(sprites::Options{});
  client.start();
  check(throws<std::logic_error>([&client] { client.fd(); }), "a descriptor of a started one");
  check(throws<std::logic_error>([&client] { client.start(); }), "started twice");
  check(throws<std::logic_error>([&client] { client.perform(sprites::Millis(0)); }),
        "started and driven");
  sprites::Options nowhere;
  nowhere.server = "http://127.0.0.1:9";
  sprites::Client drivenClient(nowhere);
  std::thread loop([&drivenClient] {
    while (drivenClient.perform(sprites::Millis(60000))) {
    }
  });
  while (drivenClient.state() == sprites::State::kLeft) std::this_thread::yield();
  check(!throws<std::logic_error>([&drivenClient] { drivenClient.close(sprites::Millis(9000)); }) &&
            drivenClient.state() == sprites::State::kLeft,
        "closed while another thread drives it");
  loop.join();
  sprites::Client watchedClient(sprites::Options{});
  std::thread wakingThread([&watchedClient] { watchedClient.wake(); });
  check(watchedClient.fd() == watchedClient.fd(), "a descriptor while another thread wakes it");
  wakingThread.join();
  sprites::Client idle(sprites::Options{});
  check(idle.close(sprites::Millis(1000)), "leaving before anything was done");
  check(!idle.throwSprite(sprites::Edge::kUp, "{}", nullptr), "no throw after leaving");
  check(idle.state() == sprites::State::kLeft, "it has left");
}

#ifdef __linux__
void checkSystem(Checks& check) {
  sprites::Options options;
  options.server = "http://nowhere.invalid";
  options.proxy = "";
  sprites::Client client(options);
  for (int i = 0; i < 1000 && !isNameLookedUp; i++) client.perform(sprites::Millis(10));
  const auto begin = std::chrono::steady_clock::now();
  check(client.close(sprites::Millis(9000)) &&
            std::chrono::steady_clock::now() - begin < std::chrono::seconds(20),
        "its end waits for no name that is looked up");

  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlimit onlyStandardFiles{3, files.rlim_max};
  setrlimit(RLIMIT_NOFILE, &onlyStandardFiles);
  check(throws<std::runtime_error>([&options] { sprites::Client unwakeable(options); }),
        "without descriptors none that can't be woken");
  setrlimit(RLIMIT_NOFILE, &files);
}
#endif

/** Checks the vectors of patches for all clients. */
void checkFeedVectors(Checks& check, const std::string& file) {
  const std::string all = textOf(file);
  int patchCount = 0;
  // Operations that only a publisher may send fit no value.
  for (const char* section : {"patches", "publications"}) {
    json::elements(member(all, section), [&](std::string_view each) {
      std::optional<std::string> result;
      const std::string_view wanted = member(each, "result");
      if (!wanted.empty() && std::string(section) == "patches") result = std::string(wanted);
      check(sprites::applyPatch(member(each, "value"), member(each, "patch")) == result,
            "patch: " + textIn(each, "why"));
      patchCount++;
      return true;
    });
  }
  check(patchCount > 30, "there are patches");
}

void checkFeeds(Checks& check) {
  // A patch that would take too long is given up: the whole value is asked for.
  std::string deep = "[0";
  for (int i = 0; i < 200000; i++) deep += ",0";
  deep += "]";
  std::string path = "/0";
  for (int i = 0; i < 60; i++) path += "/0";
  deep.insert(0, 60, '[').append(60, ']');
  std::string patch = "[";
  for (int i = 0; i < 4; i++) {
    patch.append(i > 0 ? "," : "").append(R"({"op":"replace","path":")").append(path);
    patch += R"(","value":1})";
  }
  check(!sprites::applyPatch(deep, patch + "]"), "a patch that would take too long");
  check(throws<std::invalid_argument>([] {
          sprites::FeedsOptions options;
          options.server = "ftp://nowhere";
          sprites::Feeds feeds(options);
        }),
        "a server that is none");
  check(throws<std::invalid_argument>([] {
          sprites::FeedsOptions options;
          options.headers = {"no colon"};
          sprites::Feeds feeds(options);
        }),
        "a header that is none");
  sprites::FeedTable table([](uint64_t) { return sprites::Millis(0); });
  for (const auto watch : {1U, 2U, 3U}) table.add(watch, "a", sprites::FeedKind::kValue, {});
  const auto answer = sprites::readFeeds(R"({"items":[{"feed":"a","cursor":"e-1","value":1}]})");
  table.storeAnswer(answer->items, {{"a", "none"}}, {});
  check(table.drainNews().size() == 1, "what many watches are told is kept once");
  sprites::Feeds idle{sprites::FeedsOptions()};
  idle.perform(sprites::Millis(0));
  check(idle.state() == sprites::FeedsState::kIdle, "nothing is watched");
  const auto callback = std::make_shared<std::string>();
  idle.watch("no key",
             [callback](const sprites::FeedChange& change) { *callback = change.problem; });
  idle.perform(sprites::Millis(0));
  check(*callback == "bad-key" && callback.use_count() == 1, "a watch that has ended is not kept");
  for (const bool all : {false, true}) {
    bool called = false;
    std::shared_ptr<void> end(nullptr, [&](void*) {
      idle.close();
      called = true;
    });
    const auto watch = idle.watch("a", [kept = std::move(end)](const sprites::FeedChange&) {});
    if (all) {
      idle.close();
    } else {
      idle.unwatch(watch);
    }
    check(called, "what a watch kept may call as it ends");
  }
  idle.wake();
  idle.timeout();
  const auto begin = std::chrono::steady_clock::now();
  idle.perform(sprites::Millis(3000));
  check(std::chrono::steady_clock::now() - begin < sprites::Millis(3000),
        "a wake-up outlives a look at the time");
}

/** Checks of grants beyond the vectors. */
void checkGrants(Checks& check) {
  const auto headerOf = [](const std::optional<std::string>& grant) {
    return sprites::Grant([&grant] { return grant; }).header();
  };
  check(headerOf(" a.b.c\n") == "Authorization: Bearer a.b.c", "a grant out of a file");
  check(headerOf("") == "" && headerOf(" \n") == "", "no grant now");
  check(!headerOf(std::nullopt), "no grant to be had");
  check(!headerOf("a.b.c\r\nX: y") && !headerOf("a b") && !headerOf("\xC3\xA9"), "no header line");
  check(sprites::Grant(nullptr).header() == "", "a program without grants");
}

/** Reads damaged inputs, from a fixed seed: for the sanitizers, and no faulty sprite may pass. */
void checkMutations(Checks& check) {
  sprites::Sprite sprite = plainSprite();
  sprite.picture =
      "data:image/gif;base64,R0lGODlhCgAKAIAAAAAAAP///yH5BAEAAAAALAUAAgAUAAkAAAICRAEAOw==";
  sprite.name = "n\xC3\xA9";
  sprite.photo = sprite.picture;
  const std::string good = sprites::writeSprite(sprite);
  const std::string poll =
      "{\"seq\":1,\"sprites\":[{\"seq\":1,\"from\":\"up\",\"sprite\":" + good + "}]}";
  std::mt19937 random(20240607);
  int read = 0;
  for (int round = 0; round < 20000; round++) {
    std::string text = round % 2 == 0 ? good : poll;
    for (unsigned i = 0; i <= random() % 4; i++) {
      const size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, 1 + random() % 5);
      } else {
        text[at] =
            random() % 3 == 0 ? "{}[]\",:\\0e-"[random() % 11] : static_cast<char>(random() & 255);
      }
      if (text.empty()) text = "x";
    }
    const auto readBack = sprites::readSprite(text);
    if (readBack) {
      read++;
      sprites::decodePicture(readBack->picture);
      check(!throws<std::invalid_argument>([&readBack] { sprites::writeSprite(*readBack); }),
            "what was read can be written");
    }
    sprites::readPoll(text);
    sprites::readFeeds(text);
    sprites::applyPatch(text, text);
    sprites::applyPatch(good, text);
  }
  check(read > 100, "some mutants are sprites still");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: sprites_unit SPRITES CLIENT FEEDS" << std::endl;
    return 101;
  }
  Checks check;
  checkJson(check);
  checkVectors(check, argv[1]);
  checkClientVectors(check, argv[2]);
  checkFeedVectors(check, argv[3]);
  checkFeeds(check);
  checkGrants(check);
  checkSprites(check);
  checkPictures(check);
  checkAnswers(check);
  checkOptions(check);
#ifdef __linux__
  checkSystem(check);
#endif
  checkMutations(check);
  return check.printSummary();
}
