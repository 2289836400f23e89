#include "snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/checksum.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "snapshot_format.h"
#include "snapshot_io.h"
#include "snapshot_world.h"

namespace server {

using namespace snapshot_format;

namespace {

/** A descriptor that is closed at the end of its scope. */
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

/** Renames a file to a free name. Returns 0 or errno; EEXIST: the name is taken. */
int renameAside(const std::string& from, const std::string& to) {
  // The system call is used, because musl has neither the function nor the name of the flag.
  constexpr unsigned kNoReplace = 1;
  if (syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), kNoReplace) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Some file systems can't do this (NFS): there the lock on the state must suffice.
  struct stat info;
  if (lstat(to.c_str(), &info) == 0) return EEXIST;
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

SnapshotResult failed(int error) {
  SnapshotResult result;
  result.error = error;
  return result;
}

SnapshotResult refused(std::string problem) { return {.problem = std::move(problem)}; }

}  // namespace

/** Reads and writes the private parts of a Pool. */
class SnapshotAccess {
 public:
  static SnapshotSources sourcesOf(const Pool& pool) {
    SnapshotSources sources(*pool.limits_);
    eachClient(pool, [&](const Pool::Client& client) {
      sources.add(client.source);
      eachWaitingFor(pool, client,
                     [&](const Sprite& sprite, uint32_t) { sources.add(sprite.source); });
    });
    eachCrosser(pool, [&](const Sprite& sprite) { sources.add(sprite.source); });
    return sources;
  }

  static void write(const Pool& pool, const FeedsAndNotes& feedsAndNotes,
                    const SnapshotSources& sources, SnapshotIdentity identity,
                    SnapshotWriter* writer) {
    const PoolCounts& counts = pool.counts_;
    const Torus& torus = pool.torus_;
    Header header = {.magic = {},
                     .version = kVersion,
                     .byteOrder = kByteOrder,
                     .clients = counts.clients + pool.leaving_.size(),
                     .sprites = counts.waiting,
                     .opened = torus.opened(),
                     .ownRows = torus.ownRows(),
                     .ownColumns = torus.ownColumns(),
                     .run = identity.run,
                     .joined = counts.joined,
                     .left = counts.left,
                     .expired = counts.expired,
                     .thrown = counts.thrown,
                     .acked = counts.acked,
                     .lost = counts.lost,
                     .flown = counts.flown};
    memcpy(header.magic, kMagic, sizeof kMagic);
    writer->append(header);
    writer->append(MoreHeader{.generation = identity.generation,
                              .holes = torus.holeCount(),
                              .leaving = static_cast<uint32_t>(pool.leaving_.size())});
    for (uint32_t i = 0; i < torus.holeCount(); ++i) writer->append(torus.holes()[i]);
    eachClient(pool, [&](const Pool::Client& client) {
      const Mailbox& mailbox = client.mailbox;
      const uint32_t record = client.id.record();
      // The sprites in the backlog are the newest that wait for the client.
      const uint32_t backlogLength = pool.backlogs_.length(record);
      writer->append(ClientEntry{.record = record,
                                 .slot = torus.slot(record),
                                 .id = client.id,
                                 .newestNumber = client.newestNumber,
                                 .seenNumbers = client.seenNumbers,
                                 .sequence = mailbox.sequence + backlogLength,
                                 .waiting = mailbox.waiting + backlogLength,
                                 .unsent = mailbox.unsent + backlogLength});
      eachWaitingFor(pool, client, [writer](const Sprite& sprite, uint32_t flag) {
        const uint32_t flown = sprite.flown ? kFlown : 0;
        writer->append(SpriteEntry{static_cast<uint32_t>(sprite.length),
                                   static_cast<uint32_t>(sprite.from) | flown | flag});
        writer->append(sprite.text().data(), sprite.length);
      });
    });
    for (const uint32_t record : pool.leaving_) writer->append(record);
    writer->append(pool.ownedSeams_ == nullptr ? 0 : kInWorld);
    if (pool.ownedSeams_ != nullptr) writeWorld(*pool.ownedSeams_, counts, writer);
    writer->append(static_cast<uint32_t>(sources.table().size()));
    for (const Address& address : sources.table()) writer->append(address);
    for (const uint32_t number : sources.numbers()) writer->append(number);
    feedsAndNotes.write(writer);
  }

  /** Reads a snapshot behind its headers. Returns what is wrong with it, or nothing. */
  static std::string read(Pool* pool, StoredFeedsAndNotes* stored, const Header& header,
                          const MoreHeader& moreHeader, SnapshotReader* reader) {
    if (header.clients > pool->options_.capacity) return kTooManyClients;
    std::vector<uint32_t> holes;
    for (uint32_t i = 0; i < moreHeader.holes; ++i) {
      uint32_t slot;
      if (!reader->read(&slot)) return kTooEarly;
      holes.push_back(slot);
    }
    std::vector<Seat> seats;
    seats.reserve(header.clients);
    for (uint64_t i = 0; i < header.clients; ++i) {
      std::string problem = readClient(pool, reader, &seats);
      if (!problem.empty()) return problem;
    }
    if (moreHeader.leaving > header.clients) return "its counts do not add up";
    for (uint32_t i = 0; i < moreHeader.leaving; ++i) {
      uint32_t record;
      if (!reader->read(&record)) return kTooEarly;
      if (record >= pool->usedRecords_ || !pool->clients_[record].live) {
        return "a client in it makes no sense";
      }
      pool->startLeaving(&pool->clients_[record]);
      pool->wheel_.disarm(record);
    }
    PoolCounts& counts = pool->counts_;
    uint32_t inWorld = header.version == 4 ? kInWorld : 0;
    if (header.version >= 5 && !reader->read(&inWorld)) return kTooEarly;
    if (inWorld > kInWorld) return "its world makes no sense";
    if (inWorld == kInWorld) {
      const auto makeSprite = [pool](std::string_view text, Edge from) {
        return Sprite::make(text, from, kNoSource, pool->deliveryTimes_.stamp(pool->turnTime()));
      };
      std::string problem = readWorld(reader, makeSprite, &pool->ownedSeams_, &counts);
      if (!problem.empty()) return problem;
    }
    std::string problem = readSources(pool, seats, reader);
    if (problem.empty() && header.version >= 5) problem = stored->read(reader);
    if (!problem.empty()) return problem;
    const uint64_t totals[] = {header.joined, header.left, header.expired, header.thrown,
                               header.acked,  header.lost, header.flown};
    if (!reader->atEnd() || counts.waiting != header.sprites ||
        std::any_of(std::begin(totals), std::end(totals),
                    [](uint64_t count) { return count > kMaxCounted; }) ||
        header.joined != header.clients - moreHeader.leaving + header.left + header.expired ||
        header.thrown + counts.crossedIn !=
            header.acked + header.lost + counts.waiting + counts.crossedOut) {
      return "its counts do not add up";
    }
    if (!pool->torus_.restore(header.opened, header.ownRows, header.ownColumns, seats, &holes)) {
      return "its torus does not hold together";
    }
    counts.joined = header.joined;
    counts.left = header.left;
    counts.expired = header.expired;
    counts.thrown = header.thrown;
    counts.acked = header.acked;
    counts.lost = header.lost;
    counts.flown = header.flown;
    return {};
  }

 private:
  /**
   * Calls `visit(client)` with the clients, and leaving ones that still have a node, in the order
   * of records.
   */
  template <typename Visit>
  static void eachClient(const Pool& pool, Visit&& visit) {
    for (uint32_t record = 0; record < pool.usedRecords_; ++record) {
      if (pool.torus_.contains(record)) visit(pool.clients_[record]);
    }
  }

  /**
   * Calls `visit(sprite, flag)` with each sprite that waits for a client; `flag` is kBehind for its
   * backlog, or 0.
   */
  template <typename Visit>
  static void eachWaitingFor(const Pool& pool, const Pool::Client& client, Visit&& visit) {
    for (Sprite* sprite = client.mailbox.first; sprite != nullptr; sprite = sprite->next) {
      visit(*sprite, 0);
    }
    if (!client.hasBacklog) return;
    for (Sprite* sprite = pool.backlogs_.front(client.id.record()); sprite != nullptr;
         sprite = sprite->next) {
      visit(*sprite, kBehind);
    }
  }

  /** Calls `visit(sprite)` with each sprite that waits to cross to another server. */
  template <typename Visit>
  static void eachCrosser(const Pool& pool, Visit&& visit) {
    if (pool.ownedSeams_ == nullptr) return;
    for (size_t number = 0; number < pool.ownedSeams_->size(); ++number) {
      pool.ownedSeams_->peer(static_cast<PeerNumber>(number))
          .outbox.each([&visit](const Crosser& one) { visit(*one.sprite); });
    }
  }

  /**
   * Reads a client and its sprites, and adds its seat. Returns what is wrong with them, or nothing.
   */
  static std::string readClient(Pool* pool, SnapshotReader* reader, std::vector<Seat>* seats) {
    ClientEntry entry;
    if (!reader->read(&entry)) return kTooEarly;
    if (entry.record >= pool->options_.capacity) return kTooManyClients;
    // Records come in rising order: none comes twice, and the free ones between are known.
    if (entry.record < pool->usedRecords_ || entry.id.record() != entry.record ||
        !entry.id.isWellFormed() || entry.unsent > entry.waiting ||
        entry.waiting > entry.sequence || entry.sequence > kMaxCounted ||
        entry.newestNumber > kMaxCounted) {
      return "a client in it makes no sense";
    }
    Pool::Client& client = addClient(pool, entry);
    seats->push_back({entry.record, entry.slot});
    uint32_t backlogLength = 0;
    for (uint32_t n = 0; n < entry.waiting; ++n) {
      SpriteEntry sprite;
      std::string_view text;
      if (!reader->read(&sprite) || !reader->read(sprite.length, &text)) {
        return kTooEarly;
      }
      // The text goes to browsers, so it is checked as a thrown one is.
      const uint32_t flags = sprite.from & (kFlown | kBehind);
      const uint32_t from = sprite.from - flags;
      if (from > 3 || text.size() > kLongestSprite || flags == (kFlown | kBehind) ||
          (backlogLength > 0 && flags != kBehind) ||
          !base::isJsonObject(text.data(), text.size())) {
        return "a sprite in it makes no sense";
      }
      // For delivery times the sprite waits since this start.
      Sprite* restoredSprite = Sprite::make(text, Edge{static_cast<uint8_t>(from)}, kNoSource,
                                            pool->deliveryTimes_.stamp(pool->turnTime()));
      if (flags == kBehind) {
        pool->backlogs_.push(entry.record, restoredSprite);
        client.hasBacklog = true;
        ++backlogLength;
      } else if (flags == kFlown) {
        pool->putFlown(&client, restoredSprite);
      } else {
        client.mailbox.push(restoredSprite);
      }
      if (client.mailbox.bytes > kMaxMailboxBytes) return "a client in it makes no sense";
      pool->counts_.mailboxBytes += Sprite::cost(text.size());
      ++pool->counts_.waiting;
    }
    if (backlogLength > entry.unsent) return "a client in it makes no sense";
    client.mailbox.sequence = entry.sequence - backlogLength;
    client.mailbox.unsent = entry.unsent - backlogLength;
    return {};
  }

  /** Counts the clients and the waiting sprites for their source addresses. */
  static std::string readSources(Pool* pool, const std::vector<Seat>& seats,
                                 SnapshotReader* reader) {
    uint32_t count;
    if (!reader->read(&count)) return kTooEarly;
    std::vector<Address> table;
    for (uint32_t i = 0; i < count; ++i) {
      Address address;
      if (!reader->read(&address)) return kTooEarly;
      table.push_back(address);
    }
    AddressLimits& limits = *pool->limits_;
    bool isWhole = true;
    const auto next = [&]() -> Source {
      uint32_t number = 0;
      isWhole = isWhole && reader->read(&number) && number <= table.size();
      return isWhole && number > 0 ? limits.findOrAdd(table[number - 1]) : kNoSource;
    };
    for (const Seat& seat : seats) {
      Pool::Client& client = pool->clients_[seat.node];
      client.source = next();
      limits.addClientAnyway(client.source);
      eachWaitingFor(*pool, client, [&](Sprite& sprite, uint32_t) {
        sprite.source = next();
        limits.chargeAnyway(sprite.source, Sprite::charge(sprite.length));
      });
    }
    eachCrosser(*pool, [&](Sprite& sprite) {
      sprite.source = next();
      limits.chargeAnyway(sprite.source, Sprite::charge(sprite.length));
    });
    return isWhole ? "" : "an address in it makes no sense";
  }

  static Pool::Client& addClient(Pool* pool, const ClientEntry& entry) {
    for (; pool->usedRecords_ < entry.record; ++pool->usedRecords_) {
      pool->clients_[pool->usedRecords_].token = pool->freeRecord_;
      pool->freeRecord_ = pool->usedRecords_ + 1;
    }
    ++pool->usedRecords_;
    ++pool->counts_.clients;
    Pool::Client& client = pool->clients_[entry.record];
    client.id = entry.id;
    client.newestNumber = entry.newestNumber;
    client.seenNumbers = entry.seenNumbers;
    client.nextPoll = static_cast<uint32_t>(pool->now_);
    client.live = true;
    pool->armTimer(entry.record, pool->options_.lease * uint64_t{1000});
    return client;
  }
};

SnapshotResult Snapshot::save(const Pool& pool, const FeedsAndNotes& feedsAndNotes,
                              const std::string& path, uint64_t most, SnapshotIdentity identity) {
  const SnapshotSources sources = SnapshotAccess::sourcesOf(pool);
  SnapshotWriter counter(SnapshotWriter::kCountOnly);
  SnapshotAccess::write(pool, feedsAndNotes, sources, identity, &counter);
  const uint64_t size = counter.bytes() + sizeof(uint32_t);  // with its checksum
  if (size > most) {
    return refused("the state has " + std::to_string(size) + " bytes, and --state-bytes allows " +
                   std::to_string(most));
  }
  const std::string temporary = path + ".new";
  // The file is of a save that was cut short, or a link, which is not followed.
  if (unlink(temporary.c_str()) != 0 && errno != ENOENT) return failed(errno);
  SnapshotResult result;
  {
    const File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         S_IRUSR | S_IWUSR));
    if (file.fd() < 0) return failed(errno);
    SnapshotWriter writer(file.fd());
    SnapshotAccess::write(pool, feedsAndNotes, sources, identity, &writer);
    result.error = writer.finish();
    result.bytes = writer.bytes();
  }
  if (result.error == 0) {
    result.error = identity.replaceable == Replaceable::kNothing  ? renameAside(temporary, path)
                   : rename(temporary.c_str(), path.c_str()) == 0 ? 0
                                                                  : errno;
  }
  if (result.error == EEXIST) {
    // This process must not overwrite a state that it has not loaded.
    const std::string aside = path + "." + std::to_string(getpid());
    result.error = renameAside(temporary, aside);
    result.problem =
        "there is a state that another server has written: this one's lies at " + aside;
  }
  if (result.error != 0) {
    unlink(temporary.c_str());
    return result;
  }
  result.error = base::syncDirectoryOf(path);
  result.clients = pool.counts().clients;
  result.sprites = pool.counts().waiting;
  result.generation = identity.generation;
  result.run = identity.run;
  return result;
}

SnapshotResult Snapshot::load(Pool* pool, StoredFeedsAndNotes* stored, const std::string& path,
                              uint64_t most) {
  base::MappedFile file;
  const int error = file.open(path, most);
  if (error == ELOOP) return refused("it is a link, and no link is followed");
  if (error == EINVAL) return refused("it is no regular file");
  if (error == EFBIG) {
    return refused("it has " + std::to_string(file.size()) + " bytes, and --state-bytes allows " +
                   std::to_string(most));
  }
  if (error != 0) return failed(error);
  const std::string_view bytes = file.bytes();
  const uint64_t size = bytes.size();
  if (size < sizeof kMagic) return refused("it is no state of a Sprites server");
  if (memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    return refused("it is no state of a Sprites server");
  }
  Header header;
  SnapshotReader reader(bytes.substr(0, size - std::min<uint64_t>(size, sizeof(uint32_t))));
  if (!reader.read(&header)) return refused("it is cut off");
  if (header.byteOrder != kByteOrder) return refused("it is of a machine with another byte order");
  if (header.version > kVersion) {
    return refused("it is of version " + std::to_string(header.version) +
                   ", and this program reads up to " + std::to_string(kVersion) +
                   ": start the newer program");
  }
  Checksum checksum;
  checksum.add(bytes.data(), size - sizeof(uint32_t));
  uint32_t sum;
  memcpy(&sum, bytes.data() + size - sizeof sum, sizeof sum);
  if (sum != checksum.value()) return refused("it is damaged or cut off: its checksum is wrong");
  if (header.version < kOldestVersion) return refused("it is of an unknown version");

  MoreHeader moreHeader = {};
  if (!reader.read(&moreHeader)) return refused("it is cut off");
  SnapshotResult result;
  result.generation = moreHeader.generation;
  result.run = header.run;
  result.problem = SnapshotAccess::read(pool, stored, header, moreHeader, &reader);
  result.clients = header.clients;
  result.sprites = header.sprites;
  result.bytes = size;
  return result;
}

}  // namespace server
