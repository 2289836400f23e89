// AddressLimits as a JavaScript object. Conversion only.
#include <uv.h>

#include "base/address_limits.h"
#include "convert.h"
#include "wraps.h"

namespace server {

class AddressLimitsObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "AddressLimits", create,
                {
                    {"size", size},
                    {"ban", ban},
                    {"bans", bans},
                });
  }

 private:
  friend AddressLimits* addressLimitsOf(Local<Value> limits);

  explicit AddressLimitsObject(const AddressLimitsOptions& options) : limits_(options) {}

  // new AddressLimits({connections, …})
  static void create(const Info& info) {
    auto* object = new AddressLimitsObject({.connections = uint32In(info[0], "connections"),
                                            .clients = uint32In(info[0], "clients"),
                                            .joinRate = uint32In(info[0], "joinRate"),
                                            .joinBurst = uint32In(info[0], "joinBurst"),
                                            .spriteBytes = uint64In(info[0], "spriteBytes"),
                                            .heldBytes = uint64In(info[0], "heldBytes"),
                                            .feeds = uint32In(info[0], "feeds")});
    object->Wrap(info.This());
  }

  // ban(address, milliseconds or 0) → the address as `bans` has it; false: there are too many bans;
  // null: it is no address
  static void ban(const Info& info) {
    Address address;
    if (!Address::parse(textOf(info[0]), &address)) return info.GetReturnValue().SetNull();
    const bool isDone = unwrap<AddressLimitsObject>(info)->limits_.ban(
        address, static_cast<uint64_t>(numberOf(info[1])), uv_hrtime() / 1000000);
    if (!isDone) return info.GetReturnValue().Set(false);
    info.GetReturnValue().Set(valueOf(address.text()));
  }

  // bans() → [{address, milliseconds: how long the ban still lasts}, …]
  static void bans(const Info& info) {
    const uint64_t now = uv_hrtime() / 1000000;
    Local<Array> list = Nan::New<Array>();
    for (const auto& ban : unwrap<AddressLimitsObject>(info)->limits_.bans()) {
      if (ban.end <= now) continue;
      Local<Object> entry =
          makeObject({{"address", ban.address.text()}, {"milliseconds", ban.end - now}});
      Nan::Set(list, list->Length(), entry).Check();
    }
    info.GetReturnValue().Set(list);
  }

  // size() → how many addresses have counts
  static void size(const Info& info) {
    AddressLimits& limits = unwrap<AddressLimitsObject>(info)->limits_;
    limits.tick(uv_hrtime() / 1000000);
    info.GetReturnValue().Set(valueOf(limits.size()));
  }

  AddressLimits limits_;
};

AddressLimits* addressLimitsOf(Local<Value> limits) {
  return &Nan::ObjectWrap::Unwrap<AddressLimitsObject>(limits.As<Object>())->limits_;
}

void initAddressLimits(Local<Object> target) { AddressLimitsObject::init(target); }

}  // namespace server
