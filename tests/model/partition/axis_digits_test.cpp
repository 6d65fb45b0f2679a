// Compares AxisDigits' answers about two splits with the splits' blocks, rank by rank.
#include "model/partition/axis_digits.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/partition/grid_space.hpp"

namespace stratplan {
namespace {

/// Returns the block index of a rank.
int index_of(const AxisDigits& along, int rank) {
  int index = 0;
  for (const AxisDigits::Digit& digit : along.digits)
    index = index * digit.parts + rank / digit.stride % digit.parts;
  return index;
}

/// Where digits divide each other, either some rank has nothing in common, or each rank has a whole
/// block in common. The same holds among the ranks of the innermost group.
TEST(AxisDigits, MeetAsTheirBlocksDo) {
  for (const Topology& topology : std::vector<Topology>{{4, 4}, {8, 2}, {16}}) {
    const GridSpace space(topology, {Dim::N, Dim::F, Dim::C, Dim::R});
    const int innermost = topology.back(), ranks = space.ranks();
    const std::vector<DimList> homes{{Dim::N}, {Dim::F, Dim::C}}, readers{{Dim::N}, {Dim::C}};
    for (std::size_t i = 0; i < homes.size(); ++i) {
      for (std::size_t a = 0; a < space.size(); a += 3) {
        for (std::size_t b = 0; b < space.size(); b += 5) {
          const AxisDigits home = digits_along(space.digits(a), homes[i], innermost),
                           wanted = digits_along(space.digits(b), readers[i], innermost);
          const Meeting meeting = meet(home, wanted, innermost);
          const int finest = 16, of_home = finest / home.parts(),
                    of_wanted = finest / wanted.parts();
          const auto common = [&](int holder, int reader) {
            const int first =
                std::max(index_of(home, holder) * of_home, index_of(wanted, reader) * of_wanted);
            const int end = std::min((index_of(home, holder) + 1) * of_home,
                                     (index_of(wanted, reader) + 1) * of_wanted);
            return std::max(0, end - first);
          };
          int least = finest, near = finest;
          for (int rank = 0; rank < ranks; ++rank) {
            least = std::min(least, common(rank, rank));
            std::array<bool, finest> held{};
            for (int mate = rank / innermost * innermost; mate < (rank / innermost + 1) * innermost;
                 ++mate)
              for (int part = 0; part < of_home; ++part)
                held[static_cast<std::size_t>(index_of(home, mate) * of_home + part)] = true;
            const auto begin = held.begin() + index_of(wanted, rank) * of_wanted;
            near = std::min(near, static_cast<int>(std::count(begin, begin + of_wanted, true)));
          }
          const auto text = [&] { return space.grid(a).text() + " to " + space.grid(b).text(); };
          EXPECT_EQ(meeting.common > 0, least > 0) << text();
          EXPECT_TRUE(least == 0 || least == std::min(of_home, of_wanted))
              << text() << ": " << least;
          EXPECT_NEAR(meeting.near_home, static_cast<double>(near) / of_wanted, 1e-6) << text();
        }
      }
    }
  }
}

}  // namespace
}  // namespace stratplan
