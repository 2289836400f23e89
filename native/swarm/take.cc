#include "take.h"

#include "sprite.h"

namespace swarm {

namespace {

/** Keeps account of a sprite that has come. @return false where it is not to be counted again, or
 * at all */
bool isNew(Core* core, const Sprite& sprite) {
  const Receipt receipt = core->options.batched
                              ? core->batches.received(sprite.process, sprite.number)
                              : core->account.received(sprite.process, sprite.number);
  if (receipt == Receipt::kDouble) core->count.doubles++;
  if (receipt == Receipt::kUnknown) core->count.foreign++;
  return receipt == Receipt::kNew;
}

}  // namespace

void takeSprite(Core* core, const Arrival& arrival, uint64_t now) {
  const Options& options = core->options;
  const ReadSprite read = readSprite(arrival.sprite, options.swarm);
  if (!read.ours) {
    core->count.foreign++;
    return;
  }
  const Sprite& sprite = read.sprite;
  if (!isNew(core, sprite)) return;
  core->count.received++;
  // Others' sprites may have another size, and another machine's clock.
  const bool own = !options.batched || sprite.process == options.process;
  const bool whole = !own || options.size < kSpriteRoom || arrival.sprite.size() == options.size;
  const bool aside = !arrival.from.empty() && arrival.from != oppositeName(read.to);
  if (!whole || aside) core->count.mangled++;
  if (!own) return;
  const uint64_t latency = now > sprite.thrownAt ? now - sprite.thrownAt : 0;
  const bool crossed = options.apart && sprite.process != options.process;
  const bool probed = crossed || sprite.process == options.probeProcess;
  (probed ? core->probe : core->arrival).record(latency);
}

}  // namespace swarm
