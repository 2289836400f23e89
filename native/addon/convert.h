// Small conversions between JavaScript and C++ that every wrap needs.
#ifndef SPRITES_CONVERT_H_
#define SPRITES_CONVERT_H_

#include <nan.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/address.h"
#include "base/id.h"
#include "base/outcome.h"
#include "torus/torus.h"

namespace server {

// V8's names, for every file of the addon.
using v8::Array;
using v8::Function;
using v8::Local;
using v8::Number;
using v8::Object;
using v8::Uint32Array;
using v8::Value;

/** What JavaScript passes to a method, and where the method's result goes. */
using Info = Nan::FunctionCallbackInfo<Value>;

/** A property's name: interned, because the engine would look a plain string up each time. */
inline Local<v8::String> nameOf(const char* name) {
  return v8::String::NewFromUtf8(v8::Isolate::GetCurrent(), name, v8::NewStringType::kInternalized)
      .ToLocalChecked();
}

template <typename Range, typename Make>
Local<Array> listOf(const Range& range, Make&& make);

/** Converts a flag, a number, a text, or a range of those; a JavaScript value stays as it is. */
template <typename T>
Local<Value> valueOf(const T& value) {
  if constexpr (std::is_convertible_v<T, Local<Value>>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return Nan::New(value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    return Nan::New<Number>(static_cast<double>(value));
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    const std::string_view text = value;
    return Nan::New(text.data(), static_cast<int>(text.size())).ToLocalChecked();
  } else {
    return listOf(value, [](const auto& one) { return one; });
  }
}

/** Returns an array of what `make` returns for each element. */
template <typename Range, typename Make>
Local<Array> listOf(const Range& range, Make&& make) {
  Local<Array> list = Nan::New<Array>();
  for (const auto& one : range) {
    Nan::Set(list, list->Length(), valueOf(make(one))).Check();
  }
  return list;
}

template <typename First, typename Second>
Local<Array> pairOf(const First& first, const Second& second) {
  Local<Array> pair = Nan::New<Array>(2);
  Nan::Set(pair, 0, valueOf(first)).Check();
  Nan::Set(pair, 1, valueOf(second)).Check();
  return pair;
}

/** Returns a copy of the bytes, as a Buffer. */
inline Local<Object> bufferOf(std::string_view bytes) {
  return Nan::CopyBuffer(bytes.data(), static_cast<uint32_t>(bytes.size())).ToLocalChecked();
}

template <typename T>
void set(Local<Object> object, const char* name, const T& value) {
  Nan::Set(object, nameOf(name), valueOf(value)).Check();
}

struct Member {
  template <typename T>
  Member(const char* key, const T& what) : name(key), value(valueOf(what)) {}

  const char* name;
  Local<Value> value;
};

inline Local<Object> makeObject(std::initializer_list<Member> members) {
  Local<Object> object = Nan::New<Object>();
  for (const Member& member : members) set(object, member.name, member.value);
  return object;
}

inline Local<Value> get(Local<Value> object, const char* name) {
  return Nan::Get(object.As<Object>(), nameOf(name)).ToLocalChecked();
}

inline double numberOf(Local<Value> value) { return Nan::To<double>(value).FromJust(); }

inline uint32_t uint32Of(Local<Value> value) { return Nan::To<uint32_t>(value).FromJust(); }

inline uint32_t uint32In(Local<Value> object, const char* name) {
  return uint32Of(get(object, name));
}

inline uint64_t uint64In(Local<Value> object, const char* name) {
  return static_cast<uint64_t>(numberOf(get(object, name)));
}

inline bool flagIn(Local<Value> object, const char* name) {
  return Nan::To<bool>(get(object, name)).FromJust();
}

/** Returns the error of a start: of `call`, or of a thread that could not be made. */
inline Local<Value> startError(int error, const char* call) {
  if (error != EAGAIN) return Nan::ErrnoException(error, call);
  return Nan::ErrnoException(error, "pthread_create",
                             "no thread is left: raise TasksMax, ulimit -u");
}

inline std::string textOf(Local<Value> value) {
  Nan::Utf8String text(value);
  return {*text, static_cast<size_t>(text.length())};
}

inline std::string textIn(Local<Value> object, const char* name) {
  return textOf(get(object, name));
}

/** The bytes of a Buffer or other view: valid for as long as the call's handles. */
inline std::string_view bytesOf(Local<Value> value) {
  return {node::Buffer::Data(value), node::Buffer::Length(value)};
}

/** Returns the tag of new ids; kNoServerTag: there is none. */
inline ServerTag tagIn(Local<Value> object) {
  Local<Value> tag = get(object, "tag");
  return tag->IsUndefined() ? kNoServerTag : uint32Of(tag);
}

/** Returns the id in the 16 bytes of a Buffer. */
inline Id idOf(Local<Value> value) {
  Id id;
  memcpy(id.bytes, node::Buffer::Data(value), sizeof id.bytes);
  return id;
}

inline Local<Value> elementOf(Local<Value> array, uint32_t index) {
  return Nan::Get(array.As<Object>(), index).ToLocalChecked();
}

/** Returns a vector of what `read` returns for each element of an array. */
template <typename Read>
auto vectorOf(Local<Value> array, Read&& read) {
  std::vector<decltype(read(array))> result;
  const uint32_t length = array.As<Array>()->Length();
  for (uint32_t i = 0; i < length; ++i) result.push_back(read(elementOf(array, i)));
  return result;
}

/** A list of texts. */
inline std::vector<std::string> textsOf(Local<Value> array) { return vectorOf(array, textOf); }

/** Returns the address in a text. Every text without an address gives the same address. */
inline Address addressOf(Local<Value> text) {
  Address address;
  Address::parse(textOf(text), &address);
  return address;
}

/** A place in the torus. */
inline Local<Object> objectOf(const Place& place) {
  return makeObject({{"row", place.row},
                     {"column", place.column},
                     {"rows", place.rows},
                     {"columns", place.columns}});
}

/** A method of a class that JavaScript sees. */
struct Method {
  const char* name;
  Nan::FunctionCallback call;
};

/** Adds to `target` a class of Nan::ObjectWrap objects, which `construct` makes and wraps. */
inline void defineClass(Local<Object> target, const char* name, Nan::FunctionCallback construct,
                        std::initializer_list<Method> methods) {
  Local<v8::FunctionTemplate> type = Nan::New<v8::FunctionTemplate>(construct);
  type->SetClassName(nameOf(name));
  type->InstanceTemplate()->SetInternalFieldCount(1);
  for (const Method& method : methods) Nan::SetPrototypeMethod(type, method.name, method.call);
  set(target, name, Nan::GetFunction(type).ToLocalChecked());
}

/** The C++ object inside `info.This()`, where `T` is a Nan::ObjectWrap. */
template <typename T>
T* unwrap(const Info& info) {
  return Nan::ObjectWrap::Unwrap<T>(info.This());
}

/** Returns an outcome to JavaScript, by its number. */
inline void returnOutcome(const Info& info, Outcome outcome) {
  info.GetReturnValue().Set(static_cast<uint32_t>(outcome));
}

}  // namespace server

#endif  // SPRITES_CONVERT_H_
