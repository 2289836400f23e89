// What each *_wrap.cc adds to the addon's exports.
#ifndef SPRITES_WRAPS_H_
#define SPRITES_WRAPS_H_

#include <nan.h>

#include <functional>

namespace server {

class Arena;
class Pool;
class AddressLimits;
class RelayHandler;
class Door;
class Feeds;

void initArena(v8::Local<v8::Object> target);
void initPool(v8::Local<v8::Object> target);
void initDoor(v8::Local<v8::Object> target);
void initAddressLimits(v8::Local<v8::Object> target);
void initRelay(v8::Local<v8::Object> target);
void initLoopDelays(v8::Local<v8::Object> target);
void initSystem(v8::Local<v8::Object> target);
void initFeeds(v8::Local<v8::Object> target);
void initWorld(v8::Local<v8::Object> target);

/** What became of a turn that was to be written to the journal. */
enum class TurnEnd {
  kSend,  // its answers may go out; those of parked polls have, or wait for the disk
  kWait,  // not before the disk has it: the listener is told
  kDrop   // it could not be written: nothing of it may be answered, whether it holds nobody knows
};

/** Ends a turn of the pool inside a Pool: writes the journal, answers the parked polls. */
TurnEnd endTurn(v8::Local<v8::Value> pool);

/**
 * Has `released(end)` called when a turn that was kWait has ended: kSend, and its polls are
 * answered by then; or kDrop.
 */
void onReleased(v8::Local<v8::Value> pool, std::function<void(TurnEnd)> released);

/** Has `ended` called after every turn that was none of the front door's: a tick, JavaScript's. */
void onEnded(v8::Local<v8::Value> pool, std::function<void()> ended);

/** The pool inside a Pool. */
Pool* poolOf(v8::Local<v8::Value> pool);

/** The arenas inside an Arena. */
Arena* arenaOf(v8::Local<v8::Value> arena);

/** The table inside a Feeds. */
Feeds* feedsOf(v8::Local<v8::Value> feeds);

/** Has `stepped` called after each share of a turn that the watchers of a Feeds were answered in.
 */
void onStepped(v8::Local<v8::Value> feeds, std::function<void()> stepped);

/** The native limits inside a JavaScript AddressLimits. */
AddressLimits* addressLimitsOf(v8::Local<v8::Value> limits);

/** The worker's end of the relay inside a Relay. */
RelayHandler* relayOf(v8::Local<v8::Value> relay);

/**
 * Has the answers that a Relay gets told to `door`, and `lost` called when the main process is
 * gone.
 */
void answerTo(v8::Local<v8::Value> relay, Door* door);

}  // namespace server

#endif  // SPRITES_WRAPS_H_
