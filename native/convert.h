// Small conversions between JavaScript and C++ that every wrap needs.
#ifndef SPRITES_CONVERT_H_
#define SPRITES_CONVERT_H_

#include <nan.h>

#include <string>
#include <string_view>

namespace sprites {

inline void set(v8::Local<v8::Object> object, const char* name, v8::Local<v8::Value> value) {
  Nan::Set(object, Nan::New(name).ToLocalChecked(), value).Check();
}

inline void set(v8::Local<v8::Object> object, const char* name, double value) {
  set(object, name, Nan::New<v8::Number>(value));
}

inline v8::Local<v8::Value> get(v8::Local<v8::Value> object, const char* name) {
  return Nan::Get(object.As<v8::Object>(), Nan::New(name).ToLocalChecked()).ToLocalChecked();
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

/** The C++ object inside `info.This()`, where `T` is a Nan::ObjectWrap. */
template <typename T>
T* unwrap(const Nan::FunctionCallbackInfo<v8::Value>& info) {
  return Nan::ObjectWrap::Unwrap<T>(info.This());
}

}  // namespace sprites

#endif  // SPRITES_CONVERT_H_
