// The addresses that are known at once are bounded: a further one is refused everything until
// another is forgotten. (contract/shares tests with the server what one address may have.)
//
//   address_limits_test
#include "base/address_limits.h"

#include <cstdio>
#include <string>

#include "expect.h"

namespace {

using namespace server;

Address addressOf(int last) {
  Address address;
  EXPECT(Address::read("192.0.2." + std::to_string(last), &address));
  return address;
}

}  // namespace

int main() {
  AddressLimits limits(AddressLimitsOptions{.connections = 10,
                                            .clients = 10,
                                            .joinRate = 1,
                                            .joinBurst = 10,
                                            .spriteBytes = 10,
                                            .heldBytes = 10,
                                            .feeds = 1},
                       2);
  EXPECT(limits.open(addressOf(1)));
  EXPECT(limits.enter(addressOf(2)) != kNoSource);
  EXPECT(limits.size() == 2);

  const Address third = addressOf(3);
  EXPECT(!limits.open(third));
  EXPECT(!limits.hold(third, 1));
  EXPECT(!limits.mayJoin(third, 1000));
  EXPECT(limits.enter(third) == kNoSource);
  EXPECT(limits.fetch(third) == kNoSource);
  EXPECT(limits.size() == 2);
  // The known addresses go on.
  EXPECT(limits.open(addressOf(2)));
  EXPECT(limits.mayJoin(addressOf(1), 1000));
  const Source fetched = limits.fetch(addressOf(2));
  EXPECT(fetched != kNoSource && limits.fetch(addressOf(2)) == kNoSource);
  limits.forget(fetched);
  limits.forget(limits.fetch(addressOf(2)));
  limits.close(third);
  EXPECT(limits.size() == 2);

  // An address is forgotten when nothing of it is left and its allowance is whole again.
  limits.close(addressOf(1));
  limits.tick(1000000);
  EXPECT(limits.size() == 1);
  EXPECT(limits.open(third));
  EXPECT(!limits.open(addressOf(4)));
  printf("there are as many source addresses as there may be\n");
}
