// What each *_wrap.cc adds to the addon's exports.
#ifndef SPRITES_WRAPS_H_
#define SPRITES_WRAPS_H_

#include <nan.h>

namespace server {

class Pool;
class AddressLimits;
class RelayHandler;
class Door;
class Feeds;

void initPool(v8::Local<v8::Object> target);
void initDoor(v8::Local<v8::Object> target);
void initAddressLimits(v8::Local<v8::Object> target);
void initRelay(v8::Local<v8::Object> target);
void initSystem(v8::Local<v8::Object> target);
void initFeeds(v8::Local<v8::Object> target);

/** The pool inside a Pool. */
Pool* poolOf(v8::Local<v8::Value> pool);

/** The table inside a Feeds. */
Feeds* feedsOf(v8::Local<v8::Value> feeds);

/** The native limits inside a JavaScript AddressLimits. */
AddressLimits* addressLimitsOf(v8::Local<v8::Value> limits);

/** The worker's end of the relay inside a Relay. */
RelayHandler* relayOf(v8::Local<v8::Value> relay);

/** Has the replies that a Relay gets complete the requests of `door`. */
void replyTo(v8::Local<v8::Value> relay, Door* door);

}  // namespace server

#endif  // SPRITES_WRAPS_H_
