#include "links.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "http/pace.h"

namespace server {

namespace {

/** Bytes of one read: some thousands of requests. */
constexpr size_t kReadBytes = 262144;

/** Bytes sent that are taken from the front of what waits, at the least: moving the rest costs. */
constexpr size_t kTakenAtOnce = 1 << 20;

}  // namespace

class RelayLinks::Link : public Watcher {
 public:
  Link(RelayLinks* links, int fd, RelayEnd* end, const LinkOptions& options)
      : links_(links), fd_(fd), end_(end), options_(options), pace_(options.pace) {
    links_->events_->add(fd_, this, EPOLLIN);
  }

  // Removed first: the other process may have a copy of the descriptor.
  ~Link() override {
    links_->events_->remove(fd_);
    ::close(fd_);
  }

  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  RelayEnd* end() const { return end_; }

  void ready(uint32_t events) override {
    if ((events & EPOLLOUT) != 0) blocked_ = false;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    char* const buffer = links_->buffer_.get();
    const ssize_t got = recv(fd_, buffer, kReadBytes, MSG_DONTWAIT);
    const bool gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    if (gone || (got > 0 && !end_->receive({buffer, static_cast<size_t>(got)}))) {
      links_->remove(this);
    }
  }

  /** Whether too much waits, and the other process does not read, or not fast enough by far. */
  bool deaf() {
    if (options_.mostKept == 0 || kept() <= options_.mostKept) return false;
    // The event that it has read may still wait for its turn, so the kernel itself is asked.
    blocked_ = false;
    send();
    return kept() > options_.mostEver || EventSet::now() - takenAt_ >= options_.patience;
  }

  void send() {
    std::string& outgoing = end_->outgoing();
    if (outgoing.size() == sent_ || blocked_) return;
    const uint64_t now = EventSet::now();
    const uint64_t wait = pace_.take(now);
    if (wait > 0) return links_->events_->wakeIn(wait);
    const ssize_t sent =
        ::send(fd_, outgoing.data() + sent_, outgoing.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    // A broken pipe is noticed where it is read.
    if (sent > 0) {
      sent_ += sent;
      takenAt_ = now;
    }
    blocked_ = sent_ < outgoing.size();
    if (!blocked_ || sent_ >= kTakenAtOnce) outgoing.erase(0, std::exchange(sent_, 0));
    end_->fill();
    // What there is room for now goes in the next turn.
    if (!blocked_ && !outgoing.empty()) links_->events_->wake();
    if (blocked_ == watched_) return;
    watched_ = blocked_;
    links_->events_->change(fd_, this, blocked_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }

 private:
  /** Bytes that the kernel has not taken. */
  size_t kept() const { return end_->outgoing().size() - sent_; }

  RelayLinks* const links_;
  const int fd_;
  RelayEnd* const end_;
  const LinkOptions options_;
  Pace pace_;
  uint64_t takenAt_ = 0;  // microseconds: when the kernel last took something
  size_t sent_ = 0;       // bytes at the front of what waits that have been sent
  bool blocked_ = false;  // the kernel takes no more for now
  bool watched_ = false;  // epoll tells when it does
};

RelayLinks::RelayLinks(EventSet* events) : events_(events), buffer_(new char[kReadBytes]) {}

RelayLinks::~RelayLinks() = default;

void RelayLinks::attach(int fd, RelayEnd* end, const LinkOptions& options) {
  links_.push_back(std::make_unique<Link>(this, fd, end, options));
}

bool RelayLinks::attached(const RelayEnd* end) const {
  return std::any_of(links_.begin(), links_.end(),
                     [end](const auto& link) { return link->end() == end; });
}

void RelayLinks::send() {
  for (const auto& link : links_) link->send();
}

void RelayLinks::giveUpTheDeaf() {
  for (size_t i = 0; i < links_.size();) {
    if (links_[i]->deaf()) {
      remove(links_[i].get());
    } else {
      ++i;
    }
  }
}

void RelayLinks::closeAll() { links_.clear(); }

void RelayLinks::remove(Link* link) {
  RelayEnd* const end = link->end();
  std::erase_if(links_, [link](const auto& one) { return one.get() == link; });
  end->lost();
}

}  // namespace server
