// Relay and Reservation: what a worker has of the pool, and the port it shares. Conversion only.
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "callback_resource.h"
#include "convert.h"
#include "http/door.h"
#include "http/listener.h"
#include "relay/relay.h"
#include "wraps.h"

namespace server {

/** The worker's end of the relay, for the requests that JavaScript handles. */
class RelayObject : public Nan::ObjectWrap, private LateAnswers {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Relay", create,
                {
                    {"join", join},
                    {"throw", throwSprite},
                    {"leave", leave},
                    {"poll", poll},
                    {"drop", drop},
                    {"place", place},
                    {"counts", counts},
                    {"refuse", refuse},
                    {"refused", refused},
                });
  }

 private:
  friend RelayHandler* relayOf(Local<Value> relay);
  friend void answerTo(Local<Value> relay, Door* door);

  RelayObject(uint32_t maxSprite, Local<Function> onReply, Local<Function> onLost)
      : onReply_(onReply), onLost_(onLost), resource_("sprites:relay"), handler_(maxSprite) {
    handler_.onLost([this] {
      Nan::HandleScope scope;
      onLost_.Call(0, nullptr, resource_.get());
    });
  }

  void reply(Ticket ticket, std::optional<Outcome> outcome, std::string_view bytes) {
    Nan::HandleScope scope;
    const auto number = Nan::New(static_cast<uint32_t>(outcome.value_or(Outcome::kOk)));
    Local<Value> arguments[] = {Nan::New(ticket.generation),
                                outcome ? number.As<Value>() : Nan::Undefined().As<Value>(),
                                Nan::CopyBuffer(bytes.data(), bytes.size()).ToLocalChecked()};
    onReply_.Call(3, arguments, resource_.get());
  }

  void complete(Ticket ticket, std::optional<Outcome> outcome, const Id* id) override {
    if (id == nullptr) return reply(ticket, outcome, {});
    reply(ticket, outcome, {reinterpret_cast<const char*>(id->bytes), sizeof id->bytes});
  }

  void answer(Ticket ticket, std::string_view body) override { reply(ticket, Outcome::kOk, body); }

  // Nobody asks for it.
  void over(Ticket) override {}

  // JavaScript has no connections.
  void tooMany(Ticket) override {}

  static Ticket ticketOf(Local<Value> number) { return {kScriptConnection, uint32Of(number)}; }

  // new Relay(maxSprite, onReply(number, outcome, id or answer), onLost()); the front door is given
  //     it; an outcome that is undefined may not be answered
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* object =
        new RelayObject(uint32Of(info[0]), info[1].As<Function>(), info[2].As<Function>());
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

  // poll(number, id, ack, hold or 0)
  static void poll(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<RelayObject>(info)->handler_.poll(ticketOf(info[0]), idOf(info[1]),
                                             static_cast<uint64_t>(numberOf(info[2])),
                                             uint32Of(info[3]));
  }

  // drop(number): the connection of that poll is gone
  static void drop(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<RelayObject>(info)->handler_.drop(0, ticketOf(info[0]));
  }

  // place(number, id)
  static void place(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<RelayObject>(info)->handler_.place(ticketOf(info[0]), idOf(info[1]), nullptr);
  }

  // counts(number)
  static void counts(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<RelayObject>(info)->handler_.counts(ticketOf(info[0]));
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
  Nan::Callback onLost_;
  CallbackResource resource_;
  RelayHandler handler_;
};

RelayHandler* relayOf(Local<Value> relay) {
  return &Nan::ObjectWrap::Unwrap<RelayObject>(relay.As<Object>())->handler_;
}

void answerTo(Local<Value> relay, Door* door) {
  auto* object = Nan::ObjectWrap::Unwrap<RelayObject>(relay.As<Object>());
  object->handler_.tell(object, door);
}

/** A port that is held for the workers to share: a socket for each, which the kernel spreads over.
 */
class Reservation : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Reservation", create,
                {
                    {"listen", listen},
                    {"close", close},
                });
  }

 private:
  // new Reservation(address, port, sockets) with its `port` and `descriptors`, which stay its own;
  //     throws with code and syscall
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto object = std::make_unique<Reservation>();
    const std::string address = textOf(info[0]);
    auto port = static_cast<uint16_t>(uint32Of(info[1]));
    const uint32_t count = uint32Of(info[2]);
    Local<Array> descriptors = Nan::New<Array>(static_cast<int>(count));
    for (uint32_t i = 0; i < count; ++i) {
      Listener& listener = object->listeners_.emplace_back();
      const int error = i == 0 ? listener.reserveFirst(address.c_str(), port)
                               : listener.reserve(address.c_str(), port);
      if (error != 0) return Nan::ThrowError(Nan::ErrnoException(error, "bind"));
      port = listener.port();
      Nan::Set(descriptors, i, Nan::New(listener.fd())).Check();
    }
    object.release()->Wrap(info.This());
    set(info.This(), "port", port);
    set(info.This(), "descriptors", descriptors);
    info.GetReturnValue().Set(info.This());
  }

  // listen(backlog, keepIdle): from now on newcomers wait there; throws with code and syscall
  static void listen(const Nan::FunctionCallbackInfo<Value>& info) {
    for (Listener& listener : unwrap<Reservation>(info)->listeners_) {
      const int error = listener.listenOn(static_cast<int>(uint32Of(info[0])),
                                          static_cast<int>(uint32Of(info[1])));
      if (error != 0) return Nan::ThrowError(Nan::ErrnoException(error, "listen"));
    }
  }

  static void close(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<Reservation>(info)->listeners_.clear();
  }

  std::deque<Listener> listeners_;
};

void initRelay(Local<Object> target) {
  RelayObject::init(target);
  Reservation::init(target);
}

}  // namespace server
