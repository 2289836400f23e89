// Tls: certificate, key and ticket keys as a JavaScript object, which checks them before the
// serving threads get them. Conversion only.
#include "convert.h"
#include "http/tls.h"
#include "wraps.h"

namespace server {

class TlsObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Tls", create,
                {
                    {"setCertificate", setCertificate},
                    {"validUntil", validUntil},
                    {"rollTicketKeys", rollTicketKeys},
                    {"ticketKeys", ticketKeys},
                    {"takeTicketKeys", takeTicketKeys},
                });
  }

 private:
  // new Tls()
  static void create(const Info& info) { (new TlsObject)->Wrap(info.This()); }

  // setCertificate(certificate, key: bytes) → what is wrong with them, or an empty text
  static void setCertificate(const Info& info) {
    const std::string wrong =
        unwrap<TlsObject>(info)->context_.setCertificate(bytesOf(info[0]), bytesOf(info[1]));
    info.GetReturnValue().Set(valueOf(wrong));
  }

  // validUntil() → when the certificate ends, seconds since 1970
  static void validUntil(const Info& info) {
    info.GetReturnValue().Set(valueOf(unwrap<TlsObject>(info)->context_.validUntil()));
  }

  // rollTicketKeys(now in seconds) → whether ticketKeys has changed
  static void rollTicketKeys(const Info& info) {
    const auto now = static_cast<uint64_t>(numberOf(info[0]));
    info.GetReturnValue().Set(unwrap<TlsObject>(info)->context_.rollTicketKeys(now));
  }

  // ticketKeys() → bytes, to be kept secret
  static void ticketKeys(const Info& info) {
    info.GetReturnValue().Set(bufferOf(unwrap<TlsObject>(info)->context_.ticketKeys()));
  }

  // takeTicketKeys(bytes) → whether they are ticket keys
  static void takeTicketKeys(const Info& info) {
    info.GetReturnValue().Set(unwrap<TlsObject>(info)->context_.setTicketKeys(bytesOf(info[0])));
  }

  TlsContext context_;
};

void initTls(Local<Object> target) { TlsObject::init(target); }

}  // namespace server
