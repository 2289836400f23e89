// The swarm's engine inside a Node process (lib/swarm/tls-engine.js), for the OpenSSL that Node has
// and exports to addons, with the headers of the same version: an https load needs no library of
// the system's. The engine takes the whole thread; no JavaScript runs while it does.
#include <nan.h>

#include <memory>
#include <string>
#include <vector>

#include "swarm/engine.h"

#if __has_include(<openssl/ssl.h>)
#include "openssl_tls.h"
#else
#include <stdexcept>
#endif

namespace {

using v8::Local;
using v8::Value;

std::unique_ptr<swarm::Tls> openTls([[maybe_unused]] const std::string& serverName,
                                    [[maybe_unused]] const std::string& authorities) {
#if __has_include(<openssl/ssl.h>)
  return std::make_unique<swarm::OpensslTls>(serverName, authorities);
#else
  throw std::runtime_error(
      "built without OpenSSL's headers, which this Node came without: no https");
#endif
}

// run(args: string[], authorities: string) → the exit code; no authorities believe any certificate
void runCall(const Nan::FunctionCallbackInfo<Value>& info) {
  const Local<v8::Array> args = info[0].As<v8::Array>();
  const std::string authorities = *Nan::Utf8String(info[1]);
  std::vector<std::string> texts = {"swarm"};
  for (uint32_t i = 0; i < args->Length(); i++) {
    texts.emplace_back(*Nan::Utf8String(Nan::Get(args, i).ToLocalChecked()));
  }
  std::vector<char*> pointers;
  pointers.reserve(texts.size());
  for (std::string& text : texts) pointers.push_back(text.data());
  info.GetReturnValue().Set(
      swarm::run(static_cast<int>(pointers.size()), pointers.data(),
                 [&authorities](const std::string& name) { return openTls(name, authorities); }));
}

}  // namespace

// The arguments are those that Node calls it with: NAN_MODULE_INIT's are fewer, of which clang
// warns.
void initialize(v8::Local<v8::Object> target, v8::Local<v8::Value>, void*) {
  Nan::SetMethod(target, "run", runCall);
}

NODE_MODULE(swarm_tls, initialize)
