#include "snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
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
  static SnapshotSources sourcesOf(const Pool& clients) {
    SnapshotSources sources(*clients.limits_);
    eachClient(clients, [&](const Pool::Client& client) {
      sources.add(client.source);
      eachWaitingFor(clients, client,
                     [&](const Sprite& sprite, uint32_t) { sources.add(sprite.source); });
    });
    eachCrosser(clients, [&](const Sprite& sprite) { sources.add(sprite.source); });
    return sources;
  }

  static void write(const Pool& clients, const Keepers& beside, const SnapshotSources& sources,
                    SnapshotMark mark, SnapshotWriter* writer) {
    const Counts& counts = clients.counts_;
    const Torus& torus = clients.torus_;
    Header header = {.magic = {},
                     .version = kVersion,
                     .byteOrder = kByteOrder,
                     .clients = counts.clients + clients.leaving_.size(),
                     .sprites = counts.waiting,
                     .opened = torus.opened(),
                     .ownRows = torus.ownRows(),
                     .ownColumns = torus.ownColumns(),
                     .run = mark.run,
                     .joined = counts.joined,
                     .left = counts.left,
                     .expired = counts.expired,
                     .thrown = counts.thrown,
                     .acked = counts.acked,
                     .lost = counts.lost,
                     .flown = counts.flown};
    memcpy(header.magic, kMagic, sizeof kMagic);
    writer->put(header);
    writer->put(MoreHeader{.generation = mark.generation,
                           .holes = torus.holeCount(),
                           .leaving = static_cast<uint32_t>(clients.leaving_.size())});
    for (uint32_t i = 0; i < torus.holeCount(); ++i) writer->put(torus.holes()[i]);
    eachClient(clients, [&](const Pool::Client& client) {
      const Mailbox& mailbox = client.mailbox;
      const uint32_t record = client.id.record();
      // The sprites in the backlog are the newest that wait for the client.
      const uint32_t behind = clients.backlogs_.length(record);
      writer->put(ClientEntry{.record = record,
                              .slot = torus.slot(record),
                              .id = client.id,
                              .newestNumber = client.newestNumber,
                              .seenNumbers = client.seenNumbers,
                              .sequence = mailbox.sequence + behind,
                              .waiting = mailbox.waiting + behind,
                              .unsent = mailbox.unsent + behind});
      eachWaitingFor(clients, client, [writer](const Sprite& sprite, uint32_t in) {
        const uint32_t flown = sprite.flown ? kFlown : 0;
        writer->put(SpriteEntry{static_cast<uint32_t>(sprite.length),
                                static_cast<uint32_t>(sprite.from) | flown | in});
        writer->put(sprite.text().data(), sprite.length);
      });
    });
    for (const uint32_t record : clients.leaving_) writer->put(record);
    writer->put(clients.ownedSeams_ == nullptr ? 0 : kInWorld);
    if (clients.ownedSeams_ != nullptr) writeWorld(*clients.ownedSeams_, counts, writer);
    writer->put(static_cast<uint32_t>(sources.table().size()));
    for (const Address& address : sources.table()) writer->put(address);
    for (const uint32_t number : sources.numbers()) writer->put(number);
    beside.write(writer);
  }

  /** Reads a snapshot behind its headers. Returns what is wrong with it, or nothing. */
  static std::string read(Pool* clients, Shelf* shelf, const Header& header, const MoreHeader& more,
                          SnapshotReader* reader) {
    if (header.clients > clients->options_.capacity) return kTooManyClients;
    std::vector<uint32_t> holes;
    for (uint32_t i = 0; i < more.holes; ++i) {
      uint32_t slot;
      if (!reader->get(&slot)) return kTooEarly;
      holes.push_back(slot);
    }
    std::vector<Seat> seats;
    seats.reserve(header.clients);
    uint64_t sprites = 0;
    for (uint64_t i = 0; i < header.clients; ++i) {
      ClientEntry entry;
      if (!reader->get(&entry)) return kTooEarly;
      if (entry.record >= clients->options_.capacity) return kTooManyClients;
      // Records come in rising order: none comes twice, and the free ones between are known.
      if (entry.record < clients->usedRecords_ || entry.id.record() != entry.record ||
          !entry.id.isWellFormed() || entry.unsent > entry.waiting ||
          entry.waiting > entry.sequence || entry.sequence > kMostCounted ||
          entry.newestNumber > kMostCounted) {
        return "a client in it makes no sense";
      }
      Pool::Client& client = addClient(clients, entry);
      seats.push_back({entry.record, entry.slot});
      sprites += entry.waiting;
      uint32_t behind = 0;
      for (uint32_t n = 0; n < entry.waiting; ++n) {
        SpriteEntry sprite;
        std::string_view text;
        if (!reader->get(&sprite) || !reader->get(sprite.length, &text)) {
          return kTooEarly;
        }
        // The text goes to browsers, so it is checked as a thrown one is.
        const uint32_t where = sprite.from & (kFlown | kBehind);
        const uint32_t from = sprite.from - where;
        if (from > 3 || text.size() > kLongestSprite || where == (kFlown | kBehind) ||
            (behind > 0 && where != kBehind) || !base::isJsonObject(text.data(), text.size())) {
          return "a sprite in it makes no sense";
        }
        // For delivery times the sprite waits since this start.
        Sprite* made = Sprite::make(text, Edge{static_cast<uint8_t>(from)}, kNoSource,
                                    clients->deliveryTimes_.stamp(clients->turnTime()));
        if (where == kBehind) {
          clients->backlogs_.push(entry.record, made);
          client.hasBacklog = true;
          ++behind;
        } else if (where == kFlown) {
          clients->putFlown(&client, made);
        } else {
          client.mailbox.push(made);
        }
        if (client.mailbox.bytes > kMostSent) return "a client in it makes no sense";
        clients->counts_.mailboxBytes += Sprite::cost(text.size());
        ++clients->counts_.waiting;
      }
      if (behind > entry.unsent) return "a client in it makes no sense";
      client.mailbox.sequence = entry.sequence - behind;
      client.mailbox.unsent = entry.unsent - behind;
    }
    if (more.leaving > header.clients) return "its counts do not add up";
    for (uint32_t i = 0; i < more.leaving; ++i) {
      uint32_t record;
      if (!reader->get(&record)) return kTooEarly;
      if (record >= clients->usedRecords_ || !clients->clients_[record].live) {
        return "a client in it makes no sense";
      }
      clients->startLeaving(&clients->clients_[record]);
      clients->wheel_.disarm(record);
    }
    Counts& counts = clients->counts_;
    uint32_t inWorld = header.version == 4 ? kInWorld : 0;
    if (header.version >= 5 && !reader->get(&inWorld)) return kTooEarly;
    if (inWorld > kInWorld) return "its world makes no sense";
    if (inWorld == kInWorld) {
      const auto make = [clients](std::string_view text, Edge from) {
        return Sprite::make(text, from, kNoSource,
                            clients->deliveryTimes_.stamp(clients->turnTime()));
      };
      std::string problem = readWorld(reader, make, &clients->ownedSeams_, &counts);
      if (!problem.empty()) return problem;
      sprites += clients->ownedSeams_->sprites();
    }
    std::string problem = readSources(clients, seats, reader);
    if (problem.empty() && header.version >= 5) problem = shelf->read(reader);
    if (!problem.empty()) return problem;
    const uint64_t counted[] = {header.joined, header.left, header.expired, header.thrown,
                                header.acked,  header.lost, header.flown};
    if (!reader->atEnd() || sprites != header.sprites ||
        std::any_of(std::begin(counted), std::end(counted),
                    [](uint64_t count) { return count > kMostCounted; }) ||
        header.joined != header.clients - more.leaving + header.left + header.expired ||
        header.thrown + counts.crossedIn !=
            header.acked + header.lost + sprites + counts.crossedOut) {
      return "its counts do not add up";
    }
    if (!clients->torus_.restore(header.opened, header.ownRows, header.ownColumns, seats.data(),
                                 seats.size(), &holes)) {
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
   * Calls `see(client)` with the clients, and leaving ones that still have a node, in the order of
   * records.
   */
  template <typename See>
  static void eachClient(const Pool& clients, See&& see) {
    for (uint32_t record = 0; record < clients.usedRecords_; ++record) {
      if (clients.torus_.contains(record)) see(clients.clients_[record]);
    }
  }

  /**
   * Calls `see(sprite, in)` with each sprite that waits for a client; `in` is kBehind for its
   * backlog, or 0.
   */
  template <typename See>
  static void eachWaitingFor(const Pool& clients, const Pool::Client& client, See&& see) {
    for (Sprite* sprite = client.mailbox.first; sprite != nullptr; sprite = sprite->next) {
      see(*sprite, 0);
    }
    if (!client.hasBacklog) return;
    for (Sprite* sprite = clients.backlogs_.front(client.id.record()); sprite != nullptr;
         sprite = sprite->next) {
      see(*sprite, kBehind);
    }
  }

  /** Calls `see(sprite)` with each sprite that waits to cross to another server. */
  template <typename See>
  static void eachCrosser(const Pool& clients, See&& see) {
    if (clients.ownedSeams_ == nullptr) return;
    for (size_t number = 0; number < clients.ownedSeams_->size(); ++number) {
      clients.ownedSeams_->peer(static_cast<PeerNumber>(number))
          .outbox.each([&see](const Crosser& one) { see(*one.sprite); });
    }
  }

  /** Counts the clients and the waiting sprites for their source addresses. */
  static std::string readSources(Pool* clients, const std::vector<Seat>& seats,
                                 SnapshotReader* reader) {
    uint32_t count;
    if (!reader->get(&count)) return kTooEarly;
    std::vector<Address> table;
    for (uint32_t i = 0; i < count; ++i) {
      Address address;
      if (!reader->get(&address)) return kTooEarly;
      table.push_back(address);
    }
    AddressLimits& limits = *clients->limits_;
    bool whole = true;
    const auto next = [&]() -> Source {
      uint32_t number = 0;
      whole = whole && reader->get(&number) && number <= table.size();
      return whole && number > 0 ? limits.findOrAdd(table[number - 1]) : kNoSource;
    };
    for (const Seat& seat : seats) {
      Pool::Client& client = clients->clients_[seat.node];
      client.source = next();
      limits.addClientAnyway(client.source);
      eachWaitingFor(*clients, client, [&](Sprite& sprite, uint32_t) {
        sprite.source = next();
        limits.chargeAnyway(sprite.source, Sprite::charge(sprite.length));
      });
    }
    eachCrosser(*clients, [&](Sprite& sprite) {
      sprite.source = next();
      limits.chargeAnyway(sprite.source, Sprite::charge(sprite.length));
    });
    return whole ? "" : "an address in it makes no sense";
  }

  static Pool::Client& addClient(Pool* clients, const ClientEntry& entry) {
    for (; clients->usedRecords_ < entry.record; ++clients->usedRecords_) {
      clients->clients_[clients->usedRecords_].token = clients->freeRecord_;
      clients->freeRecord_ = clients->usedRecords_ + 1;
    }
    ++clients->usedRecords_;
    ++clients->counts_.clients;
    Pool::Client& client = clients->clients_[entry.record];
    client.id = entry.id;
    client.newestNumber = entry.newestNumber;
    client.seenNumbers = entry.seenNumbers;
    client.nextPoll = static_cast<uint32_t>(clients->now_);
    client.live = true;
    clients->arm(entry.record, clients->options_.lease * uint64_t{1000});
    return client;
  }
};

SnapshotResult Snapshot::save(const Pool& pool, const Keepers& beside, const std::string& path,
                              uint64_t most, SnapshotMark mark, Replace replace) {
  const SnapshotSources sources = SnapshotAccess::sourcesOf(pool);
  SnapshotWriter counter(SnapshotWriter::kNowhere);
  SnapshotAccess::write(pool, beside, sources, mark, &counter);
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
    SnapshotAccess::write(pool, beside, sources, mark, &writer);
    result.error = writer.finish();
    result.bytes = writer.bytes();
  }
  if (result.error == 0) {
    result.error = replace == Replace::kNothing                   ? renameAside(temporary, path)
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
  result.generation = mark.generation;
  result.run = mark.run;
  return result;
}

SnapshotResult Snapshot::load(Pool* pool, Shelf* shelf, const std::string& path, uint64_t most) {
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
  if (!reader.get(&header)) return refused("it is cut off");
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

  MoreHeader more = {};
  if (!reader.get(&more)) return refused("it is cut off");
  SnapshotResult result;
  result.generation = more.generation;
  result.run = header.run;
  result.problem = SnapshotAccess::read(pool, shelf, header, more, &reader);
  result.clients = header.clients;
  result.sprites = header.sprites;
  result.bytes = size;
  return result;
}

}  // namespace server
