#include "histogram.h"

namespace swarm {

void Histogram::takeInterval(std::string* json) {
  json->push_back('[');
  bool first = true;
  for (uint32_t i = low_; i < high_; i++) {
    if (counts_[i] == 0) continue;
    if (!first) json->push_back(',');
    first = false;
    json->push_back('[');
    json->append(std::to_string(i));
    json->push_back(',');
    json->append(std::to_string(counts_[i]));
    json->push_back(']');
    counts_[i] = 0;
  }
  json->push_back(']');
  low_ = kBuckets;
  high_ = 0;
}

}  // namespace swarm
