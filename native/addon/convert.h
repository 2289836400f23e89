// Small conversions between JavaScript and C++ that every wrap needs.
#ifndef SPRITES_CONVERT_H_
#define SPRITES_CONVERT_H_

#include <nan.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
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

/** A property's name: interned, because the engine would look a plain string up each time. */
inline Local<v8::String> nameOf(const char* name) {
  return v8::String::NewFromUtf8(v8::Isolate::GetCurrent(), name, v8::NewStringType::kInternalized)
      .ToLocalChecked();
}

inline void set(Local<Object> object, const char* name, Local<Value> value) {
  Nan::Set(object, nameOf(name), value).Check();
}

inline void set(Local<Object> object, const char* name, double value) {
  set(object, name, Nan::New<Number>(value));
}

/** Sets a property to an array of numbers. */
template <typename Numbers>
void setList(Local<Object> object, const char* name, const Numbers& numbers) {
  Local<Array> list = Nan::New<Array>(static_cast<int>(numbers.size()));
  for (uint32_t i = 0; i < numbers.size(); ++i) {
    Nan::Set(list, i, Nan::New<Number>(static_cast<double>(numbers[i]))).Check();
  }
  set(object, name, list);
}

/** Sets a property to an array of texts. */
template <typename Names>
void setTexts(Local<Object> object, const char* name, const Names& names) {
  Local<Array> list = Nan::New<Array>();
  for (const std::string_view one : names) {
    Nan::Set(list, list->Length(),
             Nan::New(one.data(), static_cast<int>(one.size())).ToLocalChecked())
        .Check();
  }
  set(object, name, list);
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

/** A list of texts. */
inline std::vector<std::string> textsOf(Local<Value> given) {
  Local<v8::Array> list = given.As<v8::Array>();
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < list->Length(); ++i) {
    texts.push_back(textOf(Nan::Get(list, i).ToLocalChecked()));
  }
  return texts;
}

/** Returns the address in a text. Every text without an address gives the same address. */
inline Address addressOf(Local<Value> text) {
  Address address;
  Address::parse(textOf(text), &address);
  return address;
}

/** A place in the torus. */
inline Local<Object> objectOf(const Place& place) {
  Local<Object> result = Nan::New<Object>();
  set(result, "row", place.row);
  set(result, "column", place.column);
  set(result, "rows", place.rows);
  set(result, "columns", place.columns);
  return result;
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
T* unwrap(const Nan::FunctionCallbackInfo<Value>& info) {
  return Nan::ObjectWrap::Unwrap<T>(info.This());
}

/** Returns an outcome to JavaScript, by its number. */
inline void returnOutcome(const Nan::FunctionCallbackInfo<Value>& info, Outcome outcome) {
  info.GetReturnValue().Set(static_cast<uint32_t>(outcome));
}

}  // namespace server

#endif  // SPRITES_CONVERT_H_
