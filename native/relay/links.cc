#include "links.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace server {

namespace {

/** Bytes of one read: some hundreds of requests. */
constexpr size_t kReadBytes = 65536;

}  // namespace

class RelayLinks::Link : public Watcher {
 public:
  Link(RelayLinks* links, int fd, RelayEnd* end, uint32_t pace)
      : links_(links), fd_(fd), end_(end), pace_(pace) {
    links_->events_->add(fd_, this, EPOLLIN);
  }

  // Removed first: the other process may have a copy of the descriptor.
  ~Link() override {
    links_->events_->remove(fd_);
    ::close(fd_);
  }

  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const RelayEnd* end() const { return end_; }

  void ready(uint32_t events) override {
    if ((events & EPOLLOUT) != 0) blocked_ = false;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    char* const buffer = links_->buffer_.get();
    const ssize_t got = recv(fd_, buffer, kReadBytes, MSG_DONTWAIT);
    if (got > 0) {
      end_->receive({buffer, static_cast<size_t>(got)});
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      links_->remove(this);
    }
  }

  void send() {
    std::string& outgoing = end_->outgoing();
    if (outgoing.empty() || blocked_) return;
    if (pace_ > 0) {
      const uint64_t now = EventSet::now();
      if (now < sentAt_ + pace_) return links_->events_->wakeIn(sentAt_ + pace_ - now);
      sentAt_ = now;
    }
    const ssize_t sent = ::send(fd_, outgoing.data(), outgoing.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    // A broken pipe is noticed where it is read.
    if (sent > 0) outgoing.erase(0, sent);
    blocked_ = !outgoing.empty();
    if (blocked_ == watched_) return;
    watched_ = blocked_;
    links_->events_->change(fd_, this, blocked_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }

 private:
  RelayLinks* const links_;
  const int fd_;
  RelayEnd* const end_;
  const uint32_t pace_;   // microseconds
  uint64_t sentAt_ = 0;   // microseconds, of the last batch
  bool blocked_ = false;  // the kernel takes no more for now
  bool watched_ = false;  // epoll tells when it does
};

RelayLinks::RelayLinks(EventSet* events) : events_(events), buffer_(new char[kReadBytes]) {}

RelayLinks::~RelayLinks() = default;

void RelayLinks::attach(int fd, RelayEnd* end, uint32_t pace) {
  links_.push_back(std::make_unique<Link>(this, fd, end, pace));
}

bool RelayLinks::attached(const RelayEnd* end) const {
  return std::any_of(links_.begin(), links_.end(),
                     [end](const auto& link) { return link->end() == end; });
}

void RelayLinks::send() {
  for (const auto& link : links_) link->send();
}

void RelayLinks::closeAll() { links_.clear(); }

void RelayLinks::remove(Link* link) {
  std::erase_if(links_, [link](const auto& one) { return one.get() == link; });
}

}  // namespace server
