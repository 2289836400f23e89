// Damaged snapshots and journals: the checksums detect some of the damage. The reader accepts a
// state that holds together or refuses it, and never reads or writes out of bounds.
//
//   state_fuzz [count] [seed]
//
// A server lives, and its journal and its snapshot are kept. A few of their numbers are replaced by
// odd ones, or records of the journal are left out, repeated or exchanged; mostly the checksums are
// corrected. Accepted states are then used: clients leave, throw and poll, until all are gone.
#include <zlib.h>

#include <cinttypes>
#include <cstring>

#include "base/json_reader.h"
#include "fuzz.h"
#include "state_scene.h"
#include "store/journal_replay.h"
#include "store/snapshot_format.h"

namespace {

using namespace scene;

constexpr uint32_t kCapacity = 40;
constexpr size_t kSnapshotHeader = 104;  // bytes, as in snapshot_format.h

/** Computes CRC-32, not by the code under test. */
uint32_t checksumOf(const std::string& bytes) {
  const auto* const data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<uint32_t>(crc32(0, data, static_cast<uInt>(bytes.size())));
}

/** A parsed batch. */
struct Batch {
  BatchHead head;
  std::vector<std::string> records;  // each with its text
};

std::vector<Batch> batchesOf(const std::string& bytes) {
  std::vector<Batch> batches;
  for (size_t at = sizeof(JournalBegin); at < bytes.size();) {
    Batch batch;
    memcpy(&batch.head, &bytes[at], sizeof batch.head);
    at += sizeof batch.head;
    for (const size_t end = at + batch.head.length; at < end;) {
      JournalRecord record;
      memcpy(&record, &bytes[at], sizeof record);
      const size_t length = sizeof record + paddedLength(record.length);
      batch.records.push_back(bytes.substr(at, length));
      at += length;
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

/** Returns the file of these batches, with correct lengths and checksums. */
std::string fileOf(const std::string& header, std::vector<Batch> batches) {
  std::string bytes = header;
  for (Batch& batch : batches) {
    std::string records;
    for (const std::string& record : batch.records) records += record;
    batch.head.length = static_cast<uint32_t>(records.size());
    batch.head.checksum = 0;
    const std::string_view head(reinterpret_cast<const char*>(&batch.head), sizeof batch.head);
    batch.head.checksum = checksumOf(std::string(head) + records);
    bytes.append(head).append(records);
  }
  return bytes;
}

class Run : private PollResponder {
 public:
  explicit Run(uint64_t seed) : random_(seed) {}

  /** Plays a server's life, and keeps its journal and its snapshot. */
  void prepare() {
    const Folder folder;
    Life life(random_.below(SIZE_MAX), kCapacity, storeOptions(folder),
              random_.oneIn(3) ? Where::kAlone : Where::kInWorld);
    EXPECT(life.recover().ok() && life.start() == 0);
    for (size_t turns = random_.below(40) + 3; turns > 0; --turns) {
      life.turn();
      EXPECT(life.end());
    }
    ids_ = life.ids();
    journal_ = test::readFile(folder.file() + ".journal-0");
    batches_ = batchesOf(journal_);
    EXPECT(fileOf(header(), batches_) == journal_);
    EXPECT(readJournal(journal_, UINT64_MAX).empty() && feedsAndNotes_ == life.feedsAndNotes());
    EXPECT(life.finish().ok());
    snapshot_ = test::readFile(folder.file());
    EXPECT(readSnapshot(snapshot_).empty() && feedsAndNotes_ == life.feedsAndNotes());
    for (int i = 0; i < 20; ++i) {
      std::string bytes = snapshot_;
      bytes[random_.below(bytes.size())] ^= 1 << random_.below(8);
      EXPECT(!readSnapshot(bytes).empty());
      bytes = snapshot_.substr(0, random_.below(snapshot_.size()));
      EXPECT(!readSnapshot(bytes).empty());
    }
  }

  void step() {
    if (random_.oneIn(2)) return damageSnapshot();
    if (random_.oneIn(4)) return damageBytes();
    std::vector<Batch> batches = batches_;
    for (size_t n = random_.below(3) + 1; n > 0; --n) {
      Batch& batch = batches[random_.below(batches.size())];
      if (!batch.records.empty()) damageRecords(&batch.records);
      if (random_.oneIn(20)) batch.head.sequence = oddNumber();
      if (random_.oneIn(20)) batch.head.synced = oddNumber();
    }
    const std::string bytes = fileOf(header(), std::move(batches));
    countProblem(readJournal(bytes, random_.oneIn(3) ? bytes.size() : UINT64_MAX));
  }

  /**
   * Prints the problems of the files, and how often each came. After many steps every problem must
   * have come.
   */
  void report(uint64_t steps) const {
    for (const auto& [problem, times] : problemCounts_) {
      printf("%8" PRIu64 "  %s\n", times, problem.empty() ? "taken" : problem.c_str());
    }
    if (steps < 6000) return;
    for (const char* problem :
         {"", "it ends too early", "a client in it makes no sense", "a sprite in it makes no sense",
          "its counts do not add up", kTooManyClients, "its torus does not hold together"}) {
      EXPECT(problemCounts_.contains(problem));
    }
  }

 private:
  void answer(uint32_t, std::string_view) override {}

  std::string header() const { return journal_.substr(0, sizeof(JournalBegin)); }

  /** Notes a problem without its numbers. */
  void countProblem(std::string problem) {
    std::erase_if(problem, [](char c) { return c >= '0' && c <= '9'; });
    ++problemCounts_[std::move(problem)];
  }

  uint64_t oddNumber() {
    static constexpr uint64_t kOdd[] = {0,          1,          2,       3,          4,
                                        7,          8,          9,       255,        kCapacity,
                                        0x7fffffff, 0xffffffff, 1 << 24, 1ull << 53, UINT64_MAX};
    return random_.oneIn(2) ? kOdd[random_.below(std::size(kOdd))] : random_.below(kCapacity + 5);
  }

  /** Damages a snapshot, and corrects its checksum. */
  void damageSnapshot() {
    std::string bytes = snapshot_;
    for (size_t n = random_.below(3) + 1; n > 0; --n) {
      // The damage is in the counts or behind them. Half of all strikes hit the header or the first
      // client.
      const size_t words = (bytes.size() - 4) / 4;
      const size_t first = std::min<size_t>(words, (kSnapshotHeader + 56) / 4);
      const size_t at = 4 * (4 + random_.below((random_.oneIn(2) ? first : words) - 4));
      if (random_.oneIn(3)) {
        bytes[at + random_.below(4)] ^= 1 << random_.below(8);
      } else {
        const auto value = static_cast<uint32_t>(oddNumber());
        memcpy(&bytes[at], &value, sizeof value);
      }
    }
    if (random_.oneIn(8)) bytes.resize(random_.below(bytes.size()));
    if (bytes.size() >= 4) {
      bytes.resize(bytes.size() - 4);
      const uint32_t sum = checksumOf(bytes);
      bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    }
    countProblem(readSnapshot(bytes));
  }

  /** Damages a journal, which its checksums detect. */
  void damageBytes() {
    std::string bytes = test::mutate(random_, journal_, {journal_}, {"SPB\n", "SPRITEJ\n"});
    const uint64_t upTo = random_.oneIn(3) ? random_.below(bytes.size() + 20) : UINT64_MAX;
    countProblem(readJournal(bytes, upTo));
  }

  /** Damages records whose checksums are corrected. */
  void damageRecords(std::vector<std::string>* records) {
    std::string& one = (*records)[random_.below(records->size())];
    JournalRecord record;
    memcpy(&record, one.data(), sizeof record);
    switch (random_.below(9)) {
      case 0:
        record.step = JournalStep{static_cast<uint8_t>(random_.below(26))};
        break;
      case 1:
        record.from = static_cast<uint8_t>(oddNumber());
        break;
      case 2:
        record.record = static_cast<uint32_t>(oddNumber());
        break;
      case 3:
        record.other = static_cast<uint32_t>(oddNumber());
        break;
      case 4:
        record.number = oddNumber();
        break;
      case 5:
        record.length = static_cast<uint32_t>(oddNumber());
        break;
      case 6:
        if (one.size() > sizeof record) {
          one[sizeof record + random_.below(one.size() - sizeof record)] ^= 1 << random_.below(8);
        }
        break;
      case 7:
        records->push_back(one);
        return;
      default:
        if (random_.oneIn(2)) {
          std::swap(one, (*records)[random_.below(records->size())]);
        } else {
          records->erase(records->begin() + (&one - records->data()));
        }
        return;
    }
    memcpy(one.data(), &record, sizeof record);
  }

  /** Reads a journal, and uses the accepted state. Returns what was wrong with the journal. */
  std::string readJournal(const std::string& bytes, uint64_t upTo) {
    const test::ExactCopy exact(bytes);
    return read([&](Pool* pool, StoredFeedsAndNotes* stored) {
      const std::string_view all(exact.data(), exact.length());
      const ReplayResult result = replayJournal(all, upTo, pool, stored);
      EXPECT(result.wholeBytes + result.tornBytes <= bytes.size());
      if (result.problem.empty()) finishReplay(pool);
      return result.problem;
    });
  }

  /** Reads a snapshot, and uses the accepted state. Returns what was wrong with the snapshot. */
  std::string readSnapshot(const std::string& bytes) {
    std::ofstream(folder_.file(), std::ios::binary) << bytes;
    return read([&](Pool* pool, StoredFeedsAndNotes* stored) {
      const SnapshotResult result = Snapshot::load(pool, stored, folder_.file(), kAnySize);
      EXPECT(result.error == 0);
      return result.problem;
    });
  }

  template <typename Read>
  std::string read(Read&& readInto) {
    AddressLimits limits{AddressLimitsOptions{}};
    Pool pool(poolOptions(kCapacity), &limits, 0);
    pool.setResponder(PollHolder::kRoutes, this);
    StoredFeedsAndNotes stored;
    std::string problem = readInto(&pool, &stored);
    if (!problem.empty()) return problem;
    feedsAndNotes_ = feedsAndNotesText(stored.feeds(), StoredFeedsAndNotes(stored).detachNotes());
    expectLaw(pool);
    // The accepted state is a state like any other: it is saved, and accepted again.
    expectSound(stateOf(pool, stored));
    use(&pool);
    EXPECT(limits.size() == 0);
    return {};
  }

  /** No number of a client is beyond its bound in a living server. */
  static void expectSound(const std::string& state) {
    using namespace snapshot_format;
    const char* at = state.data();
    const auto next = [&at]<typename T>(T* value) {
      memcpy(value, at, sizeof *value);
      at += sizeof *value;
    };
    Header header;
    MoreHeader moreHeader;
    next(&header);
    next(&moreHeader);
    for (const uint64_t count : {header.joined, header.left, header.thrown, header.lost}) {
      EXPECT(count <= kMaxCounted);
    }
    EXPECT(header.joined == header.clients - moreHeader.leaving + header.left + header.expired);
    at += moreHeader.holes * sizeof(uint32_t);
    for (uint64_t i = 0; i < header.clients; ++i) {
      ClientEntry client;
      next(&client);
      EXPECT(client.id.isWellFormed());
      EXPECT(client.newestNumber <= kMaxCounted && client.sequence <= kMaxCounted);
      for (uint32_t n = 0; n < client.waiting; ++n) {
        SpriteEntry sprite;
        next(&sprite);
        EXPECT(base::isJsonObject(at, sprite.length));
        at += sprite.length;
      }
    }
  }

  /** Lets clients come, throw, poll and leave, and then all time pass. */
  void use(Pool* pool) {
    const PoolCounts& counts = pool->counts();
    // Leaving clients are in the torus, but no longer count as clients.
    pool->freeAllLeaving();
    expectLaw(*pool);
    EXPECT(counts.clients == pool->torus().size());
    std::vector<Id> ids = ids_;
    for (uint32_t i = 0; i < 10; ++i) {
      Id id;
      if (pool->join({}, 0, &id) == Outcome::kOk) ids.push_back(id);
    }
    for (const Id& id : ids) {
      for (uint8_t edge = 0; edge < 4; ++edge) {
        pool->throwSprite(id, Edge{edge}, random_.below(400), "{\"after\":1}", 0);
      }
      pool->poll(id, 0, 0, PollHolder::kRoutes, 1);
      if (random_.oneIn(2)) pool->leave(id);
      pool->answerPolls();
      expectLaw(*pool);
    }
    if (random_.oneIn(2) && pool->ownedSeams() != nullptr) {
      test::WorldSteps world(pool);
      for (int i = 0; i < 20; ++i)
        world.step([this](uint64_t most) { return random_.below(most); });
      expectLaw(*pool);
      pool->closeSeams();
    }
    pool->endWorld();
    expectLaw(*pool);
    // Every hold and every lease ends: no client is left, no sprite waits.
    for (uint64_t now = 0; now < 400000; now += 50) {
      while (!pool->tick(now)) {
      }
    }
    EXPECT(counts.clients == 0 && counts.waiting == 0 && counts.mailboxBytes == 0);
  }

  test::Random random_;
  const Folder folder_;
  std::vector<Id> ids_;
  std::string journal_, snapshot_;
  std::vector<Batch> batches_;
  std::string feedsAndNotes_;                      // feeds and notes that were read last
  std::map<std::string, uint64_t> problemCounts_;  // problems of files; empty: accepted
};

}  // namespace

int main(int argc, char** argv) {
  const auto [count, seed] = readArguments(argc, argv, 6000);
  Run run(seed);
  for (uint64_t i = 0; i < count; ++i) {
    if (i % 100 == 0) run.prepare();
    run.step();
  }
  run.report(count);
  return 0;
}
