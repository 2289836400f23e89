// Relay and RelayServer: both ends of the relay as JavaScript objects. Conversion only.
#include <uv.h>

#include "convert.h"
#include "listener.h"
#include "relay.h"
#include "wraps.h"

namespace sprites {

namespace {

using v8::Function;
using v8::FunctionTemplate;
using v8::Local;
using v8::Object;
using v8::Value;

uint64_t microseconds() { return uv_hrtime() / 1000; }

Id idFrom(Local<Value> bytes) {
  Id id;
  memcpy(id.bytes, node::Buffer::Data(bytes), sizeof id.bytes);
  return id;
}

Local<Value> bufferOf(std::string_view bytes) {
  return Nan::CopyBuffer(bytes.data(), bytes.size()).ToLocalChecked();
}

}  // namespace

class RelayObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    Local<FunctionTemplate> constructor = Nan::New<FunctionTemplate>(create);
    constructor->SetClassName(Nan::New("Relay").ToLocalChecked());
    constructor->InstanceTemplate()->SetInternalFieldCount(1);
    Nan::SetPrototypeMethod(constructor, "join", join);
    Nan::SetPrototypeMethod(constructor, "throw", throwSprite);
    Nan::SetPrototypeMethod(constructor, "leave", leave);
    Nan::SetPrototypeMethod(constructor, "take", take);
    set(target, "Relay", Nan::GetFunction(constructor).ToLocalChecked());
  }

 private:
  friend RelayDesk* relayOf(Local<Value> relay);

  RelayObject(uint32_t maxSprite, Local<Function> onSettled)
      : onSettled_(onSettled),
        resource_("sprites:relay"),
        desk_(maxSprite, [this](uint32_t number, Outcome outcome, const Id& id) {
          settled(number, outcome, id);
        }) {}

  void settled(uint32_t number, Outcome outcome, const Id& id) {
    Nan::HandleScope scope;
    Local<Value> arguments[] = {
        Nan::New(number), Nan::New(static_cast<uint32_t>(outcome)),
        bufferOf({reinterpret_cast<const char*>(id.bytes), sizeof id.bytes})};
    onSettled_.Call(3, arguments, &resource_);
  }

  static Ticket ticketOf(Local<Value> number) { return {kScriptConnection, uint32Of(number)}; }

  // new Relay(maxSprite, onSettled(number, outcome, id))
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* object = new RelayObject(uint32Of(info[0]), info[1].As<Function>());
    object->Wrap(info.This());
    info.GetReturnValue().Set(info.This());
  }

  // join(number, address)
  static void join(const Nan::FunctionCallbackInfo<Value>& info) {
    Address address;
    Address::read(textOf(info[1]), &address);
    unwrap<RelayObject>(info)->desk_.join(ticketOf(info[0]), address, nullptr);
  }

  // throw(number, id, edge, n or -1, sprite) → outcome if it is settled at once
  static void throwSprite(const Nan::FunctionCallbackInfo<Value>& info) {
    const double number = numberOf(info[3]);
    const auto outcome = unwrap<RelayObject>(info)->desk_.throwSprite(
        ticketOf(info[0]), idFrom(info[1]), Edge{static_cast<uint8_t>(uint32Of(info[2]))},
        number < 0 ? kNoNumber : static_cast<uint64_t>(number), bytesOf(info[4]));
    if (outcome) info.GetReturnValue().Set(static_cast<uint32_t>(*outcome));
  }

  // leave(number, id)
  static void leave(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<RelayObject>(info)->desk_.leave(ticketOf(info[0]), idFrom(info[1]));
  }

  // take() → the frames gathered, or undefined when there are none
  static void take(const Nan::FunctionCallbackInfo<Value>& info) {
    RelayDesk& desk = unwrap<RelayObject>(info)->desk_;
    if (desk.pending().empty()) return;
    info.GetReturnValue().Set(bufferOf(desk.pending()));
    desk.clear();
  }

  Nan::Callback onSettled_;
  Nan::AsyncResource resource_;
  RelayDesk desk_;
};

class RelayServerObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    Local<FunctionTemplate> constructor = Nan::New<FunctionTemplate>(create);
    constructor->SetClassName(Nan::New("RelayServer").ToLocalChecked());
    constructor->InstanceTemplate()->SetInternalFieldCount(1);
    Nan::SetPrototypeMethod(constructor, "serve", serve);
    set(target, "RelayServer", Nan::GetFunction(constructor).ToLocalChecked());
  }

 private:
  RelayServerObject(Local<Object> pool, Local<Object> sources)
      : pool_(pool),
        sources_(sources),
        server_(clientsOf(pool), sourcesOf(sources), microseconds) {}

  // new RelayServer(pool, sources)
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* object = new RelayServerObject(info[0].As<Object>(), info[1].As<Object>());
    object->Wrap(info.This());
    info.GetReturnValue().Set(info.This());
  }

  // serve(bytes) → the replies, or undefined when no frame is whole yet
  static void serve(const Nan::FunctionCallbackInfo<Value>& info) {
    const std::string_view replies =
        unwrap<RelayServerObject>(info)->server_.serve(bytesOf(info[0]));
    if (!replies.empty()) info.GetReturnValue().Set(bufferOf(replies));
  }

  Nan::Persistent<Object> pool_;  // these two outlive the server
  Nan::Persistent<Object> sources_;
  RelayServer server_;
};

RelayDesk* relayOf(Local<Value> relay) {
  return &Nan::ObjectWrap::Unwrap<RelayObject>(relay.As<Object>())->desk_;
}

/** A port that is held for the workers to share. */
class Reservation : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    Local<FunctionTemplate> constructor = Nan::New<FunctionTemplate>(create);
    constructor->SetClassName(Nan::New("Reservation").ToLocalChecked());
    constructor->InstanceTemplate()->SetInternalFieldCount(1);
    Nan::SetPrototypeMethod(constructor, "close", close);
    set(target, "Reservation", Nan::GetFunction(constructor).ToLocalChecked());
  }

 private:
  // new Reservation(address, port) with its `port`; throws with code and syscall
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* object = new Reservation;
    const uint16_t port = static_cast<uint16_t>(uint32Of(info[1]));
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
  Reservation::init(target);
  RelayObject::init(target);
  RelayServerObject::init(target);
}

}  // namespace sprites
