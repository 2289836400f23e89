// The smallest program that throws a sprite and catches one:
//
//   sprites_hello [server-url]
//
// Alone in the torus it catches its own: the torus wraps.
#include <sprites/client.h>
#include <sprites/sprite.h>

#include <chrono>
#include <exception>
#include <future>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  try {
    std::promise<std::string> caught;
    bool first = true;

    sprites::Options options;
    if (argc > 1) options.server = argv[1];
    options.onState = [](const sprites::StateChange& change) {
      std::cout << sprites::toString(change.state) << ' ' << change.reason << std::endl;
    };
    options.onSprite = [&](sprites::Edge edge, const std::string& json) {
      const auto sprite = sprites::readSprite(json);
      if (!sprite || !first) return;  // a stranger wrote it: only what reads well is looked at
      first = false;
      caught.set_value(sprite->picture + " by the " + sprites::toString(edge) + " edge");
    };
    sprites::Client client(options);
    client.start();

    sprites::Sprite sprite;
    sprite.id = sprites::newSpriteId();
    sprite.picture = "rocket";
    sprite.across = 1.5;
    client.throwSprite(sprites::Edge::kLeft, sprites::writeSprite(sprite),
                       [](const sprites::ThrowResult& result) {
                         std::cout << "thrown: " << sprites::toString(result.outcome) << ' '
                                   << result.detail << std::endl;
                       });

    auto future = caught.get_future();
    const bool came = future.wait_for(std::chrono::seconds(15)) == std::future_status::ready;
    if (came) std::cout << "caught: " << future.get() << std::endl;
    client.close(std::chrono::seconds(6));
    return came ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
}
