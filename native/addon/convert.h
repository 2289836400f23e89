// Small conversions between JavaScript and C++ that every wrap needs.
#ifndef SPRITES_CONVERT_H_
#define SPRITES_CONVERT_H_

#include <nan.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "pool/address.h"
#include "pool/id.h"

namespace server {

/** A property's name: interned, because the engine would look a plain string up each time. */
inline v8::Local<v8::String> nameOf(const char* name) {
  return v8::String::NewFromUtf8(v8::Isolate::GetCurrent(), name, v8::NewStringType::kInternalized)
      .ToLocalChecked();
}

inline void set(v8::Local<v8::Object> object, const char* name, v8::Local<v8::Value> value) {
  Nan::Set(object, nameOf(name), value).Check();
}

inline void set(v8::Local<v8::Object> object, const char* name, double value) {
  set(object, name, Nan::New<v8::Number>(value));
}

/** Sets a property to an array of numbers. */
template <typename Numbers>
void setList(v8::Local<v8::Object> object, const char* name, const Numbers& numbers) {
  v8::Local<v8::Array> list = Nan::New<v8::Array>(static_cast<int>(numbers.size()));
  for (uint32_t i = 0; i < numbers.size(); ++i) {
    Nan::Set(list, i, Nan::New<v8::Number>(static_cast<double>(numbers[i]))).Check();
  }
  set(object, name, list);
}

inline v8::Local<v8::Value> get(v8::Local<v8::Value> object, const char* name) {
  return Nan::Get(object.As<v8::Object>(), nameOf(name)).ToLocalChecked();
}

inline double numberOf(v8::Local<v8::Value> value) { return Nan::To<double>(value).FromJust(); }

inline uint32_t uint32Of(v8::Local<v8::Value> value) { return Nan::To<uint32_t>(value).FromJust(); }

inline uint32_t uint32In(v8::Local<v8::Value> object, const char* name) {
  return uint32Of(get(object, name));
}

inline std::string textOf(v8::Local<v8::Value> value) {
  Nan::Utf8String text(value);
  return {*text, static_cast<size_t>(text.length())};
}

inline std::string textIn(v8::Local<v8::Value> object, const char* name) {
  return textOf(get(object, name));
}

/** The bytes of a Buffer or other view: valid for as long as the call's handles. */
inline std::string_view bytesOf(v8::Local<v8::Value> value) {
  return {node::Buffer::Data(value), node::Buffer::Length(value)};
}

/** The id whose 16 bytes are a Buffer's. */
inline Id idOf(v8::Local<v8::Value> value) {
  Id id;
  memcpy(id.bytes, node::Buffer::Data(value), sizeof id.bytes);
  return id;
}

/** The address that a text says; every text that says none gives one and the same. */
inline Address addressOf(v8::Local<v8::Value> text) {
  Address address;
  Address::read(textOf(text), &address);
  return address;
}

/** A method of a class that JavaScript sees. */
struct Method {
  const char* name;
  Nan::FunctionCallback call;
};

/** Gives `target` a class of Nan::ObjectWrap objects, which `construct` makes and wraps. */
inline void defineClass(v8::Local<v8::Object> target, const char* name,
                        Nan::FunctionCallback construct, std::initializer_list<Method> methods) {
  v8::Local<v8::FunctionTemplate> type = Nan::New<v8::FunctionTemplate>(construct);
  type->SetClassName(nameOf(name));
  type->InstanceTemplate()->SetInternalFieldCount(1);
  for (const Method& method : methods) Nan::SetPrototypeMethod(type, method.name, method.call);
  set(target, name, Nan::GetFunction(type).ToLocalChecked());
}

/** The C++ object inside `info.This()`, where `T` is a Nan::ObjectWrap. */
template <typename T>
T* unwrap(const Nan::FunctionCallbackInfo<v8::Value>& info) {
  return Nan::ObjectWrap::Unwrap<T>(info.This());
}

}  // namespace server

#endif  // SPRITES_CONVERT_H_
