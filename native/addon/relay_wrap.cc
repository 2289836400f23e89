// Relay and Reservation: what a worker has of the pool, and the port it shares. Conversion only.
#include "convert.h"
#include "door/door.h"
#include "door/listener.h"
#include "relay/relay.h"
#include "wraps.h"

namespace server {

using v8::Array;
using v8::Function;
using v8::Local;
using v8::Number;
using v8::Object;
using v8::Value;

/** The worker's end of the relay, for the requests that Node's server has read. */
class RelayObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Relay", create,
                {
                    {"join", join},
                    {"throw", throwSprite},
                    {"leave", leave},
                    {"refuse", refuse},
                    {"refused", refused},
                });
  }

 private:
  friend RelayHandler* relayOf(Local<Value> relay);
  friend void replyTo(Local<Value> relay, Door* door);

  RelayObject(uint32_t maxSprite, Local<Function> onReply)
      : onReply_(onReply), resource_("sprites:relay"), handler_(maxSprite) {}

  void reply(Ticket ticket, std::optional<Outcome> outcome, const Id& id) {
    Nan::HandleScope scope;
    const auto* bytes = reinterpret_cast<const char*>(id.bytes);
    const auto number = Nan::New(static_cast<uint32_t>(outcome.value_or(Outcome::kOk)));
    Local<Value> arguments[] = {Nan::New(ticket.generation),
                                outcome ? number.As<Value>() : Nan::Undefined().As<Value>(),
                                Nan::CopyBuffer(bytes, sizeof id.bytes).ToLocalChecked()};
    onReply_.Call(3, arguments, &resource_);
  }

  static Ticket ticketOf(Local<Value> number) { return {kScriptConnection, uint32Of(number)}; }

  // new Relay(maxSprite, onReply(number, outcome, id)); the front door is given it; an
  // outcome that is undefined may not be answered
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* object = new RelayObject(uint32Of(info[0]), info[1].As<Function>());
    object->Wrap(info.This());
    info.GetReturnValue().Set(info.This());
  }

  // join(number, address)
  static void join(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<RelayObject>(info)->handler_.join(ticketOf(info[0]), addressOf(info[1]), nullptr);
  }

  // throw(number, id, edge, n or -1, sprite) → outcome, if it is refused at once
  static void throwSprite(const Nan::FunctionCallbackInfo<Value>& info) {
    const double number = numberOf(info[3]);
    const auto outcome = unwrap<RelayObject>(info)->handler_.throwSprite(
        ticketOf(info[0]), idOf(info[1]), Edge{static_cast<uint8_t>(uint32Of(info[2]))},
        number < 0 ? kNoNumber : static_cast<uint64_t>(number), bytesOf(info[4]));
    if (outcome) info.GetReturnValue().Set(static_cast<uint32_t>(*outcome));
  }

  // leave(number, id)
  static void leave(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<RelayObject>(info)->handler_.leave(ticketOf(info[0]), idOf(info[1]));
  }

  // refuse(outcome): counts a request that JavaScript refuses
  static void refuse(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<RelayObject>(info)->handler_.refuse(Outcome{static_cast<uint8_t>(uint32Of(info[0]))});
  }

  // refused() → how many requests were refused on this side, in the order of the outcomes
  static void refused(const Nan::FunctionCallbackInfo<Value>& info) {
    Local<Array> result = Nan::New<Array>(kOutcomes);
    uint32_t outcome = 0;
    for (const uint64_t count : unwrap<RelayObject>(info)->handler_.refused()) {
      Nan::Set(result, outcome++, Nan::New<Number>(static_cast<double>(count))).Check();
    }
    info.GetReturnValue().Set(result);
  }

  Nan::Callback onReply_;
  Nan::AsyncResource resource_;
  RelayHandler handler_;
};

RelayHandler* relayOf(Local<Value> relay) {
  return &Nan::ObjectWrap::Unwrap<RelayObject>(relay.As<Object>())->handler_;
}

void replyTo(Local<Value> relay, Door* door) {
  auto* object = Nan::ObjectWrap::Unwrap<RelayObject>(relay.As<Object>());
  object->handler_.setOnReply([object](Ticket ticket, std::optional<Outcome> outcome,
                                       const Id& id) { object->reply(ticket, outcome, id); },
                              [door](Ticket ticket, std::optional<Outcome> outcome, const Id& id) {
                                door->complete(ticket, outcome, &id);
                              });
}

/** A port that is held for the workers to share. */
class Reservation : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Reservation", create,
                {
                    {"close", close},
                });
  }

 private:
  // new Reservation(address, port) with its `port`; throws with code and syscall
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* object = new Reservation;
    const auto port = static_cast<uint16_t>(uint32Of(info[1]));
    const int error = object->listener_.reserve(textOf(info[0]).c_str(), port);
    if (error != 0) {
      delete object;
      return Nan::ThrowError(Nan::ErrnoException(error, "bind"));
    }
    object->Wrap(info.This());
    set(info.This(), "port", object->listener_.port());
    info.GetReturnValue().Set(info.This());
  }

  static void close(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<Reservation>(info)->listener_.close();
  }

  Listener listener_;
};

void initRelay(Local<Object> target) {
  RelayObject::init(target);
  Reservation::init(target);
}

}  // namespace server
