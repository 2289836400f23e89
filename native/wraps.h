// What each *_wrap.cc adds to the addon's exports.
#ifndef SPRITES_WRAPS_H_
#define SPRITES_WRAPS_H_

#include <nan.h>

namespace sprites {

class Clients;
class Sources;
class RelayDesk;
class Front;

void initTorus(v8::Local<v8::Object> target);
void initReaders(v8::Local<v8::Object> target);
void initPool(v8::Local<v8::Object> target);
void initFront(v8::Local<v8::Object> target);
void initSources(v8::Local<v8::Object> target);
void initRelay(v8::Local<v8::Object> target);

/** The clients inside a Pool. */
Clients* clientsOf(v8::Local<v8::Value> pool);

/** The sources inside a Sources. */
Sources* sourcesOf(v8::Local<v8::Value> sources);

/** The worker's end of the relay inside a Relay. */
RelayDesk* relayOf(v8::Local<v8::Value> relay);

/** Has the replies that a Relay gets settle the requests of `front`. */
void settleBy(v8::Local<v8::Value> relay, Front* front);

}  // namespace sprites

#endif  // SPRITES_WRAPS_H_
