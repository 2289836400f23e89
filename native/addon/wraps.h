// What each *_wrap.cc adds to the addon's exports.
#ifndef SPRITES_WRAPS_H_
#define SPRITES_WRAPS_H_

#include <nan.h>

namespace server {

class Arena;
class Pool;
class AddressLimits;
class Feeds;
class Turn;

void initCanonical(v8::Local<v8::Object> target);
void initArena(v8::Local<v8::Object> target);
void initPool(v8::Local<v8::Object> target);
void initDoor(v8::Local<v8::Object> target);
void initAddressLimits(v8::Local<v8::Object> target);
void initLoopDelays(v8::Local<v8::Object> target);
void initSystem(v8::Local<v8::Object> target);
void initTls(v8::Local<v8::Object> target);
void initFeeds(v8::Local<v8::Object> target);
void initWorld(v8::Local<v8::Object> target);

/** The turn that writes the decisions of a Pool and of the objects attached to it. */
Turn* turnOf(v8::Local<v8::Value> pool);

/** The pool inside a Pool. */
Pool* poolOf(v8::Local<v8::Value> pool);

/** The arenas inside an Arena. */
Arena* arenaOf(v8::Local<v8::Value> arena);

/** The table inside a Feeds. */
Feeds* feedsOf(v8::Local<v8::Value> feeds);

/** The native limits inside a JavaScript AddressLimits. */
AddressLimits* addressLimitsOf(v8::Local<v8::Value> limits);

}  // namespace server

#endif  // SPRITES_WRAPS_H_
