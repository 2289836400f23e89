// Journals that are damaged, in ways their checksums tell and in ways they do not: the reader takes
// what makes sense or refuses it, and never reads or writes where it should not.
//
//   journal_fuzz [count] [seed]
//
// A pool lives, and its journal is kept. A few of its numbers are replaced by odd ones, or records
// are left out, repeated or exchanged; mostly the checksums are made right again. What is taken is
// then used: clients leave, throw and poll, until all are gone.
#include <cstring>

#include "base/checksum.h"
#include "fuzz.h"
#include "state_fuzz.h"
#include "state_scene.h"
#include "store/journal_replay.h"

namespace {

using namespace scene;

constexpr uint32_t kCapacity = 40;

/** One batch, taken apart. */
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

/** The file of these batches, with lengths and checksums that are right. */
std::string fileOf(const std::string& header, std::vector<Batch> batches) {
  std::string bytes = header;
  for (Batch& batch : batches) {
    std::string records;
    for (const std::string& record : batch.records) records += record;
    batch.head.length = static_cast<uint32_t>(records.size());
    batch.head.checksum = 0;
    Checksum checksum;
    checksum.add(reinterpret_cast<const char*>(&batch.head), sizeof batch.head);
    checksum.add(records.data(), records.size());
    batch.head.checksum = checksum.value();
    bytes.append(reinterpret_cast<const char*>(&batch.head), sizeof batch.head);
    bytes += records;
  }
  return bytes;
}

class Run : private PollResponder {
 public:
  explicit Run(uint64_t seed) : random_(seed) {}

  /** Lets a pool live and keeps its journal. */
  void prepare() {
    const Folder folder;
    const StateStoreOptions options = storeOptions(folder);
    Life life(random_.below(SIZE_MAX), kCapacity, options,
              random_.oneIn(3) ? Where::kAlone : Where::kInWorld);
    EXPECT(life.recover().ok() && life.start() == 0);
    for (size_t turns = random_.below(40) + 3; turns > 0; --turns) {
      life.turn();
      EXPECT(life.end());
    }
    whole_ = test::readFile(folder.file() + ".journal-0");
    header_ = whole_.substr(0, sizeof(JournalBegin));
    batches_ = batchesOf(whole_);
    EXPECT(fileOf(header_, batches_) == whole_);
    EXPECT(replay(whole_, UINT64_MAX).empty());
  }

  void step() {
    if (random_.oneIn(4)) return strikeBytes();
    std::vector<Batch> batches = batches_;
    for (size_t n = random_.below(3) + 1; n > 0; --n) {
      Batch& batch = batches[random_.below(batches.size())];
      if (!batch.records.empty()) strikeRecords(&batch.records);
      if (random_.oneIn(20)) batch.head.sequence = odd();
      if (random_.oneIn(20)) batch.head.synced = odd();
    }
    std::string bytes = fileOf(header_, std::move(batches));
    verdicts_.add(replay(bytes, random_.oneIn(3) ? bytes.size() : UINT64_MAX));
  }

  void report() const { verdicts_.print(); }

 private:
  void answer(uint32_t, std::string_view) override {}

  uint64_t odd() {
    static constexpr uint64_t kOdd[] = {0,          1,          2,       3,          4,
                                        7,          8,          9,       255,        kCapacity,
                                        0x7fffffff, 0xffffffff, 1 << 24, 1ull << 53, UINT64_MAX};
    return random_.oneIn(2) ? kOdd[random_.below(std::size(kOdd))] : random_.below(kCapacity + 5);
  }

  /** Damage that the checksums tell. */
  void strikeBytes() {
    std::string bytes = test::mutate(random_, whole_, {whole_}, {"SPB\n", "SPRITEJ\n"});
    const uint64_t upTo = random_.oneIn(3) ? random_.below(bytes.size() + 20) : UINT64_MAX;
    verdicts_.add(replay(bytes, upTo));
  }

  /** Damage that they do not tell. */
  void strikeRecords(std::vector<std::string>* records) {
    std::string& one = (*records)[random_.below(records->size())];
    JournalRecord record;
    memcpy(&record, one.data(), sizeof record);
    switch (random_.below(9)) {
      case 0:
        record.step = JournalStep{static_cast<uint8_t>(random_.below(26))};
        break;
      case 1:
        record.from = static_cast<uint8_t>(odd());
        break;
      case 2:
        record.record = static_cast<uint32_t>(odd());
        break;
      case 3:
        record.other = static_cast<uint32_t>(odd());
        break;
      case 4:
        record.number = odd();
        break;
      case 5:
        record.length = static_cast<uint32_t>(odd());
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

  /** Reads a journal, and uses what is taken; what was wrong with it. */
  std::string replay(const std::string& bytes, uint64_t upTo) {
    const test::ExactCopy exact(bytes);
    AddressLimits limits{AddressLimitsOptions{}};
    Pool pool(poolOptions(kCapacity), &limits, 0);
    pool.setResponder(PollHolder::kRoutes, this);
    Shelf shelf;
    const ReplayResult result = replayJournal({exact.data(), exact.length()}, upTo, &pool, &shelf);
    EXPECT(result.whole + result.torn <= bytes.size());
    if (!result.problem.empty()) return result.problem;
    finishReplay(&pool);
    const Counts& counts = pool.counts();
    expectLaw(pool);
    // What was read is a state like any other: it is kept, and taken again.
    EXPECT(!stateOf(pool, shelf).empty());
    pool.seeAllOff();
    expectLaw(pool);
    EXPECT(counts.clients == pool.torus().size());
    std::vector<Id> ids;
    for (uint32_t i = 0; i < 10; ++i) {
      Id id;
      if (pool.join({}, 0, &id) == Outcome::kOk) ids.push_back(id);
    }
    for (const Id& id : ids) {
      for (uint8_t edge = 0; edge < 4; ++edge) {
        pool.throwSprite(id, Edge{edge}, random_.below(400), "{\"after\":1}", 0);
      }
      pool.poll(id, 0, 0, PollHolder::kRoutes, 1);
      if (random_.oneIn(2)) pool.leave(id);
      pool.answerPolls();
      expectLaw(pool);
    }
    if (random_.oneIn(2) && pool.keptSeams() != nullptr) {
      test::WorldSteps world(&pool);
      for (int i = 0; i < 20; ++i)
        world.step([this](uint64_t most) { return random_.below(most); });
      expectLaw(pool);
      pool.closeSeams();
    }
    pool.endWorld();
    expectLaw(pool);
    // Every hold and every lease ends: no client is left, no sprite waits.
    for (uint64_t now = 0; now < 400000; now += 50) {
      while (!pool.tick(now)) {
      }
    }
    EXPECT(counts.clients == 0 && counts.waiting == 0 && counts.mailboxBytes == 0);
    return {};
  }

  test::Random random_;
  std::string whole_;
  std::string header_;
  std::vector<Batch> batches_;
  test::Verdicts verdicts_;
};

}  // namespace

int main(int argc, char** argv) { return server::test::fuzzStates<Run>(argc, argv, "journals"); }
